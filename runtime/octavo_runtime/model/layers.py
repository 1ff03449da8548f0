"""The pieces that decoder-only transformers share: attention, MLP, embedding with its lm_head, rotation table.

Each is frozen weights plus a method that calls ops in order; `decoder.py` joins them.
"""

from dataclasses import dataclass
from typing import TypeVar

import torch

from octavo_kernels.ops import AttentionShape, Ops, PackedLinear
from octavo_runtime.model.config import ModelConfig
from octavo_runtime.model.loader import WeightLoader
from octavo_runtime.model.rope import rope_frequencies, rope_table

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class QkNorm:
    """Norm of each query and key head (Qwen3): weights [D]."""

    q: torch.Tensor
    k: torch.Tensor
    eps: float


@dataclass(frozen=True, slots=True)
class Attention:
    """Self-attention of one layer; queries, keys and values come from one product."""

    layer: int
    qkv: PackedLinear
    o: PackedLinear
    cos_sin: torch.Tensor
    shape: AttentionShape
    qk_norm: QkNorm | None = None

    def __call__(self, ops: Ops[V], x: V) -> V:
        """x [T, H] -> [T, H]."""
        qkv = ops.linear(x, self.qkv)
        if self.qk_norm is not None:
            qkv = ops.qk_norm(qkv, self.qk_norm.q, self.qk_norm.k, self.qk_norm.eps, self.shape)
        q = ops.rope_store(qkv, self.cos_sin, self.layer, self.shape)
        return ops.linear(ops.paged_attention(q, self.layer, self.shape), self.o)


@dataclass(frozen=True, slots=True)
class Mlp:
    """Gated MLP; gate and up come from one product."""

    gate_up: PackedLinear
    down: PackedLinear

    def __call__(self, ops: Ops[V], x: V) -> V:
        """x [T, H] -> [T, H]."""
        return ops.linear(ops.silu_mul(ops.linear(x, self.gate_up)), self.down)


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """One layer: norm, attention, norm, MLP."""

    input_norm: torch.Tensor
    attention: Attention
    post_norm: torch.Tensor
    mlp: Mlp


def load_attention(loader: WeightLoader, config: ModelConfig, layer: int, cos_sin: torch.Tensor) -> Attention:
    """The attention of layer `layer`, without norms of its heads."""
    stem = f"model.layers.{layer}.self_attn"
    heads, kv_heads, head_dim = config.num_heads, config.num_kv_heads, config.head_dim
    projections = [f"{stem}.q_proj", f"{stem}.k_proj", f"{stem}.v_proj"]
    rows = [heads * head_dim, kv_heads * head_dim, kv_heads * head_dim]
    return Attention(
        layer=layer,
        qkv=loader.linear(projections, rows, config.hidden_size, config.qkv_bias),
        o=loader.linear([f"{stem}.o_proj"], [config.hidden_size], heads * head_dim, config.o_bias),
        cos_sin=cos_sin,
        shape=AttentionShape(heads, kv_heads, head_dim, head_dim**-0.5, config.windows[layer]),
    )


def load_mlp(loader: WeightLoader, config: ModelConfig, layer: int) -> Mlp:
    """The MLP of layer `layer`."""
    stem, width = f"model.layers.{layer}.mlp", config.intermediate_size
    gate_up = [f"{stem}.gate_proj", f"{stem}.up_proj"]
    return Mlp(
        gate_up=loader.linear(gate_up, [width, width], config.hidden_size, config.mlp_bias),
        down=loader.linear([f"{stem}.down_proj"], [config.hidden_size], width, config.mlp_bias),
    )


def load_embedding(loader: WeightLoader, config: ModelConfig) -> PackedLinear:
    """The table [vocab, H]."""
    return loader.linear(["model.embed_tokens"], [config.vocab_size], config.hidden_size)


def load_lm_head(loader: WeightLoader, config: ModelConfig, embedding: PackedLinear) -> PackedLinear:
    """The output projection: the embedding's own packed table when they are tied."""
    if config.tie_word_embeddings:
        return embedding
    return loader.linear(["lm_head"], [config.vocab_size], config.hidden_size)


def load_cos_sin(loader: WeightLoader, config: ModelConfig, num_positions: int) -> torch.Tensor:
    """Rotations for positions 0 ... num_positions - 1; GGUF files of Llama 3 bring their scaling as divisors."""
    frequencies = rope_frequencies(config.rope, config.head_dim)
    if loader.has("rope_freqs.weight"):
        frequencies = frequencies / loader.vector("rope_freqs.weight", config.head_dim // 2)
    return rope_table(frequencies, num_positions)
