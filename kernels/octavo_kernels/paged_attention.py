"""Causal attention of each row's queries over the blocks of its sequence.

    out = softmax(scale * q K^T + mask) V

K and V come from the paged cache through the row's block table; query heads share K and V in groups of
heads / kv_heads. Gives the reference function: one row after the other, everything float32.
"""

import torch

from octavo_kernels.ops import AttentionShape, Batch, KVCache


def gather_context(
    cache: KVCache, layer: int, block_table: torch.Tensor, context_len: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """K and V of one sequence in order, each [kv_heads, context_len, D] float32."""
    blocks = block_table[: -(-context_len // cache.shape.block_size)]
    k = cache.k[layer].index_select(0, blocks).permute(1, 0, 3, 2)  # [kv_heads, blocks, block_size, D]
    v = cache.v[layer].index_select(0, blocks).permute(1, 0, 2, 3)
    return k.flatten(1, 2)[:, :context_len].float(), v.flatten(1, 2)[:, :context_len].float()


def causal_mask(num_queries: int, context_len: int, sliding_window: int | None) -> torch.Tensor:
    """[num_queries, context_len], True where a query may look; the queries are the last positions of the context."""
    query = torch.arange(context_len - num_queries, context_len).unsqueeze(1)
    key = torch.arange(context_len).unsqueeze(0)
    visible = key <= query
    if sliding_window is not None:
        visible &= key > query - sliding_window
    return visible


def paged_attention_reference(
    q: torch.Tensor, layer: int, shape: AttentionShape, batch: Batch, cache: KVCache
) -> torch.Tensor:
    """q [T, heads * D] -> [T, heads * D] float32."""
    group = shape.num_heads // shape.num_kv_heads
    out = torch.empty_like(q, dtype=torch.float32)
    starts, contexts = batch.query_start.tolist(), batch.context_len.tolist()
    for row, context_len in enumerate(contexts):
        begin, end = starts[row], starts[row + 1]
        k, v = gather_context(cache, layer, batch.block_tables[row], context_len)
        queries = q[begin:end].float().view(end - begin, shape.num_kv_heads, group, shape.head_dim)
        scores = torch.einsum("qhgd,hkd->hgqk", queries, k) * shape.scale
        visible = causal_mask(end - begin, context_len, shape.sliding_window)
        weights = scores.masked_fill(~visible, float("-inf")).softmax(-1)
        out[begin:end] = torch.einsum("hgqk,hkd->qhgd", weights, v).reshape(end - begin, -1)
    return out
