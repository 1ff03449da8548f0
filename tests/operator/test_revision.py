"""Which change of a spec is a new revision, and that what is stored of one never changes by itself."""

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from octavo_operator.api import LLMDeployment, parse
from octavo_operator.desired.echo import echo
from octavo_operator.desired.network_policy import egress_ports as template_ports
from octavo_operator.desired.pod_template import pod_template
from octavo_operator.effective import RenderDefaults, decide
from octavo_operator.observed import ClusterView, NodeView, RevisionView
from octavo_operator.quantity import GIB
from octavo_operator.revision import (
    RevisionRecord,
    controller_revision,
    egress_ports,
    record_of,
    revision_data,
    revision_hash,
    upgrade_sentence,
)
from octavo_operator.sizing import size
from octavo_operator.views import view_revision
from octavo_operator.weights import Weights

BASE: dict[str, Any] = {"model": {"uri": "hf://acme/small"}}
COMMIT = "0123456789abcdef0123456789abcdef01234567"
DEFAULTS = RenderDefaults(image="octavo-runtime:1.0.0", operator_version="1.0.0")
NEWER = RenderDefaults(
    image="octavo-runtime:2.0.0",
    operator_version="2.0.0",
    cpu_millicores=2000,
    readiness_period_seconds=5,
    cpu_pod_memory_bytes=3 * GIB,
    hub_endpoint="https://mirror.example",
)


def deployment(**spec: Any) -> LLMDeployment:
    metadata = {"name": "small", "namespace": "models", "uid": "u-1"}
    return parse({"metadata": metadata, "spec": BASE | spec})


def hash_of(**spec: Any) -> str:
    return revision_hash(deployment(**spec).spec)


def render(defaults: RenderDefaults, gpus: int = 0, **spec: Any) -> dict[str, Any]:
    resource, weights = deployment(**spec), Weights(COMMIT, GIB)
    nodes = (NodeView("node-1", True, {}, (), {"nvidia.com/gpu": gpus}, {}),)
    effective = decide(resource, ClusterView(nodes=nodes), defaults)
    sizing = size(resource, effective, weights, defaults)
    return revision_data(
        pod_template(resource, effective, sizing, weights, defaults),
        echo(resource, effective, sizing, weights),
        {"resolvedRevision": COMMIT},
        {},
        template_ports(resource, weights, defaults),
        defaults.operator_version,
    )


def record(**changed: Any) -> RevisionRecord:
    return replace(RevisionRecord("0123456789", 3, render(DEFAULTS)), **changed)


def read_back(manifest: dict[str, Any]) -> RevisionRecord:
    """As the next reconcile sees it."""
    stored = json.loads(json.dumps(manifest))
    return record_of(view_revision(stored["metadata"]["labels"]["octavo.dev/revision"], stored, None))


