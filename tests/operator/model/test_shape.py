from typing import Any

import msgspec
import pytest

from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.shape import (
    ModelShape,
    count_parameters,
    layer_parameters,
    shape_of_config,
    shape_of_gguf,
    table_parameters,
)
from octavo_operator.reasons import Reason

GGUF = {
    "general.architecture": "qwen2",
    "qwen2.block_count": 4,
    "qwen2.embedding_length": 32,
    "qwen2.feed_forward_length": [48, 48, 48, 48],
    "qwen2.attention.head_count": 4,
    "qwen2.attention.head_count_kv": 2,
    "qwen2.context_length": 512,
}


def test_a_config_gives_the_sizes(tiny_config: dict[str, Any]) -> None:
    shape = shape_of_config(tiny_config, "config.json")
    assert (shape.num_layers, shape.num_heads, shape.num_kv_heads, shape.head_dim) == (4, 4, 2, 8)
    assert shape.max_positions == 512


def test_what_a_config_leaves_out_has_the_defaults_of_its_kind(tiny_config: dict[str, Any]) -> None:
    for name in ("num_key_value_heads", "head_dim", "max_position_embeddings", "tie_word_embeddings"):
        tiny_config.pop(name)
    shape = shape_of_config(tiny_config, "config.json")
    assert (shape.num_kv_heads, shape.head_dim, shape.max_positions, shape.tie_word_embeddings) == (4, 8, 2048, False)
    qwen3 = shape_of_config(tiny_config | {"architectures": ["Qwen3ForCausalLM"]}, "config.json")
    assert (qwen3.head_dim, qwen3.qk_norm) == (128, True)


@pytest.mark.parametrize("value", [0, -1, 1 << 40, "4", 4.0, True, [4, 5], [], None])
def test_a_wrong_size_is_a_damaged_model_and_named(tiny_config: dict[str, Any], value: object) -> None:
    with pytest.raises(ModelProblem, match="num_hidden_layers") as caught:
        shape_of_config(tiny_config | {"num_hidden_layers": value}, "org/x: config.json")
    assert caught.value.reason is Reason.MODEL_CORRUPT


def test_heads_that_cannot_share_key_value_heads_are_a_damaged_model(tiny_config: dict[str, Any]) -> None:
    with pytest.raises(ModelProblem, match="cannot share"):
        shape_of_config(tiny_config | {"num_key_value_heads": 3}, "config.json")


@pytest.mark.parametrize("names", [None, "LlamaForCausalLM", [1]])
def test_architectures_of_a_wrong_form_are_unsupported(tiny_config: dict[str, Any], names: object) -> None:
    with pytest.raises(ModelProblem) as caught:
        shape_of_config(tiny_config | {"architectures": names}, "config.json")
    assert caught.value.reason is Reason.MODEL_UNSUPPORTED


def test_a_gguf_file_gives_the_sizes_of_its_header() -> None:
    shapes = {"token_embd.weight": (64, 32), "blk.0.attn_q.bias": (32,)}
    shape = shape_of_gguf(GGUF, shapes, "x.gguf")
    assert (shape.architecture, shape.vocab_size, shape.intermediate_size) == ("Qwen2ForCausalLM", 64, 48)
    assert (shape.tie_word_embeddings, shape.qkv_bias, shape.o_bias) == (True, True, False)
    assert not shape_of_gguf(GGUF, shapes | {"output.weight": (64, 32)}, "x.gguf").tie_word_embeddings


def test_a_gguf_file_without_an_embedding_is_damaged() -> None:
    with pytest.raises(ModelProblem, match="token_embd"):
        shape_of_gguf(GGUF, {}, "x.gguf")


def test_parameters_are_counted_from_the_sizes(tiny_config: dict[str, Any]) -> None:
    shape = shape_of_config(tiny_config, "config.json")
    layer = (4 + 2 * 2) * 8 * 32 + 32 * 32 + 3 * 32 * 48 + 2 * 32
    assert count_parameters(shape) == 64 * 32 + 4 * layer + 32
    untied = msgspec.structs.replace(shape, tie_word_embeddings=False)
    assert count_parameters(untied) - count_parameters(shape) == table_parameters(shape)


def test_a_layer_is_divided_but_for_its_norms(tiny_config: dict[str, Any]) -> None:
    shape = shape_of_config(tiny_config, "config.json")
    norms = 2 * 32
    assert layer_parameters(shape, 2) - norms == (layer_parameters(shape) - norms) // 2


def test_fewer_key_value_heads_than_devices_are_replicated(tiny_config: dict[str, Any]) -> None:
    shape = shape_of_config(tiny_config, "config.json")
    whole = layer_parameters(shape, 4) * 4
    assert whole > layer_parameters(shape)


def test_a_shape_survives_the_way_through_json(tiny_config: dict[str, Any]) -> None:
    shape = shape_of_config(tiny_config, "config.json")
    assert msgspec.convert(msgspec.to_builtins(shape), ModelShape) == shape
