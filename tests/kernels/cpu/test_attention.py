"""The native paged attention against the plain torch reference, on every instruction set of the machine.

Slots beyond a context hold NaN, so a read that counts shows in the result; so does an output that is not written. Where
the cache ends against forbidden memory, any read past it is a segmentation fault.
"""

import ctypes
import mmap
from dataclasses import dataclass

import pytest
import torch

from octavo_kernels.cpu.native import Engine, Isa, available_isas
from octavo_kernels.cpu.program_builder import MAX_GROUP
from octavo_kernels.cpu.run_args import MAX_HEAD_DIM
from octavo_kernels.cpu.single_op import paged_attention_native
from octavo_kernels.ops import AttentionShape, Batch, CacheShape, KVCache
from octavo_kernels.paged_attention import paged_attention_reference

pytestmark = pytest.mark.skipif(not available_isas(), reason="the native CPU kernels are not built")

VECTOR_ISAS = [isa for isa in available_isas() if isa <= Isa.AVX512]  # the better ones change matrix products only
LAYER = 1


@dataclass(frozen=True, slots=True)
class Case:
    """Rows of `queries[r]` queries at the end of `contexts[r]` tokens."""

    contexts: tuple[int, ...]
    queries: tuple[int, ...]
    group: int = 3
    kv_heads: int = 2
    head_dim: int = 64
    block_size: int = 16
    dtype: torch.dtype = torch.bfloat16
    window: int | None = None


CASES = {
    "one_token": Case((1,), (1,)),
    "decode": Case((1, 63, 64, 65, 256, 257, 700), (1,) * 7),
    "decode_of_long_context": Case((3000,), (1,)),
    "prefill": Case((1, 7, 130), (1, 7, 130)),
    "prefill_chunks": Case((40, 300, 1000), (33, 64, 100)),
    "mixed": Case((500, 90, 1, 300), (1, 90, 1, 17)),
    "float32_cache": Case((129, 300), (1, 50), dtype=torch.float32),
    "one_query_head_per_kv_head": Case((70, 300), (1, 40), group=1),
    "four_query_heads": Case((70, 300), (1, 40), group=4, head_dim=128),
    "eight_query_heads": Case((70, 300), (1, 40), group=8, kv_heads=1),
    "more_query_heads_than_a_tile": Case((70, 300), (1, 3), group=100, kv_heads=1, head_dim=32),
    "head_dim_that_fills_no_vector": Case((70, 300), (1, 40), head_dim=40),
    "head_dim_that_fills_no_group_of_8": Case((70, 300), (1, 40), head_dim=20),
    "largest_head_dim_and_group": Case((70, 300), (1, 3), group=MAX_GROUP, kv_heads=1, head_dim=MAX_HEAD_DIM),
    "head_dim_80": Case((70, 300), (1, 40), head_dim=80),
    "head_dim_96": Case((70, 300), (1, 40), head_dim=96),
    "head_dim_256": Case((70, 300), (1, 40), head_dim=256),
    "blocks_of_8": Case((70, 300), (1, 40), block_size=8),
    "blocks_of_24": Case((70, 300), (1, 40), block_size=24),
    "blocks_of_32": Case((70, 300), (1, 40), block_size=32),
    "blocks_of_64": Case((70, 300), (1, 40), block_size=64),
    "blocks_of_128": Case((70, 300), (1, 40), block_size=128),
    "window_of_one": Case((70, 300), (1, 40), window=1),
    "window_within_a_tile": Case((70, 300), (1, 40), window=7),
    "window_of_a_tile": Case((70, 300, 900), (1, 40, 100), window=64),
    "window_over_segments": Case((700, 900), (1, 500), window=300),
}


