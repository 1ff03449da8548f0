"""Which backend computes, decided once at start.

A `Backend` packs weights into the form its ops multiply, allocates the KV cache, turns a model's forward into a step
function, and samples. `select_backend` is the only place that looks at the machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from octavo_kernels.ops import Batch, CacheShape, KVCache, Ops, PackedLinear

StepFunction = Callable[[Batch], torch.Tensor]
"""One model step: Batch -> logits [L, vocab] float32, valid until the next call."""


@dataclass(frozen=True, slots=True)
class SamplingBatch:
    """Per-draw sampling parameters; draw i takes its distribution from logits row `rows[i]`. Arrays on the logits' device."""

    rows: torch.Tensor  # [S] int32
    temperature: torch.Tensor  # [S] float32; 0 = greedy
    top_k: torch.Tensor  # [S] int32; 0 = off
    top_p: torch.Tensor  # [S] float32; 1 = off
    min_p: torch.Tensor  # [S] float32; 0 = off
    uniform: torch.Tensor  # [S] float32 in [0, 1), the one random number of the draw


class Backend(Protocol):
    """The machine's way to run a model: `reference`, `cpu` or (later) `triton`."""

    name: str

    def pack_linear(self, weight: torch.Tensor, bias: torch.Tensor | None) -> PackedLinear:
        """weight [N, K] of the model's dtype; the caller drops its own copy after."""
        ...

    def allocate_kv_cache(self, shape: CacheShape) -> KVCache: ...

    def compile(self, forward: Callable[[Ops[Any]], Any], cache: KVCache, vocab_size: int) -> StepFunction:
        """`forward(ops)` returns the logits [L, vocab]; the step function runs it for one Batch."""
        ...

    def sample(self, logits: torch.Tensor, draws: SamplingBatch) -> torch.Tensor:
        """logits [L, vocab] float32, contiguous -> token ids [S] int32 (see `sampling.py`)."""
        ...
