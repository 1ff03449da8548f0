from pathlib import Path
from typing import Any

import pytest
import yaml

from octavo_operator.model.devices import Device, DeviceKind, cpu_device
from octavo_operator.model.parallelism import (
    MOST_GPUS,
    TENSOR_SIZES,
    gpus_refusal,
    parallelism_refusal,
    pipeline_sizes,
    tensor_sizes,
)
from octavo_operator.model.shape import ModelShape, shape_of_config
from octavo_operator.reasons import Reason

CRD = Path(__file__).parents[3] / "crds" / "llmdeployments.yaml"


@pytest.fixture
def config(tiny_config: dict[str, Any]) -> dict[str, Any]:
    """Heads and layers of Llama 3 8B."""
    return tiny_config | {"num_attention_heads": 32, "num_key_value_heads": 8, "num_hidden_layers": 32}


def shape(config: dict[str, Any], **fields: int) -> ModelShape:
    return shape_of_config(config | fields, "config.json")


def test_a_model_is_split_where_heads_and_layers_divide(config: dict[str, Any]) -> None:
    assert tensor_sizes(shape(config)) == (1, 2, 4, 8)
    assert pipeline_sizes(shape(config)) == (1, 2, 4, 8)
    assert parallelism_refusal(shape(config), 8, 1) is None


@pytest.mark.parametrize(
    ("fields", "tensor", "says"),
    [
        ({"num_attention_heads": 9, "num_key_value_heads": 3}, 2, "9 attention heads"),
        ({"num_attention_heads": 12, "num_key_value_heads": 6}, 4, "6 key-value heads"),
        ({"intermediate_size": 50}, 4, "50 columns of the model's layers"),
    ],
)
def test_a_tensor_size_that_does_not_divide_is_refused_with_those_that_do(
    config: dict[str, Any], fields: dict[str, int], tensor: int, says: str
) -> None:
    refusal = parallelism_refusal(shape(config, **fields), tensor, 1)
    assert refusal is not None
    assert refusal.reason is Reason.PARALLELISM_MISMATCH
    assert f"engine.tensorParallelSize is {tensor}, which does not divide the" in refusal.message
    assert says in refusal.message


@pytest.mark.parametrize(("heads", "tensor", "offered"), [(9, 2, "1"), (6, 4, "1 or 2"), (12, 8, "1, 2 or 4")])
def test_of_the_sizes_that_the_field_allows_all_that_divide_are_offered_and_no_other(
    config: dict[str, Any], heads: int, tensor: int, offered: str
) -> None:
    """Nine heads divide by three too, but the field may not be 3: the sentence says what it may be."""
    given = shape(config, num_attention_heads=heads, num_key_value_heads=heads, head_dim=16)
    refusal = parallelism_refusal(given, tensor, 1)
    assert refusal is not None
    assert "Of the sizes that it may be (1, 2, 4 and 8), this model can be split into " + offered in refusal.message
    assert refusal.message.endswith(" only.") is (offered == "1")
    assert refusal.advice == f"Set engine.tensorParallelSize to {offered}."


def test_the_sizes_are_those_of_the_field() -> None:
    schema = yaml.safe_load(CRD.read_text())["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    engine = schema["spec"]["properties"]["engine"]["properties"]
    assert tuple(engine["tensorParallelSize"]["enum"]) == TENSOR_SIZES
    assert engine["pipelineParallelSize"]["maximum"] == MOST_GPUS


def test_fewer_key_value_heads_than_ranks_are_replicated(config: dict[str, Any]) -> None:
    assert tensor_sizes(shape(config, num_key_value_heads=2)) == (1, 2, 4, 8)
    assert tensor_sizes(shape(config, num_key_value_heads=1)) == (1, 2, 4, 8)


def test_layers_that_do_not_divide_are_refused_with_the_sizes_that_do(config: dict[str, Any]) -> None:
    refusal = parallelism_refusal(shape(config, num_hidden_layers=30), 1, 4)
    assert refusal is not None
    assert refusal.reason is Reason.PARALLELISM_MISMATCH
    assert "engine.pipelineParallelSize is 4, which does not divide the model's 30 layers." in refusal.message
    assert refusal.advice == "Set engine.pipelineParallelSize to 1, 2, 3, 5 or 6."


def test_several_gpus_cannot_be_had_on_a_cpu() -> None:
    refusal = gpus_refusal(2, cpu_device(None))
    assert refusal is not None
    assert refusal.reason is Reason.DEVICE_UNAVAILABLE
    assert "engine.device is cpu" in refusal.message
    assert "engine.device to cuda" in refusal.advice
    assert gpus_refusal(1, cpu_device(None)) is None
    assert gpus_refusal(8, Device(DeviceKind.CUDA, "GPU")) is None
