"""The `reference` backend: every op is its reference function in plain torch, computed at once.

Slow and obviously right; the other backends are tested against it. Activations are float32.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from octavo_kernels.backend import SamplingBatch, StepFunction
from octavo_kernels.embedding import embedding_reference
from octavo_kernels.kv_cache import allocate_cpu_kv_cache
from octavo_kernels.linear import DenseLinear, linear_reference
from octavo_kernels.logits_rows import logits_rows_reference
from octavo_kernels.ops import AttentionShape, Batch, CacheShape, KVCache, Ops, PackedLinear
from octavo_kernels.paged_attention import paged_attention_reference
from octavo_kernels.qk_norm import qk_norm_reference
from octavo_kernels.rms_norm import add_rms_norm_reference, rms_norm_reference
from octavo_kernels.rope_store import rope_store_reference
from octavo_kernels.sampling import sample_reference
from octavo_kernels.silu_mul import silu_mul_reference


@dataclass(frozen=True, slots=True)
class ReferenceOps:
    """The ops of one step on torch tensors."""

    batch: Batch
    cache: KVCache

    def embedding(self, table: PackedLinear) -> torch.Tensor:
        return embedding_reference(_dense(table).weight, self.batch.token_ids)

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        return rms_norm_reference(x, weight, eps)

    def add_rms_norm(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return add_rms_norm_reference(x, residual, weight, eps)

    def linear(self, x: torch.Tensor, weight: PackedLinear) -> torch.Tensor:
        dense = _dense(weight)
        return linear_reference(x, dense.weight, dense.bias)

    def qk_norm(
        self, qkv: torch.Tensor, q_weight: torch.Tensor, k_weight: torch.Tensor, eps: float, shape: AttentionShape
    ) -> torch.Tensor:
        return qk_norm_reference(qkv, q_weight, k_weight, eps, shape)

    def rope_store(self, qkv: torch.Tensor, cos_sin: torch.Tensor, layer: int, shape: AttentionShape) -> torch.Tensor:
        return rope_store_reference(qkv, cos_sin, layer, shape, self.batch, self.cache)

    def paged_attention(self, q: torch.Tensor, layer: int, shape: AttentionShape) -> torch.Tensor:
        return paged_attention_reference(q, layer, shape, self.batch, self.cache)

    def silu_mul(self, gate_up: torch.Tensor) -> torch.Tensor:
        return silu_mul_reference(gate_up)

    def logits_rows(self, x: torch.Tensor) -> torch.Tensor:
        return logits_rows_reference(x, self.batch.logits_rows)


class ReferenceBackend:
    """Plain torch on the CPU; weights stay as they come."""

    name = "reference"

    def stored_dtype(self, dtype: torch.dtype) -> torch.dtype:
        return dtype

    def pack_linear(self, weight: torch.Tensor, bias: torch.Tensor | None) -> DenseLinear:
        return DenseLinear(weight, bias)

    def allocate_kv_cache(self, shape: CacheShape) -> KVCache:
        return allocate_cpu_kv_cache(shape)

    def compile(self, forward: Callable[[Ops[Any]], Any], cache: KVCache, vocab_size: int) -> StepFunction:
        def step(batch: Batch) -> torch.Tensor:
            with torch.inference_mode():
                logits: torch.Tensor = forward(ReferenceOps(batch, cache))
            return logits.view(-1, vocab_size)

        return step

    def sample(self, logits: torch.Tensor, draws: SamplingBatch) -> torch.Tensor:
        return sample_reference(logits, draws)


def _dense(weight: PackedLinear) -> DenseLinear:
    if not isinstance(weight, DenseLinear):
        raise TypeError(f"the reference backend multiplies DenseLinear weights, not {type(weight).__name__}")
    return weight