@pytest.mark.parametrize(
    "spec",
    [
        {"model": {"uri": "hf://acme/other"}},
        {"model": {"uri": "hf://acme/small", "revision": "v2"}},
        {"model": {"uri": "hf://acme/small", "servedNames": ["a", "b"]}},
        {"model": {"uri": "hf://acme/small", "credentials": {"secretRef": {"name": "token"}}}},
        {"model": {"uri": "hf://acme/small", "files": {"allow": ["*.json"]}}},
        {"engine": {"image": "mine:1"}},
        {"engine": {"maxNumSeqs": 8}},
        {"engine": {"prefixCaching": False}},
        {"engine": {"extraArgs": ["--seed", "1"]}},
        {"resources": {"memory": "1Gi"}},
        {"resources": {"gpuProducts": ["H100"]}},
        {"startup": {"timeoutSeconds": 60}},
        {"liveness": {"engineStallSeconds": 0}},
        {"cache": {"mode": "SharedPVC", "sharedPVC": {"claimName": "a"}}},
        {"access": {"apiKeys": {"secretSelector": {"a": "b"}}}},
        {"access": {"tls": {"secretName": "cert"}}},
        {"observability": {"logPrompts": True}},
        {"rollout": {"drain": {"timeoutSeconds": 1}}},
        {"rollout": {"drain": {"unrouteSeconds": 1}}},
        {"pod": {"env": [{"name": "A", "value": "1"}]}},
        {"pod": {"labels": {"team": "a"}}},
        {"pod": {"patch": {"spec": {"hostname": None}}}},
    ],
)
def test_what_a_pod_feels_is_a_new_revision(spec: dict[str, Any]) -> None:
    assert hash_of(**spec) != hash_of()


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": 7},
        {"suspend": True},
        {"scaling": {"mode": "Auto", "auto": {"maxReplicas": 4}}},
        {"rollout": {"strategy": "Recreate", "maxUnavailable": 1, "paused": True, "onFailure": "Hold"}},
        {"rollout": {"progressDeadlineSeconds": 5, "revisionHistoryLimit": 9, "drain": {"victim": "Oldest"}}},
        {"access": {"networkPolicy": {"mode": "Disabled"}}},
        {"observability": {"podMonitor": "Disabled"}},
        {"disruption": {"podDisruptionBudget": "Disabled"}},
        {"engine": {}, "resources": {}, "pod": {"env": [], "labels": {}}},
    ],
)
def test_what_a_pod_does_not_feel_restarts_nothing(spec: dict[str, Any]) -> None:
    assert hash_of(**spec) == hash_of()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"resources": {"memory": "1Gi", "cpu": 2}}, {"resources": {"memory": str(GIB), "cpu": "2000m"}}),
        (
            {"cache": {"mode": "SharedPVC", "sharedPVC": {"size": "1Gi"}}},
            {"cache": {"mode": "SharedPVC", "sharedPVC": {"size": "2Gi"}}},
        ),
        (
            {"access": {"apiKeys": {"secretSelector": {"a": "b"}}}},
            {"access": {"apiKeys": {"secretSelector": {"c": "d"}, "required": True}}},
        ),
        ({"pod": {"labels": {"a": "1", "b": "2"}}}, {"pod": {"labels": {"b": "2", "a": "1"}}}),
    ],
)
def test_the_same_in_other_words_restarts_nothing(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert hash_of(**one) == hash_of(**other)


def test_a_null_in_a_patch_is_a_change() -> None:
    patches = [{"spec": {"hostname": None}}, {"spec": {}}, {"spec": {"hostname": "a"}}]
    assert len({hash_of(pod={"patch": patch}) for patch in patches}) == 3


def test_hashes_of_released_specs_never_change() -> None:
    """A change here would roll every model out anew: add fields, but keep the hash of those that do not set them."""
    assert hash_of() == "4ac97d5b02"
    spec = {
        "engine": {"tensorParallelSize": 2, "gpuMemoryUtilization": 0.85, "extraArgs": ["--seed", "1"]},
        "resources": {"memory": "64Gi", "gpuProducts": ["NVIDIA-H100"]},
        "access": {"apiKeys": {"secretSelector": {"team": "a"}}, "tls": {"secretName": "cert"}},
        "pod": {"env": [{"name": "A", "value": "1"}], "patch": {"spec": {"hostname": None}}},
    }
    assert hash_of(**spec) == "c7b6f45b18"


def test_hash_does_not_depend_on_the_process() -> None:
    code = (
        "from octavo_operator.api import Model, Pod, Spec\n"
        "from octavo_operator.revision import revision_hash\n"
        "labels = {name: name for name in {'a', 'b', 'c', 'd', 'e'}}\n"
        "print(revision_hash(Spec(model=Model(uri='hf://acme/small'), pod=Pod(labels=labels))))\n"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(hashes) == 1


def test_a_revision_is_read_back_as_it_was_written() -> None:
    written = record(
        started_at=1_769_860_800.0,
        succeeded_at=1_769_860_900.0,
        failure={"reason": "OutOfMemory", "message": "It was too much.", "at": "2026-01-31T12:00:00Z"},
    )
    assert read_back(controller_revision(deployment(), written)) == written


def test_a_revision_that_nothing_happened_to_has_no_annotations() -> None:
    assert "annotations" not in controller_revision(deployment(), record())["metadata"]


def test_a_newer_operator_finds_the_stored_template_under_the_same_hash_and_applies_it_byte_for_byte() -> None:
    stored = json.dumps(render(DEFAULTS), sort_keys=True)
    found = read_back(controller_revision(deployment(), record(data=json.loads(stored))))
    assert json.dumps(found.data, sort_keys=True) == stored
    assert found.template["metadata"]["labels"]["octavo.dev/revision"] == hash_of()
    fresh = render(NEWER)["template"]
    assert fresh["metadata"]["labels"]["octavo.dev/revision"] == hash_of()
    assert fresh != found.template


def test_a_newer_operator_says_what_it_would_change() -> None:
    data = json.loads(json.dumps(render(DEFAULTS)))
    assert upgrade_sentence(data, render(DEFAULTS)["template"], "1.0.1") == ""
    sentence = upgrade_sentence(data, render(NEWER)["template"], "2.0.0")
    assert sentence.startswith("Rendered by operator 1.0.0; operator 2.0.0 would change spec.containers.octavo.")
    assert sentence.endswith("Nothing restarts until the spec changes.")
    assert "spec.containers.octavo.image" in sentence


def test_an_upgrade_sentence_stays_short() -> None:
    data = {"template": {str(number): number for number in range(50)}, "operatorVersion": "1"}
    assert "0, 1, 10 and 47 more." in upgrade_sentence(data, {}, "2")


def test_ports_of_all_live_revisions_stay_open() -> None:
    view = RevisionView("a", 1, {"egressPorts": [8080]}, 1)
    assert egress_ports([record(), view, RevisionView("b", 2, {}, 0)]) == {443, 8080}


def test_record_of_a_view_is_the_same_revision() -> None:
    view = RevisionView("a", 2, {"template": {}}, 1, (), 1.0, 2.0, {"reason": "CrashLoop"})
    assert record_of(view) == RevisionRecord("a", 2, {"template": {}}, 1.0, 2.0, {"reason": "CrashLoop"})
