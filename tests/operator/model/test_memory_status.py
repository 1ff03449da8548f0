"""The estimate and the measurement have the same fields."""

from typing import Any

from octavo_operator.model.memory_plan import MemoryPlan
from octavo_operator.model.memory_status import measured, to_status


def test_status_leaves_out_what_is_not_known() -> None:
    status = to_status(MemoryPlan(weights=100, activations=7, overhead=3))
    assert status == {"weights": 100, "activations": 7, "overhead": 3, "source": "Estimated"}
    full = MemoryPlan(100, 7, 3, per_gpu_bytes=160, kv_cache=50, headroom=40, max_model_len_that_fits=131072)
    assert to_status(full)["maxModelLenThatFits"] == 131072
    assert {"perGpuBytes", "kvCache", "headroom"} < set(to_status(full))


def runtime_status(**parts: Any) -> dict[str, Any]:
    return {"phase": "Ready", "memory": None, "capacity": None, **parts}


def test_what_the_runtime_measured_takes_the_place_of_the_estimate() -> None:
    status = runtime_status(
        memory={"weights_bytes": 100, "kv_cache_bytes": 50, "activation_bytes": 7},
        capacity={"max_tokens_in_cache": 5000},
    )
    assert measured(status, 4096) == {
        "perGpuBytes": 157,
        "weights": 100,
        "kvCache": 50,
        "activations": 7,
        "maxModelLenThatFits": 4096,
        "source": "Measured",
    }
    assert (measured(status) or {})["maxModelLenThatFits"] == 5000


def test_nothing_is_measured_before_the_runtime_tells() -> None:
    assert measured(runtime_status()) is None
    assert measured(runtime_status(memory={"weights_bytes": 1, "kv_cache_bytes": None})) is None
    assert measured({}) is None