def make_cache(case: Case) -> tuple[KVCache, torch.Tensor]:
    """A cache of NaN but for the contexts' slots, and the block tables, their blocks in random order."""
    needed = [-(-context // case.block_size) for context in case.contexts]
    shape = CacheShape(2, sum(needed) + 3, case.block_size, case.kv_heads, case.head_dim, case.dtype)
    k = torch.full((2, shape.num_blocks, case.kv_heads, case.head_dim, case.block_size), float("nan"), dtype=case.dtype)
    v = torch.full((2, shape.num_blocks, case.kv_heads, case.block_size, case.head_dim), float("nan"), dtype=case.dtype)
    tables = torch.zeros(len(needed), max(needed) + 1, dtype=torch.int32)
    free = torch.randperm(shape.num_blocks).int()
    for row, (context, blocks) in enumerate(zip(case.contexts, needed, strict=True)):
        tables[row, :blocks], free = free[:blocks], free[blocks:]
        for index in range(blocks):
            block, used = tables[row, index], min(case.block_size, context - index * case.block_size)
            k[LAYER, block, :, :, :used] = torch.randn(case.kv_heads, case.head_dim, used)
            v[LAYER, block, :, :used] = torch.randn(case.kv_heads, used, case.head_dim)
    return KVCache(shape, k, v), tables


def against_forbidden_memory(tensor: torch.Tensor) -> torch.Tensor:
    """A copy whose last byte is the last of its page, before one that cannot be read."""
    room = -(-tensor.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, room + mmap.PAGESIZE)
    behind = ctypes.addressof(ctypes.c_char.from_buffer(memory)) + room
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(behind), mmap.PAGESIZE, 0) == 0
    flat = torch.frombuffer(memory, dtype=tensor.dtype, count=tensor.numel(), offset=room - tensor.nbytes)
    return flat.copy_(tensor.flatten()).view(tensor.shape)


def make_batch(contexts: tuple[int, ...], queries: tuple[int, ...], tables: torch.Tensor) -> Batch:
    starts = torch.tensor((0, *queries)).cumsum(0).int()
    nothing = torch.zeros(int(starts[-1]), dtype=torch.int32)
    return Batch(nothing, nothing, nothing, starts, torch.tensor(contexts).int(), tables.contiguous(), nothing[:0])


def attention_shape(case: Case) -> AttentionShape:
    return AttentionShape(case.group * case.kv_heads, case.kv_heads, case.head_dim, case.head_dim**-0.5, case.window)


@pytest.mark.parametrize("isa", VECTOR_ISAS, ids=lambda isa: isa.name)
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_matches_the_reference(case: Case, isa: Isa) -> None:
    torch.manual_seed(0)
    cache, tables = make_cache(case)
    batch = make_batch(case.contexts, case.queries, tables)
    q = torch.randn(sum(case.queries), case.group * case.kv_heads * case.head_dim)
    shape = attention_shape(case)
    expected = paged_attention_reference(q, LAYER, shape, batch, cache)
    for threads in (1, 2):
        out = paged_attention_native(Engine(threads, isa), q, LAYER, shape, batch, cache)
        torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("isa", VECTOR_ISAS, ids=lambda isa: isa.name)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("head_dim", [2, 20, 36, 62, 64, 72, 96])
@pytest.mark.parametrize("block_size", [8, 16, 24, 128])
def test_nothing_beyond_the_cache_is_read(isa: Isa, dtype: torch.dtype, head_dim: int, block_size: int) -> None:
    torch.manual_seed(0)
    case = Case((128, 40), (1, 20), head_dim=head_dim, block_size=block_size, dtype=dtype)
    cache, tables = make_cache(case)
    last = cache.shape.num_blocks - 1
    if not bool((tables == last).any()):
        cache.k[:, last], cache.v[:, last] = cache.k[:, tables[0, 0]], cache.v[:, tables[0, 0]]
        tables[0, 0] = last
    guarded = KVCache(cache.shape, against_forbidden_memory(cache.k), against_forbidden_memory(cache.v))
    shape, batch = attention_shape(case), make_batch(case.contexts, case.queries, tables)
    q = torch.randn(sum(case.queries), shape.num_heads * head_dim)
    expected = paged_attention_reference(q, LAYER, shape, batch, cache)
    out = paged_attention_native(Engine(1, isa), q, LAYER, shape, batch, guarded)
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("isa", VECTOR_ISAS, ids=lambda isa: isa.name)
@pytest.mark.parametrize("window", [None, 100])
@pytest.mark.parametrize("block_size", [8, 16, 128])
def test_a_query_has_the_same_bits_alone_and_in_a_batch_and_in_any_chunk(
    isa: Isa, window: int | None, block_size: int
) -> None:
    torch.manual_seed(0)
    case = Case((700, 300, 40), (1, 120, 40), block_size=block_size, window=window)
    cache, tables = make_cache(case)
    shape = attention_shape(case)
    q = torch.randn(sum(case.queries), shape.num_heads * shape.head_dim)
    two, one = Engine(2, isa), Engine(1, isa)
    together = paged_attention_native(two, q, LAYER, shape, make_batch(case.contexts, case.queries, tables), cache)
    first = 0
    for row, (context, queries) in enumerate(zip(case.contexts, case.queries, strict=True)):
        for chunk in (1, 7, queries):
            count = min(chunk, queries)
            batch = make_batch((context - queries + count,), (count,), tables[row : row + 1])
            alone = paged_attention_native(one, q[first : first + count], LAYER, shape, batch, cache)
            assert torch.equal(alone, together[first : first + count])
        first += queries


@pytest.mark.parametrize("isa", VECTOR_ISAS, ids=lambda isa: isa.name)
def test_threads_that_share_one_context_give_the_bits_of_one_thread_call_after_call(isa: Isa) -> None:
    torch.manual_seed(0)
    case = Case((3000,), (1,), kv_heads=1)
    cache, tables = make_cache(case)
    shape, batch = attention_shape(case), make_batch(case.contexts, case.queries, tables)
    q = torch.randn(1, shape.num_heads * shape.head_dim)
    expected = paged_attention_native(Engine(1, isa), q, LAYER, shape, batch, cache)
    many = Engine(4, isa)
    for _ in range(20):
        assert torch.equal(paged_attention_native(many, q, LAYER, shape, batch, cache), expected)


@pytest.mark.parametrize("isa", VECTOR_ISAS, ids=lambda isa: isa.name)
def test_more_rows_than_the_plan_holds_at_once_are_all_computed(isa: Isa) -> None:
    torch.manual_seed(0)
    case = Case((5,) * 5000, (1,) * 5000, group=1, kv_heads=1, head_dim=8, block_size=8)
    shape = attention_shape(case)
    one_row, tables = make_cache(Case((5,), (1,), group=1, kv_heads=1, head_dim=8, block_size=8))
    batch = make_batch(case.contexts, case.queries, tables.expand(5000, -1))
    q = torch.randn(1, 8).expand(5000, -1).contiguous()
    out = paged_attention_native(Engine(2, isa), q, LAYER, shape, batch, one_row)
    alone = paged_attention_native(Engine(1, isa), q[:1], LAYER, shape, make_batch((5,), (1,), tables), one_row)
    assert torch.equal(out, alone.expand(5000, -1))


@pytest.mark.parametrize("isa", VECTOR_ISAS, ids=lambda isa: isa.name)
def test_scores_far_apart_neither_overflow_nor_vanish(isa: Isa) -> None:
    torch.manual_seed(0)
    case = Case((300,), (20,))
    cache, tables = make_cache(case)
    shape, batch = attention_shape(case), make_batch(case.contexts, case.queries, tables)
    q = torch.randn(20, shape.num_heads * shape.head_dim) * 300
    expected = paged_attention_reference(q, LAYER, shape, batch, cache)
    out = paged_attention_native(Engine(1, isa), q, LAYER, shape, batch, cache)
    torch.testing.assert_close(out, expected, atol=2e-3, rtol=1e-3)
