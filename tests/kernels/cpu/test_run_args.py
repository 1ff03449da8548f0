"""What the native library is pointed at: caches and batches that its kernels cannot read are refused by name."""

from dataclasses import replace

import pytest
import torch

from octavo_kernels.cpu.backend import CpuBackend
from octavo_kernels.cpu.native import DTYPE_CODES, available_isas
from octavo_kernels.cpu.run_args import batch_struct, run_struct
from octavo_kernels.ops import Batch, CacheShape, KVCache

SHAPE = CacheShape(2, 5, 16, 2, 64, torch.bfloat16)
REFUSED = [
    ({"dtype": torch.float16}, "float32 or bfloat16, not torch.float16"),
    ({"block_size": 0}, "blocks of a multiple of 8 tokens, not 0"),
    ({"block_size": 4}, "blocks of a multiple of 8 tokens, not 4"),
    ({"block_size": 12}, "blocks of a multiple of 8 tokens, not 12"),
    ({"head_dim": 33}, "an even number of at most 512 elements, not 33"),
    ({"head_dim": 514}, "an even number of at most 512 elements, not 514"),
]


def make_cache(shape: CacheShape) -> KVCache:
    return KVCache(shape, *torch.zeros(2, shape.num_layers, shape.num_blocks, 2048, dtype=shape.dtype))


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_a_cache_that_the_kernels_cannot_read_is_refused(change: dict[str, object], message: str) -> None:
    shape = replace(SHAPE, **change)
    with pytest.raises(ValueError, match=message):
        run_struct(make_cache(shape))
    if available_isas():
        with pytest.raises(ValueError, match=message):
            CpuBackend(1, torch.bfloat16).allocate_kv_cache(shape)


def test_a_call_knows_where_the_cache_lies() -> None:
    cache = make_cache(SHAPE)
    args = run_struct(cache)
    assert (args.cache.k, args.cache.v) == (cache.k.data_ptr(), cache.v.data_ptr())
    assert (args.cache.dtype, args.cache.block_size) == (DTYPE_CODES[torch.bfloat16], 16)
    assert (args.layer_bytes, args.num_blocks) == (5 * 2048 * 2, 5)


@pytest.mark.parametrize("name", ["token_ids", "positions", "slots", "query_start", "context_len", "block_tables"])
def test_a_batch_of_another_dtype_or_layout_is_refused_by_its_tensor(name: str) -> None:
    tensors = {key: torch.zeros(4, dtype=torch.int32) for key in Batch.__slots__} | {
        "block_tables": torch.zeros(2, 4, dtype=torch.int32)
    }
    batch_struct(Batch(**tensors))
    strided = torch.zeros(4, 2, dtype=torch.int32)[:, :1].T if name == "block_tables" else torch.zeros(8).int()[::2]
    for bad in (tensors[name].long(), strided):
        with pytest.raises(ValueError, match=f"batch.{name} must be contiguous int32"):
            batch_struct(Batch(**(tensors | {name: bad})))
