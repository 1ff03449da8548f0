"""Native ops called on their own, outside a program: for tests against the references and for benchmarks.

Same arguments as the `<op>_reference` functions, plus the `Engine` that computes.
"""

import torch

from octavo_kernels.cpu.native import (
    DTYPE_CODES,
    BatchStruct,
    CacheStruct,
    Engine,
    OpCode,
    OpStruct,
    Rows,
    RunStruct,
    ValueStruct,
)
from octavo_kernels.ops import AttentionShape, Batch, KVCache


def paged_attention_native(
    engine: Engine, q: torch.Tensor, layer: int, shape: AttentionShape, batch: Batch, cache: KVCache
) -> torch.Tensor:
    """q [T, heads * D] float32 -> [T, heads * D] float32.

    :raises ValueError: when the batch names blocks that do not exist or its rows do not cover the tokens
    """
    num_tokens, width = q.shape
    arena = torch.full((2, num_tokens, width), float("nan"))
    arena[0] = q
    op = OpStruct(
        code=OpCode.PAGED_ATTENTION,
        input=ValueStruct(0, 0, width, width, Rows.TOKENS),
        out=ValueStruct(width, 0, width, width, Rows.TOKENS),
        layer=layer,
        num_heads=shape.num_heads,
        sliding_window=shape.sliding_window or 0,
        scale=shape.scale,
    )
    args = RunStruct(
        batch=batch_struct(batch),
        cache=cache_struct(cache),
        num_blocks=cache.shape.num_blocks,
        token_arena=arena.data_ptr(),
    )
    args.layer_bytes = cache.k.stride(0) * cache.shape.dtype.itemsize
    engine.run((OpStruct * 1)(op), args)
    return arena[1]


def batch_struct(batch: Batch) -> BatchStruct:
    """Pointers into `batch`, which must outlive it."""
    return BatchStruct(
        batch.token_ids.shape[0],
        batch.context_len.shape[0],
        batch.block_tables.shape[1],
        batch.logits_rows.shape[0],
        batch.token_ids.data_ptr(),
        batch.positions.data_ptr(),
        batch.slots.data_ptr(),
        batch.query_start.data_ptr(),
        batch.context_len.data_ptr(),
        batch.block_tables.data_ptr(),
        batch.logits_rows.data_ptr(),
    )


def cache_struct(cache: KVCache) -> CacheStruct:
    """Pointers into `cache`, which must outlive it."""
    shape = cache.shape
    return CacheStruct(
        cache.k.data_ptr(),
        cache.v.data_ptr(),
        DTYPE_CODES[shape.dtype],
        shape.block_size,
        shape.num_kv_heads,
        shape.head_dim,
    )
