"""All objects of an LLMDeployment together, as golden files."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.desired import PRUNABLE, ChildInputs, children, revision_children
from octavo_operator.desired.downloader_job import downloader_job
from octavo_operator.desired.network_policy import egress_ports
from octavo_operator.desired.service import service_scheme
from octavo_operator.effective import OperatorIdentity
from octavo_operator.revision import RevisionRecord, revision_hash
from octavo_operator.weights import is_shared

ADMIN = f"sha256:{'a' * 64}"
SHARED = {"mode": "SharedPVC", "sharedPVC": {"size": "50Gi", "storageClassName": "shared"}}

STORIES: dict[str, tuple[dict[str, Any], int]] = {
    "minimal": ({}, 0),
    "cuda_tp2": (
        {
            "engine": {"tensorParallelSize": 2, "quantization": "awq", "maxModelLen": 8192},
            "resources": {"gpuProducts": ["NVIDIA-H100-80GB-HBM3"], "priorityClassName": "serving"},
            "replicas": 3,
        },
        8,
    ),
    "shared_pvc": (
        {
            "model": {
                "uri": "hf://acme/small-1b",
                "credentials": {"secretRef": {"name": "hub-token"}},
                "endpoint": "https://mirror.example:8443",
                "files": {"ignore": ["*.bin"]},
            },
            "cache": SHARED,
            "replicas": 2,
        },
        0,
    ),
    "pvc": ({"model": {"uri": "pvc://weights/small-1b"}}, 0),
    "tls_keys": (
        {
            "access": {
                "apiKeys": {"secretSelector": {"octavo.example/keys": "small"}},
                "tls": {"secretName": "small-tls"},
                "networkPolicy": {"allowFrom": [{"namespaceSelector": {"matchLabels": {"team": "apps"}}}]},
            }
        },
        0,
    ),
    "pod_patch": (
        {
            "pod": {
                "env": [{"name": "OMP_NUM_THREADS", "value": "4"}],
                "labels": {"team": "apps"},
                "nodeSelector": {"topology.kubernetes.io/zone": "a"},
                "tolerations": [{"key": "spot", "operator": "Exists"}],
                "serviceAccountName": "apps",
                "patch": {
                    "spec": {
                        "runtimeClassName": "gvisor",
                        "containers": [
                            {"name": "octavo", "resources": {"limits": {"cpu": "8"}}},
                            {"name": "tail", "image": "registry.example/tail:1"},
                        ],
                        "volumes": [{"name": "cache", "persistentVolumeClaim": {"claimName": "scratch"}}],
                    }
                },
            }
        },
        0,
    ),
}


def inputs(replicas: int = 1, scheme: str = "http", **changed: Any) -> ChildInputs:
    return ChildInputs(replicas, OperatorIdentity("octavo-system"), ADMIN, scheme, **changed)


def record(rendered: Any) -> RevisionRecord:
    return RevisionRecord(revision_hash(rendered.deployment.spec), 1, {"template": rendered.template})


def kinds(manifests: list[dict[str, Any]]) -> list[str]:
    return [manifest["kind"] for manifest in manifests]


@pytest.mark.parametrize("story", STORIES)
def test_manifests_are_those_that_were_looked_at(
    story: str, render: Callable[..., Any], golden: Callable[..., None]
) -> None:
    spec, gpus = STORIES[story]
    rendered = render(spec, gpus=gpus)
    deployment, replicas = rendered.deployment, rendered.effective.replicas
    ports = frozenset(egress_ports(deployment, rendered.weights, rendered.defaults))
    keys = {"team-a/key": f"sha256:{'1' * 64}"} if deployment.spec.access.api_keys else {}
    manifests = children(
        deployment,
        rendered.effective,
        inputs(replicas, service_scheme(deployment, ()), api_key_hashes=keys, egress_ports=ports),
    )
    if is_shared(deployment):
        manifests.append(downloader_job(deployment, rendered.effective, rendered.weights, rendered.defaults))
    golden(story, [*manifests, revision_children(deployment, record(rendered), replicas)[1]])


def test_every_child_is_owned_labelled_and_in_the_resources_namespace(render: Callable[..., Any]) -> None:
    rendered = render({"cache": SHARED})
    manifests = children(rendered.deployment, rendered.effective, inputs(2))
    manifests += revision_children(rendered.deployment, record(rendered), 1)
    manifests.append(downloader_job(rendered.deployment, rendered.effective, rendered.weights, rendered.defaults))
    assert len({(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests}) == len(manifests)
    for manifest in manifests:
        metadata = manifest["metadata"]
        assert metadata["namespace"] == "models"
        assert metadata["ownerReferences"][0]["uid"] == rendered.deployment.uid
        assert metadata["labels"]["octavo.dev/deployment"] == "small"
        assert "finalizers" not in metadata


@pytest.mark.parametrize(("replicas", "made"), [(0, False), (1, False), (2, True), (5, True)])
def test_a_budget_is_there_from_two_replicas_on(replicas: int, made: bool, render: Callable[..., Any]) -> None:
    rendered = render({})
    found = kinds(children(rendered.deployment, rendered.effective, inputs(replicas)))
    assert ("PodDisruptionBudget" in found) is made
    off = render({"disruption": {"podDisruptionBudget": "Disabled"}})
    assert "PodDisruptionBudget" not in kinds(children(off.deployment, off.effective, inputs(replicas)))


def test_what_is_off_is_not_made_and_may_be_pruned(render: Callable[..., Any]) -> None:
    rendered = render({"access": {"networkPolicy": {"mode": "Disabled"}}, "cache": SHARED})
    assert "NetworkPolicy" not in kinds(children(rendered.deployment, rendered.effective, inputs()))
    assert "NetworkPolicy" in PRUNABLE
    assert "PersistentVolumeClaim" not in PRUNABLE


def test_a_named_claim_is_the_users_own(render: Callable[..., Any]) -> None:
    rendered = render({"cache": {"mode": "SharedPVC", "sharedPVC": {"claimName": "mine"}}})
    assert "PersistentVolumeClaim" not in kinds(children(rendered.deployment, rendered.effective, inputs()))


def test_what_pods_refer_to_comes_before_them(render: Callable[..., Any]) -> None:
    rendered = render({})
    assert kinds(children(rendered.deployment, rendered.effective, inputs()))[:2] == ["ServiceAccount", "Secret"]
    assert kinds(revision_children(rendered.deployment, record(rendered), 1)) == ["ControllerRevision", "Deployment"]
