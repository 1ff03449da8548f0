"""`top` reads the pods themselves, through the API server."""

import json
from typing import Any

import pytest

from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.top import Load, PodLoad, load_of, top
from octavo_operator.testing import FakeKube
from octavo_operator.views import view_pod

METRICS = """\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="smollm"} 12.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="smollm"} 3.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="smollm"} 0.93
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{model_name="smollm"} 5000.0
"""


async def test_a_row_per_pod_with_its_load(cluster: Cluster, kube: FakeKube, terminal: Any, samples: Any) -> None:
    kube.put(samples.serving_pod("smollm-a", samples.running()))
    kube.put(samples.serving_pod("smollm-b", samples.running("False")))
    kube.pages["team", "smollm-a", "status"] = json.dumps({"phase": "Ready"})
    kube.pages["team", "smollm-a", "metrics"] = METRICS
    assert await top(cluster, "smollm", interval=0.01, console=terminal.console) == 0
    header, first, second = (line.split() for line in terminal.text.splitlines())
    assert header == ["POD", "PHASE", "KV", "%", "WAITING", "RUNNING", "TOK/S"]
    assert first == ["smollm-a", "Ready", "93", "3", "12", "0"]
    assert second == ["smollm-b", "no", "answer", "-", "-", "-", "-"]


@pytest.mark.parametrize("length", [20, 63])
async def test_a_pods_name_can_be_copied(
    cluster: Cluster, kube: FakeKube, terminal: Any, pipe: Any, samples: Any, length: int
) -> None:
    pod = "smollm-1a2b3c4d5e-".ljust(length, "x")
    kube.put(samples.serving_pod(pod, samples.running()))
    for each in (terminal, pipe):
        await top(cluster, "smollm", interval=0.01, console=each.console)
        assert [line.split()[0] for line in each.text.splitlines()] == ["POD", pod]


async def test_without_a_name_all_models_of_the_namespace_are_read(
    cluster: Cluster, kube: FakeKube, terminal: Any, samples: Any
) -> None:
    kube.put(samples.serving_pod("smollm-a", samples.running()))
    await top(cluster, None, interval=0.01, console=terminal.console)
    assert "smollm-a" in terminal.text


async def test_nothing_to_read_is_said_so(cluster: Cluster, terminal: Any) -> None:
    with pytest.raises(PluginError, match="Nothing serves in namespace team"):
        await top(cluster, None, interval=0.01, console=terminal.console)
    with pytest.raises(PluginError, match="no LLMDeployment ghost"):
        await top(cluster, "ghost", interval=0.01, console=terminal.console)


def test_speed_is_the_difference_of_two_readings(samples: Any) -> None:
    pod = view_pod(samples.serving_pod())
    assert PodLoad(pod, Load(10.0, generated=100.0), Load(12.0, generated=700.0)).tokens_per_second == 300.0
    assert PodLoad(pod, Load(10.0, generated=700.0), Load(12.0, generated=5.0)).tokens_per_second == 0.0
    assert PodLoad(pod, Load(10.0), Load(12.0, generated=5.0)).tokens_per_second is None


def test_a_reading_keeps_what_can_be_read() -> None:
    assert load_of('{"phase": "Ready"}', METRICS, 1.0) == Load(1.0, "Ready", 0.93, 3.0, 12.0, 5000.0)
    assert load_of("not json", None, 1.0) == Load(1.0)
    assert load_of("[]", "vllm:num_requests_waiting not a number", 1.0) == Load(1.0)
