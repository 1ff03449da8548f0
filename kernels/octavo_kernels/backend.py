"""Which backend computes, decided once at start.

A `Backend` packs weights into the form its ops multiply, allocates the KV cache, turns a model's forward into a step
function, and samples. `select_backend` is the only place that looks at the machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Protocol

import torch

from octavo_kernels.backend_name import BackendName
from octavo_kernels.ops import Batch, CacheShape, KVCache, Ops, PackedLinear

StepFunction = Callable[[Batch], torch.Tensor]
"""One model step: Batch -> logits [L, vocab] float32, valid until the next call."""


@dataclass(frozen=True, slots=True)
class SamplingBatch:
    """Per-draw sampling parameters; draw i takes its distribution from logits row `rows[i]`. On the logits' device."""

    rows: torch.Tensor  # [S] int32
    temperature: torch.Tensor  # [S] float32; 0 = greedy
    top_k: torch.Tensor  # [S] int32; 0 = off
    top_p: torch.Tensor  # [S] float32; 1 = off
    min_p: torch.Tensor  # [S] float32; 0 = off
    uniform: torch.Tensor  # [S] float32 in [0, 1), the one random number of the draw


class Backend(Protocol):
    """The machine's way to run a model: `reference`, `cpu` or (later) `triton`."""

    name: str

    def stored_dtype(self, dtype: torch.dtype) -> torch.dtype:
        """The format in which `pack_linear` keeps a weight of `dtype`: what a memory plan counts."""
        ...

    def pack_linear(self, weight: torch.Tensor, bias: torch.Tensor | None) -> PackedLinear:
        """weight [N, K] of the model's dtype; the caller drops its own copy after."""
        ...

    def allocate_kv_cache(self, shape: CacheShape) -> KVCache:
        """Raises ValueError for a cache that the backend's attention cannot read."""
        ...

    def compile(self, forward: Callable[[Ops[Any]], Any], cache: KVCache, vocab_size: int) -> StepFunction:
        """`forward(ops)` returns the logits [L, vocab]; the step function runs it for one Batch.

        Raises ValueError for a model that the backend's kernels are not made for."""
        ...

    def sample(self, logits: torch.Tensor, draws: SamplingBatch) -> torch.Tensor:
        """logits [L, vocab] float32, contiguous -> token ids [S] int32 (see `sampling.py`)."""
        ...


def select_backend(name: BackendName, device: torch.device, num_threads: int, dtype: torch.dtype) -> Backend:
    """The backend for `device`. Raises RuntimeError with what to do when `name` cannot run here.

    Each import belongs to its branch: a backend that is not chosen costs nothing and may be absent.
    """
    if device.type != "cpu":
        raise RuntimeError(f"device {device} is not supported yet; use the device cpu")
    if name is BackendName.REFERENCE:
        from octavo_kernels.reference_backend import ReferenceBackend

        return ReferenceBackend()
    if name is not BackendName.TORCH_CPU and find_spec("octavo_kernels.cpu.backend") is not None:
        from octavo_kernels.cpu import backend as cpu

        if cpu.available():
            return cpu.CpuBackend(num_threads=num_threads, dtype=dtype)
        if name is BackendName.CPU:
            raise RuntimeError(
                "the native CPU module is not built here; install a wheel with it or use the backend torch_cpu"
            )
    from octavo_kernels.torch_cpu_backend import TorchCpuBackend

    return TorchCpuBackend(num_threads)
