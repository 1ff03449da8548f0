import torch

from octavo_kernels.kv_cache import allocate_cpu_kv_cache
from octavo_kernels.ops import CacheShape


def test_a_large_cache_is_zero_in_the_layout_of_the_ops_and_costs_no_memory_yet() -> None:
    shape = CacheShape(4, 50_000, 16, 2, 32, torch.bfloat16)
    cache = allocate_cpu_kv_cache(shape)
    assert cache.k.shape == (4, 50_000, 2, 32, 16)
    assert cache.v.shape == (4, 50_000, 2, 16, 32)
    assert cache.k.is_contiguous()
    assert cache.k.nbytes + cache.v.nbytes == 50_000 * shape.block_bytes
    assert float(cache.k[3, -1].abs().sum() + cache.v[3, -1].abs().sum()) == 0
