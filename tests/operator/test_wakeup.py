"""Whom a changed object concerns."""

from typing import Any

import pytest

from octavo_operator.kube_client import Raw
from octavo_operator.names import Key
from octavo_operator.testing import llm_deployment
from octavo_operator.wakeup import keys_to_wake, references_of, selector_of, selects, waits_for_room


class World:
    """Three resources in `team`, one elsewhere; `waits` wait for room."""

    def __init__(self, *deployments: Raw) -> None:
        self._deployments = deployments

    def deployments(self, namespace: str) -> list[Raw]:
        return [raw for raw in self._deployments if raw["metadata"]["namespace"] == namespace]

    def waiting(self) -> list[Key]:
        return [("team", "a"), ("other", "b")]


def thing(kind: str, name: str, labels: dict[str, str] | None = None, namespace: str = "team") -> Raw:
    return {"kind": kind, "metadata": {"namespace": namespace, "name": name, "labels": labels or {}}}


@pytest.mark.parametrize("kind", ["Deployment", "Pod", "Job", "Service", "Secret", "ControllerRevision", "PodMonitor"])
def test_a_child_wakes_the_resource_that_its_label_names(kind: str) -> None:
    child = thing(kind, "child", {"octavo.dev/deployment": "smollm"})
    assert keys_to_wake(child, World()) == {("team", "smollm")}


def test_a_resource_wakes_itself() -> None:
    assert keys_to_wake(llm_deployment("x", "team"), World()) == {("team", "x")}


@pytest.mark.parametrize(
    ("raw", "keys"),
    [
        (thing("Node", "n"), {("team", "a"), ("other", "b")}),
        (thing("StorageClass", "s"), {("team", "a"), ("other", "b")}),
        (thing("Pod", "somebody-elses"), {("team", "a"), ("other", "b")}),
        (thing("ResourceQuota", "q"), {("team", "a")}),
    ],
)
def test_room_wakes_those_that_wait_for_it(raw: Raw, keys: set[Key]) -> None:
    assert keys_to_wake(raw, World()) == keys


@pytest.mark.parametrize(
    ("spec", "raw"),
    [
        ({"model": {"uri": "hf://a/b", "credentials": {"secretRef": {"name": "s"}}}}, thing("Secret", "s")),
        ({"access": {"tls": {"secretName": "s"}}}, thing("Secret", "s")),
        ({"access": {"apiKeys": {"secretSelector": {"team": "x"}}}}, thing("Secret", "any", {"team": "x", "b": "c"})),
        ({"cache": {"sharedPVC": {"claimName": "w"}}}, thing("PersistentVolumeClaim", "w")),
        ({"model": {"uri": "pvc://w/llama/3"}}, thing("PersistentVolumeClaim", "w")),
    ],
)
def test_objects_that_a_spec_names_or_selects_wake_it(spec: dict[str, Any], raw: Raw) -> None:
    world = World(
        llm_deployment("x", "team", **spec), llm_deployment("y", "team"), llm_deployment("x", "other", **spec)
    )
    assert keys_to_wake(raw, world) == {("team", "x")}


def test_a_config_map_is_among_the_references_though_none_is_watched() -> None:
    raw = llm_deployment(model={"uri": "pvc://w/m", "chatTemplate": {"configMapKeyRef": {"name": "t", "key": "k"}}})
    assert references_of(raw) == {("ConfigMap", "t"), ("PersistentVolumeClaim", "w")}


def test_other_secrets_wake_nobody() -> None:
    selecting = llm_deployment("x", "team", access={"apiKeys": {"secretSelector": {"team": "x"}}})
    assert not keys_to_wake(thing("Secret", "s", {"team": "y"}), World(selecting))


def test_a_spec_that_nobody_has_checked_does_no_harm() -> None:
    raw = llm_deployment("x", "team", model="hf://a/b", cache={"sharedPVC": ["?"]}, access={"tls": {"secretName": 3}})
    assert references_of(raw) == frozenset()
    assert not selector_of(raw)
    assert references_of({"metadata": {}}) == frozenset()


def test_an_empty_selector_selects_nothing() -> None:
    empty = llm_deployment(access={"apiKeys": {"secretSelector": {}}})
    assert not selects(selector_of(empty), {"a": "b"})


@pytest.mark.parametrize(
    ("reason", "waits"), [("WaitingForGPU", True), ("ImpossibleRequest", True), ("Serving", False)]
)
def test_waiting_for_room_is_read_from_the_conditions(reason: str, waits: bool) -> None:
    raw = llm_deployment()
    raw["status"] = {"conditions": [{"type": "Ready", "reason": reason}]}
    assert waits_for_room(raw) is waits
    assert not waits_for_room(llm_deployment())


def test_a_secret_of_ours_wakes_its_owner_and_no_spec_is_read_for_it() -> None:
    everyone = llm_deployment("y", "team", access={"apiKeys": {"secretSelector": {"octavo.dev/deployment": "x"}}})
    ours = thing("Secret", "x-keys", {"octavo.dev/deployment": "x"})
    assert keys_to_wake(ours, World(everyone, llm_deployment("x", "team"))) == {("team", "x")}
