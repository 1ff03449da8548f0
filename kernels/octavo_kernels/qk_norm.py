"""RMS norm of every query and key head on its own, before the rotation (Qwen3).

Gives the reference function. Values pass through unchanged.
"""

import torch

from octavo_kernels.ops import AttentionShape
from octavo_kernels.rms_norm import rms_norm_reference


def qk_norm_reference(
    qkv: torch.Tensor, q_weight: torch.Tensor, k_weight: torch.Tensor, eps: float, shape: AttentionShape
) -> torch.Tensor:
    """qkv [T, (heads + 2 kv_heads) * D], weights [D] -> the same shape."""
    heads = qkv.view(qkv.shape[0], -1, shape.head_dim)  # [T, heads + 2 kv_heads, D]
    q, k, v = torch.split(heads, [shape.num_heads, shape.num_kv_heads, shape.num_kv_heads], dim=1)
    normed = [rms_norm_reference(q, q_weight, eps), rms_norm_reference(k, k_weight, eps), v]
    return torch.cat(normed, dim=1).flatten(1)
