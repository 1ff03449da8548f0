"""The paged KV cache of the backends in plain torch, in ordinary memory that reads as zero."""

import numpy as np
import torch

from octavo_kernels.ops import CacheShape, KVCache


def allocate_cpu_kv_cache(shape: CacheShape) -> KVCache:
    """All zeros, without touching a page: the operating system gives memory only where blocks are really written."""
    blocks = (shape.num_layers, shape.num_blocks, shape.num_kv_heads)
    return KVCache(
        shape,
        untouched_zeros((*blocks, shape.head_dim, shape.block_size), shape.dtype),
        untouched_zeros((*blocks, shape.block_size, shape.head_dim), shape.dtype),
    )


def untouched_zeros(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """As torch.zeros, which writes every page (seconds for some gigabytes); numpy asks the system for zeroed ones."""
    num_bytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return torch.from_numpy(np.zeros(num_bytes, np.uint8)).view(dtype).view(shape)
