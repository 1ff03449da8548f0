"""What a model may call while it computes one step, and the values that a step is given.

`Ops` is generic over the value type: torch tensors for backends that compute at once, symbolic values for a backend
that records the calls once and replays them (the CPU program now, CUDA graphs later). An `Ops` object belongs to one
step: it already knows the step's `Batch` and the KV cache, so a model's forward reads like its paper.
T = tokens in the step, R = rows (sequences), H = hidden size, D = head size, L = logits rows.
"""

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class CacheShape:
    """Size of the paged KV cache. K is kept [blocks, kv_heads, head_dim, block_size] (a score is a sum over head_dim for
    block_size neighbouring tokens), V is kept [blocks, kv_heads, block_size, head_dim]."""

    num_layers: int
    num_blocks: int
    block_size: int
    num_kv_heads: int
    head_dim: int
    dtype: torch.dtype

    @property
    def block_bytes(self) -> int:
        """Bytes of one block: K and V of `block_size` tokens in every layer."""
        return 2 * self.num_layers * self.block_size * self.num_kv_heads * self.head_dim * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class KVCache:
    """The paged cache: `k` [layers, blocks, kv_heads, head_dim, block_size], `v` [layers, blocks, kv_heads, block_size,
    head_dim], both contiguous, of `shape.dtype`."""

    shape: CacheShape
    k: torch.Tensor
    v: torch.Tensor


@dataclass(frozen=True, slots=True)
class Batch:
    """Inputs of one step, all int32, contiguous, on the model's device.

    Row r owns tokens `query_start[r]:query_start[r+1]`; after the step its sequence has `context_len[r]` tokens in the
    cache, so its queries sit at positions `context_len[r] - query_len[r] ... context_len[r] - 1`.
    """

    token_ids: torch.Tensor  # [T]
    positions: torch.Tensor  # [T]
    slots: torch.Tensor  # [T] block * block_size + offset, where this token's K and V are written
    query_start: torch.Tensor  # [R + 1]
    context_len: torch.Tensor  # [R]
    block_tables: torch.Tensor  # [R, max_blocks], padded with 0
    logits_rows: torch.Tensor  # [L] tokens (indices into T) whose logits are wanted


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """Heads of one attention layer and how its scores are limited."""

    num_heads: int
    num_kv_heads: int
    head_dim: int
    scale: float
    sliding_window: int | None  # a query at position p sees positions p - window + 1 ... p


class PackedLinear(Protocol):
    """A weight [out_features, in_features] with optional bias, in the form its backend multiplies fastest."""

    @property
    def in_features(self) -> int: ...

    @property
    def out_features(self) -> int: ...


class Ops(Protocol, Generic[V]):
    """The ops of one step. Activations are float32 or the backend's activation dtype; each file `<op>.py` has the maths."""

    def embedding(self, table: PackedLinear) -> V:
        """Rows of `table` for the step's tokens: [T, H]. The packed [vocab, H] embedding also serves as a tied lm_head."""
        ...

    def rms_norm(self, x: V, weight: torch.Tensor, eps: float) -> V:
        """x [T, H] -> x / rms(x) * weight."""
        ...

    def add_rms_norm(self, x: V, residual: V, weight: torch.Tensor, eps: float) -> tuple[V, V]:
        """(rms_norm(x + residual), x + residual)."""
        ...

    def linear(self, x: V, weight: PackedLinear) -> V:
        """x [T, K] -> x @ weight.T + bias: [T, N]."""
        ...

    def qk_norm(self, qkv: V, q_weight: torch.Tensor, k_weight: torch.Tensor, eps: float, shape: AttentionShape) -> V:
        """RMS norm of each query and key head on its own (Qwen3); qkv [T, (heads + 2 kv_heads) * D], weights [D]."""
        ...

    def rope_store(self, qkv: V, cos_sin: torch.Tensor, layer: int, shape: AttentionShape) -> V:
        """Rotate q and k by position, write k and v into the step's slots of `layer`; the rotated q [T, heads * D].

        `cos_sin` [max_positions, D] float32: cosines in the first half, sines in the second (halves-style rotation)."""
        ...

    def paged_attention(self, q: V, layer: int, shape: AttentionShape) -> V:
        """Causal attention of each row's queries over its blocks: [T, heads * D]. `rope_store` of this layer came before."""
        ...

    def silu_mul(self, gate_up: V) -> V:
        """gate_up [T, 2 I] -> silu(gate) * up: [T, I]."""
        ...

    def logits_rows(self, x: V) -> V:
        """The rows of x [T, H] whose logits are wanted: [L, H]."""
        ...
