"""`CacheEngine`: the paged cache on the device, swap space in host memory, and the moves of blocks between them.

Given a backend, a shape and a number of host blocks. Knows block numbers only, no sequences.
"""

from collections.abc import Sequence

import torch

from octavo_kernels.backend import Backend
from octavo_kernels.ops import CacheShape, KVCache
from octavo_runtime.engine.plan import StepPlan

BlockPairs = Sequence[tuple[int, int]]

BLOCKS_PER_MOVE = 64
"""Blocks of one gather and scatter: bounds the temporary copy."""


class CacheEngine:
    """Owns both caches. `host` has the layout of `device` with its own number of blocks."""

    def __init__(self, backend: Backend, shape: CacheShape, num_host_blocks: int) -> None:
        self.device = backend.allocate_kv_cache(shape)
        self._host_k = _host_like(self.device.k, num_host_blocks)
        self._host_v = _host_like(self.device.v, num_host_blocks)

    def move(self, plan: StepPlan) -> None:
        """The plan's block moves in their order: swap out, swap in, copy."""
        if plan.swap_out:
            self.swap_out(plan.swap_out)
        if plan.swap_in:
            self.swap_in(plan.swap_in)
        if plan.copy:
            self.copy(plan.copy)

    def swap_out(self, pairs: BlockPairs) -> None:
        """(device block, host block)."""
        _move(self.device.k, self._host_k, pairs)
        _move(self.device.v, self._host_v, pairs)

    def swap_in(self, pairs: BlockPairs) -> None:
        """(host block, device block)."""
        _move(self._host_k, self.device.k, pairs)
        _move(self._host_v, self.device.v, pairs)

    def copy(self, pairs: BlockPairs) -> None:
        """(source, destination), both on the device; no block is both a source and a destination."""
        _move(self.device.k, self.device.k, pairs)
        _move(self.device.v, self.device.v, pairs)

    @property
    def cache(self) -> KVCache:
        """The cache that the model reads and writes."""
        return self.device


def _host_like(device: torch.Tensor, num_blocks: int) -> torch.Tensor:
    """[layers, num_blocks, ...] in host memory; pages are taken when first written."""
    shape = (device.shape[0], num_blocks, *device.shape[2:])
    return torch.empty(shape, dtype=device.dtype, pin_memory=device.is_cuda)


def _move(source: torch.Tensor, destination: torch.Tensor, pairs: BlockPairs) -> None:
    """destination[:, to] = source[:, from], in groups."""
    for begin in range(0, len(pairs), BLOCKS_PER_MOVE):
        group = torch.tensor(pairs[begin : begin + BLOCKS_PER_MOVE])
        moved = source.index_select(1, group[:, 0].to(source.device))
        destination.index_copy_(1, group[:, 1].to(destination.device), moved.to(destination.device))
