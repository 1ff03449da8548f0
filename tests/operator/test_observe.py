"""One read of the world, and few questions."""

import base64
from typing import Any

import pytest

from octavo_operator import observe
from octavo_operator.api import SpecError
from octavo_operator.cache import Cache
from octavo_operator.kube_client import Raw, Unavailable
from octavo_operator.observe import EVENTS_SECONDS, KINDS_SECONDS, OBJECT_SECONDS, Observer
from octavo_operator.observed import Observed, RuntimeView
from octavo_operator.testing import FakeKube, llm_deployment, node

KEY = ("team", "x")
LABELS = {"octavo.dev/deployment": "x"}


class Runtimes:
    """Answers of pods by uid."""

    def __init__(self) -> None:
        self.answers: dict[str, RuntimeView] = {}

    def view(self, pod_uid: str) -> RuntimeView | None:
        return self.answers.get(pod_uid)


class World:
    """A server, a cache that has seen all of it, and an observer with a clock to turn."""

    def __init__(self, *objects: Raw) -> None:
        self.now = 1000.0
        self.cache = Cache()
        self.kube = FakeKube(witness=self.cache)
        self.asked: list[str] = []
        self.runtimes = Runtimes()
        self.observer = Observer(self.kube, self.cache, self.runtimes, lambda: self.now)
        for raw in objects:
            self.put(raw)

    def put(self, raw: Raw) -> Raw:
        stored = self.kube.put(raw)
        self.cache.see(stored)
        return stored

    async def look(self) -> Observed:
        observed = await self.observer.observe(KEY)
        assert observed is not None
        return observed


def resource(**spec: Any) -> Raw:
    return llm_deployment("x", "team", **spec)


def child(kind: str, name: str, labels: dict[str, str], **more: Any) -> Raw:
    owner = {"kind": "LLMDeployment", "name": "x", "uid": "uid-of-team-x", "controller": True}
    metadata = {"namespace": "team", "name": name, "labels": LABELS | labels, "ownerReferences": [owner]}
    return {"kind": kind, "metadata": metadata, **more}


def server_pod(name: str, revision: str, *, ready: bool = True) -> Raw:
    labels = {"octavo.dev/component": "server", "octavo.dev/revision": revision}
    conditions = [{"type": "Ready", "status": str(ready)}]
    return child(
        "Pod", name, labels, status={"phase": "Running", "conditions": conditions}, spec={"nodeName": "node-1"}
    )


def warning(about: Raw, reason: str) -> Raw:
    return {
        "kind": "Event",
        "metadata": {"namespace": "team", "name": f"{reason}-{about['metadata']['name']}"},
        "type": "Warning",
        "reason": reason,
        "involvedObject": {"uid": about["metadata"]["uid"]},
    }


async def test_a_resource_that_is_gone_or_going_is_not_observed() -> None:
    world = World()
    assert await world.observer.observe(KEY) is None
    going = resource()
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.put(going)
    assert await world.observer.observe(KEY) is None


async def test_a_spec_that_cannot_be_read_is_an_error_with_its_field() -> None:
    world = World(resource(engine={"blockSize": "many"}))
    with pytest.raises(SpecError, match="blockSize"):
        await world.observer.observe(KEY)


async def test_revisions_with_their_deployments_and_pods_by_rising_number() -> None:
    world = World(resource())
    for name, number in (("bbb", 1), ("aaa", 2)):
        labels = {"octavo.dev/revision": name}
        world.put(child("ControllerRevision", f"x-{name}", labels, revision=number, data={"template": {}}))
        world.put(child("Deployment", f"x-{name}", labels, spec={"replicas": number}))
        world.put(server_pod(f"x-{name}-pod", name))
    world.put(server_pod("x-lost-pod", "lost"))  # its revision was deleted by hand
    seen = await world.look()
    assert [(view.hash, view.number, view.replicas) for view in seen.revisions] == [
        ("lost", 0, None),
        ("bbb", 1, 1),
        ("aaa", 2, 2),
    ]
    assert [len(view.pods) for view in seen.revisions] == [1, 1, 1]


