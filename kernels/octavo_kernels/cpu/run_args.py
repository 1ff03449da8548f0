"""What a call of the native library points into: a step's batch and the KV cache, checked before the kernels trust them."""

import torch

from octavo_kernels.cpu.native import DTYPE_CODES, BatchStruct, CacheStruct, RunStruct
from octavo_kernels.ops import Batch, CacheShape, KVCache

SLOT_GROUP = 8
"""Slots of a block that attention reads together."""

MAX_HEAD_DIM = 512
"""Elements of a head for which attention surely has scratch (kernels.h: kScratchBytes)."""


def check_cache_shape(shape: CacheShape) -> None:
    """:raises ValueError: for a cache that the kernels cannot read"""
    if shape.dtype not in DTYPE_CODES:
        raise ValueError(f"the cpu backend keeps the KV cache in float32 or bfloat16, not {shape.dtype}")
    if shape.block_size < 1 or shape.block_size % SLOT_GROUP:
        raise ValueError(f"the cpu backend takes blocks of a multiple of {SLOT_GROUP} tokens, not {shape.block_size}")
    if not 0 < shape.head_dim <= MAX_HEAD_DIM or shape.head_dim % 2:
        raise ValueError(
            f"the cpu backend takes heads of an even number of at most {MAX_HEAD_DIM} elements, not {shape.head_dim}"
        )


def run_struct(cache: KVCache) -> RunStruct:
    """A call on `cache`, which must outlive it; the batch and the arenas are the caller's to add.

    :raises ValueError: as `check_cache_shape`
    """
    shape = cache.shape
    check_cache_shape(shape)
    return RunStruct(
        cache=CacheStruct(
            cache.k.data_ptr(),
            cache.v.data_ptr(),
            DTYPE_CODES[shape.dtype],
            shape.block_size,
            shape.num_kv_heads,
            shape.head_dim,
        ),
        layer_bytes=cache.k.stride(0) * shape.dtype.itemsize,
        num_blocks=shape.num_blocks,
    )


def batch_struct(batch: Batch) -> BatchStruct:
    """Pointers into `batch`, which must outlive it.

    :raises ValueError: when a tensor is not contiguous int32
    """
    return BatchStruct(
        batch.token_ids.shape[0],
        batch.context_len.shape[0],
        batch.block_tables.shape[1],
        batch.logits_rows.shape[0],
        _int32(batch.token_ids, "token_ids"),
        _int32(batch.positions, "positions"),
        _int32(batch.slots, "slots"),
        _int32(batch.query_start, "query_start"),
        _int32(batch.context_len, "context_len"),
        _int32(batch.block_tables, "block_tables"),
        _int32(batch.logits_rows, "logits_rows"),
    )


def _int32(tensor: torch.Tensor, name: str) -> int:
    if tensor.dtype is not torch.int32 or not tensor.is_contiguous():
        raise ValueError(f"batch.{name} must be contiguous int32, not {tensor.dtype} with strides {tensor.stride()}")
    return tensor.data_ptr()
