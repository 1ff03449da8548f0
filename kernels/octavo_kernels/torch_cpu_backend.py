"""The `torch_cpu` backend: plain torch made fast enough, for machines where the native module is absent.

Linears are packed for oneDNN (one packed copy, the original is dropped), decode rows attend in one batched product,
prompts through fused attention, and sampling never sorts the vocabulary. The rest are the reference functions.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from octavo_kernels.backend import SamplingBatch, StepFunction
from octavo_kernels.embedding import embedding_reference
from octavo_kernels.kv_cache import allocate_cpu_kv_cache
from octavo_kernels.ops import AttentionShape, Batch, CacheShape, KVCache, Ops, PackedLinear
from octavo_kernels.reference_backend import ReferenceOps
from octavo_kernels.torch_cpu_attention import paged_attention_torch
from octavo_kernels.torch_cpu_sampling import sample_torch


class OneDnnLinear:
    """A weight in oneDNN's blocked layout, until its rows are looked up: then it is unpacked, once, and stays so.

    A table that serves both the lookup and the lm_head is thus in memory once, as rows.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        self.out_features, self.in_features = weight.shape
        self._dtype = weight.dtype
        self._bias = None if bias is None else bias.to(weight.dtype)
        self._rows: torch.Tensor | None = None
        self._packed: torch.Tensor | None = torch.ops.mkldnn._reorder_linear_weight(weight, None)

    def multiply(self, x: torch.Tensor) -> torch.Tensor:
        """x [T, K] float32 -> [T, N] float32."""
        if not x.shape[0]:
            return x.new_empty(0, self.out_features)
        x = x.to(self._dtype)
        if self._packed is None:
            return F.linear(x, self.rows(), self._bias).float()
        y: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, self._packed, self._bias, "none", [], "")
        return y.float()

    def rows(self) -> torch.Tensor:
        """The weight [N, K] in plain order."""
        if self._rows is None:
            if self._packed is None:
                raise RuntimeError("the weight is gone")
            self._rows, self._packed = self._packed.to_dense(), None
        return self._rows


class TorchCpuOps(ReferenceOps):
    """The ops of one step: reference functions, except where they are the bottleneck."""

    __slots__ = ()

    def embedding(self, table: PackedLinear) -> torch.Tensor:
        return embedding_reference(_packed(table).rows(), self.batch.token_ids)

    def rms_norm(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        return F.rms_norm(x, (x.shape[-1],), weight, eps)

    def add_rms_norm(
        self, x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + residual
        return F.rms_norm(total, (x.shape[-1],), weight, eps), total

    def linear(self, x: torch.Tensor, weight: PackedLinear) -> torch.Tensor:
        return _packed(weight).multiply(x)

    def paged_attention(self, q: torch.Tensor, layer: int, shape: AttentionShape) -> torch.Tensor:
        return paged_attention_torch(q, layer, shape, self.batch, self.cache)


class TorchCpuBackend:
    """oneDNN through torch. bf16 weights stay bf16 where the machine has bf16 arithmetic, else they become float32."""

    name = "torch_cpu"

    def __init__(self, num_threads: int) -> None:
        self._num_threads = num_threads
        self._native_bf16 = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()

    def stored_dtype(self, dtype: torch.dtype) -> torch.dtype:
        return torch.float32 if dtype is torch.bfloat16 and not self._native_bf16 else dtype

    def pack_linear(self, weight: torch.Tensor, bias: torch.Tensor | None) -> OneDnnLinear:
        return OneDnnLinear(weight.to(self.stored_dtype(weight.dtype)), bias)

    def allocate_kv_cache(self, shape: CacheShape) -> KVCache:
        return allocate_cpu_kv_cache(shape)

    def compile(self, forward: Callable[[Ops[Any]], Any], cache: KVCache, vocab_size: int) -> StepFunction:
        torch.set_num_threads(self._num_threads)

        def step(batch: Batch) -> torch.Tensor:
            with torch.inference_mode():
                logits: torch.Tensor = forward(TorchCpuOps(batch, cache))
            return logits.view(-1, vocab_size)

        return step

    def sample(self, logits: torch.Tensor, draws: SamplingBatch) -> torch.Tensor:
        return sample_torch(logits, draws)


def _packed(weight: PackedLinear) -> OneDnnLinear:
    if not isinstance(weight, OneDnnLinear):
        raise TypeError(f"torch_cpu multiplies OneDnnLinear weights, not {type(weight).__name__}")
    return weight
