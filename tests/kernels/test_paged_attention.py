from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from octavo_kernels.ops import AttentionShape
from octavo_kernels.paged_attention import gather_context, paged_attention_reference
from octavo_kernels.torch_cpu_attention import paged_attention_torch

MIXED = [(1, 1), (1, 37), (5, 5), (3, 20), (1, 16), (1, 130), (33, 64)]
SHAPES = [(4, 2, 16, None), (3, 3, 8, 7), (8, 1, 32, 16), (9, 3, 64, None)]


@pytest.fixture(params=SHAPES, ids=str)
def shape(request: pytest.FixtureRequest) -> AttentionShape:
    heads, kv_heads, head_dim, window = request.param
    return AttentionShape(heads, kv_heads, head_dim, head_dim**-0.5, window)


@pytest.mark.parametrize("block_size", [8, 16, 32])
def test_the_reference_equals_attention_over_the_gathered_context(
    make_batch: Callable, make_cache: Callable, shape: AttentionShape, block_size: int
) -> None:
    batch, num_blocks = make_batch(MIXED, block_size)
    cache = make_cache(shape, num_blocks, block_size, torch.float32)
    q = torch.randn(batch.token_ids.shape[0], shape.num_heads * shape.head_dim)
    actual = paged_attention_reference(q, 1, shape, batch, cache)
    group = shape.num_heads // shape.num_kv_heads
    for row, (queries, context) in enumerate(MIXED):
        k, v = gather_context(cache, 1, batch.block_tables[row], context)
        begin, end = batch.query_start[row : row + 2].tolist()
        heads = q[begin:end].view(queries, shape.num_heads, -1).transpose(0, 1)
        distance = torch.arange(context - queries, context)[:, None] - torch.arange(context)
        visible = (distance >= 0) & (distance < (shape.sliding_window or context + 1))
        expected = F.scaled_dot_product_attention(
            heads, k.repeat_interleave(group, 0), v.repeat_interleave(group, 0), attn_mask=visible, scale=shape.scale
        )
        torch.testing.assert_close(actual[begin:end], expected.transpose(0, 1).flatten(1), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_torch_cpu_equals_the_reference(
    make_batch: Callable, make_cache: Callable, shape: AttentionShape, dtype: torch.dtype
) -> None:
    batch, num_blocks = make_batch(MIXED, 16)
    cache = make_cache(shape, num_blocks, 16, dtype)
    q = torch.randn(batch.token_ids.shape[0], shape.num_heads * shape.head_dim)
    expected = paged_attention_reference(q, 0, shape, batch, cache)
    torch.testing.assert_close(paged_attention_torch(q, 0, shape, batch, cache), expected, atol=1e-5, rtol=1e-5)


def test_gathered_context_is_in_the_order_of_the_sequence(make_batch: Callable, make_cache: Callable) -> None:
    shape = AttentionShape(2, 2, 4, 0.5, None)
    batch, num_blocks = make_batch([(1, 21), (1, 9)], 8)
    cache = make_cache(shape, num_blocks, 8, torch.float32)
    table = batch.block_tables[0].tolist()
    k, v = gather_context(cache, 0, batch.block_tables[0], 21)
    assert k.shape == v.shape == (2, 21, 4)
    for position in range(21):
        block, offset = table[position // 8], position % 8
        torch.testing.assert_close(k[:, position], cache.k[0, block, :, :, offset])
        torch.testing.assert_close(v[:, position], cache.v[0, block, :, offset])
