"""Shapes and batches that the tests of the ops share."""

from collections.abc import Callable

import pytest
import torch

from octavo_kernels.ops import AttentionShape, Batch, CacheShape, KVCache

Rows = list[tuple[int, int]]
"""(queries, context) of each row; the context includes the queries."""


@pytest.fixture
def make_batch() -> Callable[[Rows, int], tuple[Batch, int]]:
    """A batch whose rows own scattered blocks, and the number of blocks in use."""

    def make(rows: Rows, block_size: int) -> tuple[Batch, int]:
        counts = [-(-context // block_size) for _, context in rows]
        order = torch.randperm(sum(counts), generator=torch.Generator().manual_seed(0)).tolist()
        tables = torch.zeros(len(rows), max(counts), dtype=torch.int32)
        positions, slots = [], []
        for row, ((queries, context), count) in enumerate(zip(rows, counts, strict=True)):
            blocks = [order.pop() for _ in range(count)]
            tables[row, :count] = torch.tensor(blocks)
            for position in range(context - queries, context):
                positions.append(position)
                slots.append(blocks[position // block_size] * block_size + position % block_size)
        starts = torch.tensor([0, *(queries for queries, _ in rows)]).cumsum(0)
        tokens = torch.arange(len(positions))
        values = (tokens, positions, slots, starts, [context for _, context in rows])
        converted = [torch.as_tensor(value).to(torch.int32) for value in values]
        return Batch(*converted, tables, tokens[-1:].to(torch.int32)), sum(counts)

    return make


@pytest.fixture
def make_cache() -> Callable[..., KVCache]:
    """A cache of random K and V, NaN nowhere; `fill` overrides the values."""

    def make(
        shape: AttentionShape, num_blocks: int, block_size: int, dtype: torch.dtype, fill: float | None = None
    ) -> KVCache:
        cache_shape = CacheShape(2, num_blocks, block_size, shape.num_kv_heads, shape.head_dim, dtype)
        dims = (2, num_blocks, shape.num_kv_heads)
        generator = torch.Generator().manual_seed(1)
        k = torch.randn(*dims, shape.head_dim, block_size, generator=generator)
        v = torch.randn(*dims, block_size, shape.head_dim, generator=generator)
        if fill is not None:
            k.fill_(fill)
            v.fill_(fill)
        return KVCache(cache_shape, k.to(dtype), v.to(dtype))

    return make