async def test_what_the_runtime_says_of_itself_is_part_of_its_pod() -> None:
    world = World(resource())
    stored = world.put(server_pod("x-a-pod", "a"))
    world.runtimes.answers[stored["metadata"]["uid"]] = RuntimeView(at=1.0, phase="Ready")
    (revision,) = (await world.look()).revisions
    assert revision.pods[0].runtime == RuntimeView(at=1.0, phase="Ready")


async def test_downloaders_have_their_own_pods() -> None:
    world = World(resource())
    job = world.put(child("Job", "x-dl-1", {"octavo.dev/component": "downloader"}, status={"active": 1}))
    pod = child("Pod", "x-dl-1-p", {"octavo.dev/component": "downloader"})
    pod["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "x-dl-1", "uid": job["metadata"]["uid"]}]
    world.put(pod)
    seen = await world.look()
    assert [(view.name, len(view.pods)) for view in seen.downloads] == [("x-dl-1", 1)]
    assert seen.revisions == ()


async def test_warnings_are_read_for_pods_that_are_not_ready_and_kept_a_while() -> None:
    world = World(resource())
    sick, well = world.put(server_pod("sick", "a", ready=False)), world.put(server_pod("well", "a"))
    world.kube.put(warning(sick, "FailedMount"))
    world.kube.put(warning(well, "Unhealthy"))
    pods = {pod.name: pod for pod in (await world.look()).revisions[0].pods}
    assert [event.reason for event in pods["sick"].events] == ["FailedMount"]
    assert pods["well"].events == ()
    world.kube.put(warning(sick, "BackOff"))
    assert len((await world.look()).revisions[0].pods[0].events) == 1
    world.now += EVENTS_SECONDS
    assert len((await world.look()).revisions[0].pods[0].events) == 2


async def test_a_server_that_does_not_answer_a_question_does_not_stop_the_pass() -> None:
    world = World(resource())
    world.put(server_pod("sick", "a", ready=False))
    world.kube.fail_next(Unavailable(503, "etcd has no leader"), "list")
    assert (await world.look()).revisions[0].pods[0].events == ()


async def test_nodes_quotas_and_storage_classes_are_the_cluster() -> None:
    world = World(resource(), node("n"))
    world.put(
        {"kind": "ResourceQuota", "metadata": {"namespace": "team", "name": "q"}, "spec": {"hard": {"pods": "3"}}}
    )
    world.put({"kind": "ResourceQuota", "metadata": {"namespace": "other", "name": "q"}})
    world.put({"kind": "StorageClass", "metadata": {"name": "fast"}})
    cluster = (await world.look()).cluster
    assert [view.name for view in cluster.nodes] == ["n"]
    assert [view.hard for view in cluster.quotas] == [{"pods": 3}]
    assert cluster.storage_classes == {"fast"}
    assert cluster.kinds == frozenset()
    assert (await world.look()).cluster.nodes is cluster.nodes  # nothing changed: nothing is built anew
    world.put(node("m"))
    first, second = (await world.look()).cluster.nodes
    assert first is cluster.nodes[0]  # what is known of one node stands, whatever happens on another
    placed = {"nodeName": "m", "containers": [{"resources": {"requests": {"cpu": "2"}}}]}
    world.put({"kind": "Pod", "metadata": {"namespace": "else", "name": "p"}, "spec": placed})
    again, busy = (await world.look()).cluster.nodes
    assert again is first
    assert (second.requested, busy.requested) == ({}, {"cpu": 2000, "pods": 1})


async def test_answers_about_objects_long_gone_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "FEWEST_ANSWERS", 4)
    world = World(resource())
    for number in range(40):
        world.now += KINDS_SECONDS / 4
        pod = world.put(server_pod(f"p{number}", "r", ready=False))
        await world.look()
        world.cache.forget("Pod", "team", pod["metadata"]["name"])
    assert len(world.observer._asked) <= 10


