"""A memory plan as `status.memoryPlan` has it: the estimate, or what a pod measured in its place. Pure."""

from collections.abc import Mapping
from typing import Any

from octavo_operator.model.memory_plan import MemoryPlan, PlanSource


def to_status(memory_plan: MemoryPlan) -> dict[str, Any]:
    """For `status.memoryPlan`; what is not known is left out."""
    fields = {
        "perGpuBytes": memory_plan.per_gpu_bytes,
        "weights": memory_plan.weights,
        "kvCache": memory_plan.kv_cache,
        "activations": memory_plan.activations,
        "overhead": memory_plan.overhead,
        "headroom": memory_plan.headroom,
        "maxModelLenThatFits": memory_plan.max_model_len_that_fits,
        "source": memory_plan.source.value,
    }
    return {name: value for name, value in fields.items() if value is not None}


def measured(runtime_status: Mapping[str, Any], longest: int | None = None) -> dict[str, Any] | None:
    """For `status.memoryPlan` once a pod has told; None before. `longest`: the context that the model was made for."""
    memory, capacity = runtime_status.get("memory") or {}, runtime_status.get("capacity") or {}
    weights, cache = memory.get("weights_bytes"), memory.get("kv_cache_bytes")
    if weights is None or cache is None:
        return None
    activations, in_cache = memory.get("activation_bytes"), capacity.get("max_tokens_in_cache")
    fits = min(in_cache, longest) if in_cache is not None and longest is not None else in_cache
    fields = {
        "perGpuBytes": weights + cache + (activations or 0),
        "weights": weights,
        "kvCache": cache,
        "activations": activations,
        "maxModelLenThatFits": fits,
        "source": PlanSource.MEASURED.value,
    }
    return {name: value for name, value in fields.items() if value is not None}
