"""What is decided where the user decided nothing, and that what he decided stands."""

from typing import Any

import pytest

from octavo_operator.api import Credentials, KeyRef, LLMDeployment, parse
from octavo_operator.effective import AutoBounds, Device, Effective, EngineSettings, RenderDefaults, decide, token_key
from octavo_operator.observed import ClusterView, NodeView
from octavo_operator.spec_problem import SpecProblem

DEFAULTS = RenderDefaults(image="octavo-runtime:1", operator_version="1")


def deployment(**spec: Any) -> LLMDeployment:
    metadata = {"name": "small", "namespace": "models", "uid": "u-1"}
    return parse({"metadata": metadata, "spec": {"model": {"uri": "hf://acme/small"}} | spec})


def cluster(gpus: int = 0, resource: str = "nvidia.com/gpu", kinds: tuple[str, ...] = ()) -> ClusterView:
    nodes = (
        NodeView("cpu-1", True, {}, (), {"cpu": 4000}, {}),
        NodeView("gpu-1", False, {}, (), {resource: gpus}, {}),
    )
    return ClusterView(nodes=nodes, kinds=frozenset(kinds))


def decided(gpus: int = 0, **spec: Any) -> Effective:
    return decide(deployment(**spec), cluster(gpus), DEFAULTS)


def test_a_manifest_of_four_lines_leaves_nothing_open() -> None:
    effective = decided()
    assert effective.device is Device.CPU
    assert effective.image == "octavo-runtime:1"
    assert effective.served_names == ("small",)
    assert effective.engine == EngineSettings(
        tensor_parallel_size=1,
        pipeline_parallel_size=1,
        gpu_memory_utilization=0.9,
        quantization="auto",
        kv_cache_dtype="auto",
        dtype="auto",
        max_model_len=None,
        max_num_seqs=256,
        block_size=16,
        prefix_caching=True,
        chunked_prefill=True,
        stall_seconds=120,
    )
    assert (effective.replicas, effective.fixed_replicas, effective.scaling_mode) == (1, 1, "Fixed")
    assert (effective.rollout.strategy, effective.rollout.on_failure) == ("Auto", "Rollback")
    assert (effective.rollout.unroute_seconds, effective.rollout.drain_seconds) == (10, 300)
    assert (effective.rollout.victim, effective.rollout.revision_history_limit) == ("LeastInFlight", 3)
    assert (effective.network_policy, effective.disruption_budget) == (True, True)
    assert (effective.pod_monitor, effective.log_prompts, effective.suspended) == (False, False, False)
    assert effective.unmet == ()


def test_a_gpu_anywhere_in_the_cluster_makes_it_the_device_even_when_its_node_is_away() -> None:
    effective = decided(gpus=8, engine={"tensorParallelSize": 2, "pipelineParallelSize": 2})
    assert (effective.device, effective.gpus_per_pod) == (Device.CUDA, 4)


def test_another_gpu_resource_counts_where_it_is_named() -> None:
    view = cluster(1, resource="amd.com/gpu")
    assert decide(deployment(), view, DEFAULTS).device is Device.CPU
    named = decide(deployment(resources={"gpuResource": "amd.com/gpu"}), view, DEFAULTS)
    assert (named.device, named.gpu_resource) == (Device.CUDA, "amd.com/gpu")


def test_a_named_device_stands() -> None:
    assert decided(gpus=8, engine={"device": "cpu"}).gpus_per_pod == 0
    assert decided(gpus=0, engine={"device": "cuda"}).gpus_per_pod == 1


def test_gpu_nodes_that_come_later_do_not_change_what_serves() -> None:
    effective = decide(deployment(), cluster(gpus=8), DEFAULTS, Device.CPU)
    assert (effective.device, effective.gpus_per_pod) == (Device.CPU, 0)


