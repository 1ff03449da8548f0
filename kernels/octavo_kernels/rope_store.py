"""Rotary position embedding of q and k, and the write of k and v into the paged cache.

    out[:D/2] = x[:D/2] * cos - x[D/2:] * sin
    out[D/2:] = x[D/2:] * cos + x[:D/2] * sin

Gives the reference function (halves-style rotation, as in Hugging Face checkpoints).
"""

import torch

from octavo_kernels.ops import AttentionShape, Batch, KVCache


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """x [T, heads, D], cos and sin [T, 1, D/2] -> rotated x."""
    low, high = x.chunk(2, dim=-1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], dim=-1)


def rope_store_reference(
    qkv: torch.Tensor, cos_sin: torch.Tensor, layer: int, shape: AttentionShape, batch: Batch, cache: KVCache
) -> torch.Tensor:
    """qkv [T, (heads + 2 kv_heads) * D], cos_sin [max_positions, D] -> rotated q [T, heads * D]; fills the slots."""
    heads = qkv.view(qkv.shape[0], -1, shape.head_dim)
    q, k, v = torch.split(heads, [shape.num_heads, shape.num_kv_heads, shape.num_kv_heads], dim=1)
    cos, sin = cos_sin.index_select(0, batch.positions).unsqueeze(1).chunk(2, dim=-1)  # [T, 1, D/2] each
    block = (batch.slots // cache.shape.block_size).long()
    offset = (batch.slots % cache.shape.block_size).long()
    cache.k[layer][block, :, :, offset] = rotate(k, cos, sin).to(cache.k.dtype)
    cache.v[layer][block, :, offset] = v.to(cache.v.dtype)
    return rotate(q, cos, sin).flatten(1)