async def test_an_optional_kind_is_found_when_its_crd_comes() -> None:
    world = World(resource())
    await world.look()
    world.kube.served.add("PodMonitor")
    world.now += 60
    assert (await world.look()).cluster.kinds == {"PodMonitor"}


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"model": {"uri": "pvc://weights/llama"}}, "weights"),
        ({"cache": {"mode": "SharedPVC", "sharedPVC": {"claimName": "theirs"}}}, "theirs"),
        ({"cache": {"mode": "SharedPVC", "sharedPVC": {"size": "1Gi"}}}, "x-cache"),
    ],
)
async def test_the_claim_with_the_weights(spec: dict[str, Any], name: str) -> None:
    world = World(resource(**spec))
    assert (await world.look()).claim is None
    claim = world.put({"kind": "PersistentVolumeClaim", "metadata": {"namespace": "team", "name": name}})
    world.kube.put(warning(claim, "ProvisioningFailed"))
    seen = (await world.look()).claim
    assert seen is not None
    assert (seen.name, [event.reason for event in seen.events]) == (name, ["ProvisioningFailed"])


async def test_api_keys_are_hashes_of_the_selected_secrets() -> None:
    world = World(resource(access={"apiKeys": {"secretSelector": {"for": "x"}}}))
    data = {"alice": base64.b64encode(b"sk-1").decode()}
    secret = {"kind": "Secret", "metadata": {"namespace": "team", "name": "s", "labels": {"for": "x"}}, "data": data}
    world.put(secret)
    hashes = (await world.look()).api_key_hashes
    assert list(hashes) == ["s/alice"]
    assert hashes["s/alice"].startswith("sha256:")


async def test_references_that_are_not_there_are_named() -> None:
    spec = {
        "model": {
            "uri": "hf://a/b",
            "credentials": {"secretRef": {"name": "token"}},
            "chatTemplate": {"configMapKeyRef": {"name": "template", "key": "k"}},
        },
        "access": {"tls": {"secretName": "tls"}},
        "cache": {"sharedPVC": {"claimName": "claim"}},
    }
    world = World(resource(**spec))
    missing = ("ConfigMap template", "PersistentVolumeClaim claim", "Secret tls", "Secret token")
    assert (await world.look()).missing_references == missing
    world.put({"kind": "Secret", "metadata": {"namespace": "team", "name": "token"}, "data": {"other": ""}})
    world.put({"kind": "PersistentVolumeClaim", "metadata": {"namespace": "team", "name": "claim"}})
    world.kube.put({"kind": "Secret", "metadata": {"namespace": "team", "name": "tls"}, "type": "kubernetes.io/tls"})
    world.kube.put({"kind": "ConfigMap", "metadata": {"namespace": "team", "name": "template"}})
    world.now += OBJECT_SECONDS
    assert (await world.look()).missing_references == ("Secret token, key HF_TOKEN",)
    world.put({"kind": "Secret", "metadata": {"namespace": "team", "name": "token"}, "data": {"HF_TOKEN": "aGY="}})
    assert (await world.look()).missing_references == ()


async def test_a_changed_token_is_another_hash() -> None:
    world = World(resource(model={"uri": "hf://a/b", "credentials": {"secretRef": {"name": "token"}}}))
    secret = {"kind": "Secret", "metadata": {"namespace": "team", "name": "token"}}
    seen = [(await world.look()).token_hash]
    for data in ({"other": "aGY="}, {"HF_TOKEN": "aGY="}, {"HF_TOKEN": "aGg="}, {"HF_TOKEN": "aGg=", "other": "aGY="}):
        world.put({**secret, "data": data})
        seen.append((await world.look()).token_hash)
    assert seen[:2] == ["", ""]
    assert len(set(seen[1:4])) == 3
    assert seen[3] == seen[4]


async def test_a_reference_that_cannot_be_asked_for_now_is_not_called_missing() -> None:
    world = World(resource(access={"tls": {"secretName": "tls"}}))
    world.kube.fail_next(Unavailable(0, "no answer"), "get")
    assert (await world.look()).missing_references == ()


async def test_a_kind_whose_objects_are_there_is_not_missing_because_a_question_failed() -> None:
    """Else they would be deleted, and made anew a minute later."""
    for monitors in ([], [child("PodMonitor", "x", {})]):
        world = World(resource(), *monitors)
        world.kube.fail_next(Unavailable(503, "no"), "serves")
        assert ((await world.look()).cluster.kinds == {"PodMonitor"}) is bool(monitors)