def test_zero_is_a_value() -> None:
    drain = {"drain": {"timeoutSeconds": 0, "unrouteSeconds": 0}}
    effective = decided(replicas=0, liveness={"engineStallSeconds": 0}, rollout=drain)
    assert (effective.replicas, effective.fixed_replicas) == (0, 0)
    assert effective.engine.stall_seconds == 0
    assert (effective.rollout.unroute_seconds, effective.rollout.drain_seconds) == (0, 0)


def test_what_is_switched_off_is_off() -> None:
    effective = decided(
        engine={"prefixCaching": False, "chunkedPrefill": False},
        access={"networkPolicy": {"mode": "Disabled"}},
        disruption={"podDisruptionBudget": "Disabled"},
    )
    assert not effective.engine.prefix_caching
    assert not effective.engine.chunked_prefill
    assert not effective.network_policy
    assert not effective.disruption_budget


@pytest.mark.parametrize(("value", "tokens"), [(None, None), ("auto", None), (4096, 4096), ("4096", 4096)])
def test_context_is_tokens_or_what_fits(value: int | str | None, tokens: int | None) -> None:
    engine = {} if value is None else {"maxModelLen": value}
    assert decided(engine=engine).engine.max_model_len == tokens


def test_context_that_is_neither_is_refused_by_name() -> None:
    with pytest.raises(SpecProblem, match=r"spec\.engine\.maxModelLen: 'large' is neither"):
        decided(engine={"maxModelLen": "large"})


def test_suspended_means_no_replicas_and_remembers_their_number() -> None:
    effective = decided(replicas=3, suspend=True)
    assert (effective.replicas, effective.fixed_replicas) == (3, 0)


def test_in_auto_mode_the_policy_finds_the_number() -> None:
    effective = decided(scaling={"mode": "Auto", "auto": {"maxReplicas": 4}})
    assert effective.auto == AutoBounds(1, 4)
    assert effective.fixed_replicas is None
    suspended = decided(suspend=True, scaling={"mode": "Auto", "auto": {"maxReplicas": 4}})
    assert suspended.fixed_replicas == 0


def test_auto_mode_without_its_block_is_refused_by_name() -> None:
    with pytest.raises(SpecProblem, match=r"spec\.scaling\.auto: .*maxReplicas"):
        decided(scaling={"mode": "Auto"})


def test_a_block_for_auto_mode_does_nothing_in_another_mode() -> None:
    assert decided(scaling={"mode": "External", "auto": {"maxReplicas": 4}}).auto is None


@pytest.mark.parametrize(
    ("wish", "kinds", "made", "unmet"),
    [
        (None, ("PodMonitor",), True, 0),
        ("Enabled", ("PodMonitor",), True, 0),
        ("Disabled", ("PodMonitor",), False, 0),
        ("Auto", (), False, 0),
        ("Enabled", (), False, 1),
    ],
)
def test_a_pod_monitor_needs_its_kind(wish: str | None, kinds: tuple[str, ...], made: bool, unmet: int) -> None:
    observability = {} if wish is None else {"podMonitor": wish}
    effective = decide(deployment(observability=observability), cluster(kinds=kinds), DEFAULTS)
    assert (effective.pod_monitor, len(effective.unmet)) == (made, unmet)


def test_the_users_endpoint_goes_before_the_operators() -> None:
    defaults = RenderDefaults(image="i", operator_version="1", hub_endpoint="https://mirror.example/")
    assert decide(deployment(), cluster(), defaults).hub_endpoint == "https://mirror.example"
    mine = deployment(model={"uri": "hf://acme/small", "endpoint": "https://other.example"})
    assert decide(mine, cluster(), defaults).hub_endpoint == "https://other.example"


def test_the_hub_token_lies_under_the_name_that_everyone_knows_unless_told() -> None:
    assert token_key(Credentials(secret_ref=KeyRef(name="hub"))) == "HF_TOKEN"
    assert token_key(Credentials(secret_ref=KeyRef(name="hub", key="token"))) == "token"
