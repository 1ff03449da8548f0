"""`echo`: what a revision really runs with, for `status.effective` and the revision's record."""

from typing import Any

from octavo_operator.api import LLMDeployment
from octavo_operator.desired.arguments import serve_arguments
from octavo_operator.effective import Effective
from octavo_operator.sizing import Sizing
from octavo_operator.weights import Weights


def echo(deployment: LLMDeployment, effective: Effective, sizing: Sizing, weights: Weights) -> dict[str, Any]:
    """`maxModelLen` is "auto" where the spec leaves it open: status has what a pod found, as soon as one did."""
    engine = effective.engine
    return {
        "device": effective.device.value,
        "engineArgs": serve_arguments(deployment, effective, sizing, weights),
        "gpuMemoryUtilization": engine.gpu_memory_utilization,
        "gpusPerReplica": effective.gpus_per_pod,
        "image": effective.image,
        "maxModelLen": "auto" if engine.max_model_len is None else engine.max_model_len,
        "strategy": effective.rollout.strategy,
    }
