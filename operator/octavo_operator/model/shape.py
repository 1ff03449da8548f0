"""`ModelShape`: the numbers of a config.json or GGUF header that the memory plan computes with.

The same reading as the runtime's `ModelConfig`, without what only the model's code needs. Pure.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from octavo_operator.model.architectures import served_architecture, served_gguf_architecture
from octavo_operator.model.problem import ModelProblem
from octavo_operator.reasons import Reason

_DEFAULT_HEAD_DIM = {"Qwen3ForCausalLM": 128}
_LARGEST = (1 << 31) - 1  # of any size; beyond it a file is garbage


class ModelShape(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A decoder-only transformer by its sizes."""

    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_positions: int  # the longest context that the model was made for, tokens
    tie_word_embeddings: bool
    qkv_bias: bool
    o_bias: bool
    mlp_bias: bool
    qk_norm: bool


def shape_of_config(config: Mapping[str, Any], origin: str) -> ModelShape:
    """Of a config.json. Raises ModelProblem(MODEL_UNSUPPORTED) or (MODEL_CORRUPT) naming the field."""
    names = config.get("architectures")
    architecture = served_architecture([str(name) for name in names] if isinstance(names, list) else [], origin)
    read = _Reader(config, origin)
    heads, hidden = read.positive("num_attention_heads"), read.positive("hidden_size")
    bias = bool(config.get("attention_bias", False)) and architecture in ("LlamaForCausalLM", "Qwen3ForCausalLM")
    shape = ModelShape(
        architecture=architecture,
        vocab_size=read.positive("vocab_size"),
        hidden_size=hidden,
        intermediate_size=read.positive("intermediate_size"),
        num_layers=read.positive("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=read.positive("num_key_value_heads", heads),
        head_dim=read.positive("head_dim", _DEFAULT_HEAD_DIM.get(architecture, max(1, hidden // heads))),
        max_positions=read.positive("max_position_embeddings", 2048),
        tie_word_embeddings=bool(config.get("tie_word_embeddings", False)),
        qkv_bias=bias or architecture == "Qwen2ForCausalLM",
        o_bias=bias,
        mlp_bias=bool(config.get("mlp_bias", False)) and architecture == "LlamaForCausalLM",
        qk_norm=architecture == "Qwen3ForCausalLM",
    )
    return _checked(shape, origin)


def shape_of_gguf(metadata: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], origin: str) -> ModelShape:
    """Of a GGUF file: its metadata, and its tensors' shapes (rows first) by name."""
    prefix = metadata.get("general.architecture")
    architecture = served_gguf_architecture(prefix, origin)
    read = _Reader(metadata, origin, f"{prefix}.")
    heads, hidden = read.positive("attention.head_count"), read.positive("embedding_length")
    embedding = shapes.get("token_embd.weight")
    if not embedding:
        raise corrupt(origin, "tensor token_embd.weight is missing")
    shape = ModelShape(
        architecture=architecture,
        vocab_size=embedding[0],
        hidden_size=hidden,
        intermediate_size=read.positive("feed_forward_length"),
        num_layers=read.positive("block_count"),
        num_heads=heads,
        num_kv_heads=read.positive("attention.head_count_kv", heads),
        head_dim=read.positive("attention.key_length", max(1, hidden // heads)),
        max_positions=read.positive("context_length", 2048),
        tie_word_embeddings="output.weight" not in shapes,
        qk_norm=architecture == "Qwen3ForCausalLM",
        qkv_bias="blk.0.attn_q.bias" in shapes,
        o_bias="blk.0.attn_output.bias" in shapes,
        mlp_bias="blk.0.ffn_down.bias" in shapes,
    )
    return _checked(shape, origin)


def count_parameters(shape: ModelShape) -> int:
    """Numbers in all weights; tied tables count once."""
    return table_parameters(shape) + shape.num_layers * layer_parameters(shape) + shape.hidden_size


def table_parameters(shape: ModelShape) -> int:
    """Of the embedding and of the output table, which are one when they are tied."""
    return shape.vocab_size * shape.hidden_size * (1 if shape.tie_word_embeddings else 2)


def layer_parameters(shape: ModelShape, sharing: int = 1) -> int:
    """Of one layer, or the part of one that each of `sharing` devices holds; norms are held by all."""
    hidden, width, head_dim = shape.hidden_size, shape.intermediate_size // sharing, shape.head_dim
    heads, kv_heads = shape.num_heads // sharing, max(1, shape.num_kv_heads // sharing)
    qkv = (heads + 2 * kv_heads) * head_dim
    attention = qkv * hidden + heads * head_dim * hidden
    attention += qkv * shape.qkv_bias + hidden * shape.o_bias + 2 * head_dim * shape.qk_norm
    mlp = 3 * hidden * width + (2 * width + hidden) * shape.mlp_bias
    return attention + mlp + 2 * hidden


def corrupt(origin: str, reason: str) -> ModelProblem:
    """A file contradicts itself or misses a part."""
    return ModelProblem(
        Reason.MODEL_CORRUPT, f"{origin} is damaged: {reason}; upload it again, or choose another revision."
    )


def _checked(shape: ModelShape, origin: str) -> ModelShape:
    if shape.num_heads % shape.num_kv_heads:
        raise corrupt(origin, f"{shape.num_heads} heads cannot share {shape.num_kv_heads} key-value heads")
    return shape


class _Reader:
    """Positive integers of a config, by name."""

    def __init__(self, fields: Mapping[str, Any], origin: str, prefix: str = "") -> None:
        self._fields = fields
        self._origin = origin
        self._prefix = prefix

    def positive(self, name: str, default: int | None = None) -> int:
        value = self._fields.get(f"{self._prefix}{name}")
        if value is None:
            value = default
        if isinstance(value, list) and value and all(item == value[0] for item in value):  # GGUF: one for each layer
            value = value[0]
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
            raise corrupt(self._origin, f"{self._prefix}{name} must be a positive integer, got {str(value)[:40]}")
        return value
