"""Paged attention of the `torch_cpu` backend: K and V are gathered, then multiplied by torch's own kernels.

Rows with one query (decode) go together in groups of similar context; rows with more go one by one through fused
attention. Same result as `paged_attention_reference`.
"""

import torch
import torch.nn.functional as F  # noqa: N812

from octavo_kernels.ops import AttentionShape, Batch, KVCache
from octavo_kernels.paged_attention import causal_mask, gather_context

MAX_GATHER_BYTES = 32 << 20
"""Decode rows are gathered in groups of at most this much K; larger temporaries are mapped anew at every step."""


def paged_attention_torch(
    q: torch.Tensor, layer: int, shape: AttentionShape, batch: Batch, cache: KVCache
) -> torch.Tensor:
    """As paged_attention_reference: rows of one query together, in groups of bounded size, longer rows one by one."""
    out = torch.empty_like(q)
    starts, contexts = batch.query_start.tolist(), batch.context_len.tolist()
    decodes = [row for row in range(len(contexts)) if starts[row + 1] - starts[row] == 1]
    for rows in _groups(decodes, contexts, cache):
        tokens = batch.query_start[:-1].index_select(0, torch.tensor(rows, dtype=torch.int32))
        queries = q.index_select(0, tokens)
        blocks = -(-max(contexts[row] for row in rows) // cache.shape.block_size)
        tables = batch.block_tables[rows, :blocks]
        out[tokens.long()] = _attend_decodes(queries, tables, batch.context_len[rows], layer, shape, cache)
    for row, context_len in enumerate(contexts):
        begin, end = starts[row], starts[row + 1]
        if end - begin > 1:
            k, v = gather_context(cache, layer, batch.block_tables[row], context_len)
            out[begin:end] = _attend_prompt(q[begin:end], k, v, shape)
    return out


def _groups(rows: list[int], contexts: list[int], cache: KVCache) -> list[list[int]]:
    """Rows of similar context together, so that little is gathered in vain."""
    token_bytes = cache.shape.num_kv_heads * cache.shape.head_dim * cache.shape.dtype.itemsize
    groups: list[list[int]] = []
    longest = 0
    for row in sorted(rows, key=contexts.__getitem__, reverse=True):
        if (
            not groups
            or (len(groups[-1]) + 1) * longest * token_bytes > MAX_GATHER_BYTES
            or 2 * contexts[row] < longest
        ):
            groups.append([])
            longest = contexts[row]
        groups[-1].append(row)
    return groups


def _attend_decodes(
    queries: torch.Tensor,
    tables: torch.Tensor,
    contexts: torch.Tensor,
    layer: int,
    shape: AttentionShape,
    cache: KVCache,
) -> torch.Tensor:
    """queries [R, heads * D], tables [R, blocks], contexts [R] -> [R, heads * D]."""
    num_rows, num_blocks = tables.shape
    group = shape.num_heads // shape.num_kv_heads
    q = queries.view(num_rows, 1, shape.num_kv_heads, group, shape.head_dim)
    k = cache.k[layer].index_select(0, tables.reshape(-1)).view(num_rows, num_blocks, *cache.k.shape[2:]).float()
    scores = (q @ k).mul_(shape.scale)  # [R, blocks, kv_heads, group, block_size]
    scores = scores.permute(0, 2, 3, 1, 4).reshape(num_rows, shape.num_kv_heads, group, -1)
    positions = torch.arange(scores.shape[-1])
    hidden = positions >= contexts.unsqueeze(1)
    if shape.sliding_window is not None:
        hidden = hidden | (positions < contexts.unsqueeze(1) - shape.sliding_window)
    weights = scores.masked_fill_(hidden.view(num_rows, 1, 1, -1), float("-inf")).softmax(-1)
    v = cache.v[layer].index_select(0, tables.reshape(-1)).view(num_rows, num_blocks, *cache.v.shape[2:]).float()
    weights = weights.view(num_rows, shape.num_kv_heads, group, num_blocks, -1).permute(0, 3, 1, 2, 4)
    return (weights @ v).sum(1).reshape(num_rows, -1)


def _attend_prompt(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, shape: AttentionShape) -> torch.Tensor:
    """q [Q, heads * D], k and v [kv_heads, context, D] -> [Q, heads * D]."""
    num_queries, context_len = q.shape[0], k.shape[1]
    group = shape.num_heads // shape.num_kv_heads
    heads = q.view(num_queries, shape.num_heads, shape.head_dim).transpose(0, 1).unsqueeze(0)
    k, v = k.repeat_interleave(group, 0).unsqueeze(0), v.repeat_interleave(group, 0).unsqueeze(0)
    whole = num_queries == context_len and (shape.sliding_window is None or context_len <= shape.sliding_window)
    mask = None if whole else causal_mask(num_queries, context_len, shape.sliding_window)
    out = F.scaled_dot_product_attention(heads, k, v, attn_mask=mask, is_causal=whole, scale=shape.scale)
    return out.squeeze(0).transpose(0, 1).reshape(num_queries, -1)
