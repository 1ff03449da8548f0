"""The shape of a replica and its times."""

from typing import Any

import pytest

from octavo_operator.api import parse
from octavo_operator.effective import RenderDefaults, decide
from octavo_operator.observed import ClusterView, NodeView
from octavo_operator.quantity import GIB, MIB
from octavo_operator.sizing import Sizing, size
from octavo_operator.spec_problem import SpecProblem
from octavo_operator.weights import Weights

DEFAULTS = RenderDefaults(image="octavo-runtime:1", operator_version="1")
SHARED = {"mode": "SharedPVC", "sharedPVC": {"claimName": "models"}}


def sized(weights: Weights, gpus: int = 0, uri: str = "hf://acme/small", **spec: Any) -> Sizing:
    metadata = {"name": "small", "namespace": "models", "uid": "u-1"}
    deployment = parse({"metadata": metadata, "spec": {"model": {"uri": uri}} | spec})
    node = NodeView("node-1", True, {}, (), {"nvidia.com/gpu": gpus}, {})
    return size(deployment, decide(deployment, ClusterView(nodes=(node,)), DEFAULTS), weights, DEFAULTS)


def test_a_gpu_replica_has_four_cores_a_gpu_and_room_for_its_weights_and_shared_memory() -> None:
    sizing = sized(Weights(None, 100 * GIB), gpus=8, engine={"tensorParallelSize": 4})
    assert sizing.cpu_millicores == 16000
    assert sizing.shm_bytes == 8 * GIB
    assert sizing.memory_bytes == sizing.memory_limit == (100 + 8 + 8) * GIB
    assert sizing.cpu_limit is None


def test_one_gpu_needs_less_shared_memory() -> None:
    sizing = sized(Weights(None, 10 * GIB), gpus=1)
    assert (sizing.shm_bytes, sizing.memory_bytes) == (GIB, (10 + 1 + 8) * GIB)


def test_a_cpu_replica_has_room_to_repack_its_weights() -> None:
    sizing = sized(Weights(None, 10 * GIB))
    assert (sizing.cpu_millicores, sizing.cpu_limit, sizing.shm_bytes) == (1000, None, 0)
    assert sizing.memory_bytes == sizing.memory_limit == (13 + 2) * GIB


def test_a_cpu_replica_has_what_the_memory_plan_wants_for_its_cache() -> None:
    assert sized(Weights(None, GIB, cpu_memory_bytes=9 * GIB)).memory_bytes == 9 * GIB
    assert sized(Weights(None, 10 * GIB, cpu_memory_bytes=9 * GIB)).memory_bytes == 15 * GIB


def test_weights_of_unknown_size_are_not_limited_to_a_guess() -> None:
    sizing = sized(Weights(), uri="pvc://models/small")
    assert (sizing.memory_bytes, sizing.memory_limit, sizing.ephemeral_bytes) == (2 * GIB, None, None)


def test_what_the_user_asks_for_stands() -> None:
    sizing = sized(Weights(None, GIB), resources={"cpu": 3, "memory": "64Gi", "shm": "512Mi"})
    assert (sizing.cpu_millicores, sizing.cpu_limit) == (3000, 3000)
    assert (sizing.memory_bytes, sizing.memory_limit, sizing.shm_bytes) == (64 * GIB, 64 * GIB, 512 * MIB)
    assert sized(Weights(None, GIB), gpus=1, resources={"cpu": "3"}).cpu_limit is None


@pytest.mark.parametrize(
    ("resources", "message"),
    [
        ({"memory": "64GB"}, r"spec\.resources\.memory: '64GB' is not a quantity; write one such as 16Gi"),
        ({"cpu": "-1"}, r"spec\.resources\.cpu: -1 must be more than zero"),
        ({"shm": 0}, r"spec\.resources\.shm: 0 must be more than zero"),
    ],
)
def test_a_quantity_that_is_none_is_refused_by_name(resources: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecProblem, match=message):
        sized(Weights(None, GIB), resources=resources)


def test_downloaded_weights_are_asked_of_the_nodes_disk() -> None:
    sizing = sized(Weights(None, 10 * GIB))
    assert sizing.cache_bytes == sizing.ephemeral_bytes == 14 * GIB


def test_mounted_weights_are_not() -> None:
    sizing = sized(Weights(None, 10 * GIB), cache=SHARED)
    assert (sizing.cache_bytes, sizing.ephemeral_bytes) == (20 * GIB, None)


@pytest.mark.parametrize(
    ("size_bytes", "seconds"),
    [(0, 600), (15 * 10**9, 600), (150 * 10**9, 3300), (None, 1800)],
)
def test_start_may_take_as_long_as_the_weights_need(size_bytes: int | None, seconds: int) -> None:
    sizing = sized(Weights(None, size_bytes))
    assert sizing.startup_seconds == seconds
    assert sizing.progress_deadline_seconds == max(900, 2 * seconds)


def test_given_times_stand() -> None:
    sizing = sized(Weights(None, GIB), startup={"timeoutSeconds": 60}, rollout={"progressDeadlineSeconds": 120})
    assert (sizing.startup_seconds, sizing.progress_deadline_seconds) == (60, 120)
