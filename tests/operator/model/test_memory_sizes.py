from typing import Any

import msgspec
import pytest

from octavo_operator.model.devices import DeviceKind
from octavo_operator.model.memory_sizes import Split, activation_bytes, block_bytes, item_bytes, weight_bytes
from octavo_operator.model.resolved import WeightFacts
from octavo_operator.model.shape import ModelShape, count_parameters, shape_of_config, table_parameters


@pytest.fixture
def shape(tiny_config: dict[str, Any]) -> ModelShape:
    return shape_of_config(tiny_config, "config.json")


PLAIN = WeightFacts(format="safetensors", num_bytes=0)


@pytest.mark.parametrize(
    ("dtype", "kind", "size"),
    [
        ("auto", DeviceKind.CPU, 2),
        ("bfloat16", DeviceKind.CUDA, 2),
        ("float16", DeviceKind.CUDA, 2),
        ("float16", DeviceKind.CPU, 4),
        ("float32", DeviceKind.CUDA, 4),
    ],
)
def test_a_number_takes_what_its_format_takes_on_the_device(dtype: str, kind: DeviceKind, size: int) -> None:
    assert item_bytes(dtype, kind) == size


def test_plain_weights_are_all_parameters_in_the_served_format(shape: ModelShape) -> None:
    assert weight_bytes(PLAIN, shape, None, 2, Split()) == 2 * count_parameters(shape)
    untied = msgspec.structs.replace(shape, tie_word_embeddings=False)
    assert weight_bytes(PLAIN, untied, None, 4, Split()) == 4 * count_parameters(untied)


def test_weights_are_shared_by_tensor_ranks(shape: ModelShape) -> None:
    whole, half = weight_bytes(PLAIN, shape, None, 2, Split()), weight_bytes(PLAIN, shape, None, 2, Split(tensor=2))
    assert whole / 2 < half < whole * 0.6  # norms are held by all


def test_weights_are_shared_by_stages_and_the_tables_lie_at_the_ends(shape: ModelShape) -> None:
    untied = msgspec.structs.replace(shape, tie_word_embeddings=False)
    table = table_parameters(shape)
    difference = weight_bytes(PLAIN, untied, None, 2, Split()) - weight_bytes(PLAIN, untied, None, 2, Split(pipeline=4))
    layers = count_parameters(shape) - table - shape.hidden_size
    assert difference == 2 * (table + layers * 3 // 4)
    # a tied table is needed at both ends, so stages do not make it smaller
    tied = weight_bytes(PLAIN, shape, None, 2, Split(pipeline=4))
    assert tied == weight_bytes(PLAIN, untied, None, 2, Split(pipeline=4))


def test_fp8_made_while_loading_halves_the_matrices_only(shape: ModelShape) -> None:
    plain, small = weight_bytes(PLAIN, shape, None, 2, Split()), weight_bytes(PLAIN, shape, "fp8", 2, Split())
    matrices = 4 * ((4 + 2 * 2) * 8 * 32 + 32 * 32 + 3 * 32 * 48)
    assert plain - small == matrices


def test_a_quantized_checkpoint_keeps_its_packed_numbers_and_converts_the_rest(shape: ModelShape) -> None:
    table = table_parameters(shape)
    facts = WeightFacts(
        format="safetensors",
        num_bytes=0,
        quantization="awq",
        stored_numbers={"F32": table, "I32": 1000},
        stored_bytes={"F32": 4 * table, "I32": 4000},
    )
    assert weight_bytes(facts, shape, "awq", 2, Split()) == 2 * table + 4000
    assert weight_bytes(facts, shape, "awq", 2, Split(tensor=4)) == (2 * table + 4000) // 4


def test_a_block_holds_keys_and_values_of_every_layer(shape: ModelShape) -> None:
    assert block_bytes(shape, 16, 2, Split()) == 2 * 4 * 2 * 8 * 16 * 2
    assert block_bytes(shape, 16, 2, Split(tensor=2, pipeline=2)) == block_bytes(shape, 16, 2, Split()) // 4
    assert block_bytes(shape, 16, 2, Split(tensor=8)) == block_bytes(shape, 16, 2, Split(tensor=2))  # replicated
    assert block_bytes(shape, 16, 1, Split()) == block_bytes(shape, 16, 2, Split()) // 2


def test_activations_grow_with_tokens_and_shrink_with_ranks(shape: ModelShape) -> None:
    one = activation_bytes(shape, 100, 8, Split())
    assert activation_bytes(shape, 200, 8, Split()) > one
    assert activation_bytes(shape, 100, 8, Split(tensor=2)) < one
