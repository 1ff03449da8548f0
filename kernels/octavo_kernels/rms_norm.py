"""Root-mean-square norm, alone and after the residual addition that comes before it in every layer.

    y = x / sqrt(mean(x^2) + eps) * weight

Gives the reference functions; statistics are float32 whatever the activations are.
"""

import torch


def rms_norm_reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """x [..., H], weight [H] -> [..., H] in float32."""
    x = x.float()
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight.float()


def add_rms_norm_reference(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """(rms_norm(x + residual), x + residual), all [T, H]."""
    total = x.float() + residual.float()
    return rms_norm_reference(total, weight, eps), total
