"""The pod of a replica."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.desired.pod_template import scheme_of
from octavo_operator.quantity import GIB, sum_requests
from octavo_operator.weights import Weights


def test_a_gpu_pod_asks_for_its_gpus_and_tolerates_their_taint(render: Callable[..., Any]) -> None:
    rendered = render({"engine": {"tensorParallelSize": 2}}, gpus=8)
    resources = rendered.container["resources"]
    assert resources["limits"]["nvidia.com/gpu"] == resources["requests"]["nvidia.com/gpu"] == "2"
    assert rendered.pod["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert sum_requests(rendered.pod)["nvidia.com/gpu"] == 2


def test_a_cpu_pod_asks_for_no_gpu(render: Callable[..., Any]) -> None:
    rendered = render({"resources": {"gpuProducts": ["NVIDIA-H100"]}})
    assert "nvidia.com/gpu" not in sum_requests(rendered.pod)
    assert not {"tolerations", "affinity"} & rendered.pod.keys()


def test_wanted_gpu_kinds_are_a_requirement(render: Callable[..., Any]) -> None:
    affinity = render({"resources": {"gpuProducts": ["NVIDIA-H100", "NVIDIA-H200"]}}, gpus=1).pod["affinity"]
    terms = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    expression = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H100", "NVIDIA-H200"]}
    assert terms == [{"matchExpressions": [expression]}]


def test_memory_is_limited_where_its_need_is_known(render: Callable[..., Any]) -> None:
    known = render({}, weights=Weights(None, 10 * GIB)).container["resources"]
    assert known["requests"]["memory"] == known["limits"]["memory"] == "15Gi"
    assert known["requests"]["ephemeral-storage"] == "14Gi"
    unknown = render({"model": {"uri": "pvc://weights/a"}}, weights=Weights()).container["resources"]
    assert unknown == {"requests": {"cpu": "1", "memory": "2Gi"}}


@pytest.mark.parametrize(
    ("drain", "grace", "sleep"),
    [({}, 325, 10), ({"timeoutSeconds": 60, "unrouteSeconds": 5}, 80, 5), ({"unrouteSeconds": 0}, 315, None)],
)
def test_grace_is_longer_than_unrouting_and_draining_together(
    drain: dict[str, int], grace: int, sleep: int | None, render: Callable[..., Any]
) -> None:
    rendered = render({"rollout": {"drain": drain}})
    assert rendered.pod["terminationGracePeriodSeconds"] == grace
    lifecycle = {"preStop": {"sleep": {"seconds": sleep}}} if sleep else None
    assert rendered.container.get("lifecycle") == lifecycle


def test_a_log_with_prompts_does_not_reach_the_pods_status(render: Callable[..., Any]) -> None:
    assert render({}).container["terminationMessagePolicy"] == "FallbackToLogsOnError"
    logged = render({"observability": {"logPrompts": True}})
    assert logged.container["terminationMessagePolicy"] == "File"


def test_replicas_keep_apart_where_they_can(render: Callable[..., Any]) -> None:
    spread = render({}).pod["topologySpreadConstraints"]
    assert [constraint["whenUnsatisfiable"] for constraint in spread] == ["ScheduleAnyway"]


def test_labels_are_those_that_selectors_look_for(render: Callable[..., Any]) -> None:
    labels = render({}).template["metadata"]["labels"]
    assert labels["octavo.dev/component"] == "server"
    assert labels["octavo.dev/routed"] == "true"
    assert labels["octavo.dev/deployment"] == "small"
    assert len(labels["octavo.dev/revision"]) == 10


def test_pull_secrets_of_the_operator_are_named(render: Callable[..., Any]) -> None:
    assert render({}, image_pull_secrets=("a", "b")).pod["imagePullSecrets"] == [{"name": "a"}, {"name": "b"}]
    assert "imagePullSecrets" not in render({}).pod


def test_priority_is_the_specs(render: Callable[..., Any]) -> None:
    assert render({"resources": {"priorityClassName": "high"}}).pod["priorityClassName"] == "high"


@pytest.mark.parametrize(("access", "scheme"), [({}, "http"), ({"tls": {"secretName": "cert"}}, "https")])
def test_a_stored_template_tells_how_its_pods_are_spoken_to(
    access: dict[str, Any], scheme: str, render: Callable[..., Any]
) -> None:
    assert scheme_of(render({"access": access}).template) == scheme


def test_rendering_twice_gives_the_same(render: Callable[..., Any]) -> None:
    spec = {"engine": {"tensorParallelSize": 2}, "pod": {"labels": {"a": "b"}}}
    assert render(spec, gpus=2).template == render(spec, gpus=2).template
