"""Tables of rotation: cosines and sines of every position, with the checkpoint's frequency scaling.

    angle(position, i) = position * frequency[i],  frequency[i] = theta^(-2i / D)

Given a RopeConfig; knows no model. Source of the Llama 3 rule: Hugging Face's `rope_scaling` of type llama3.
"""

import math

import torch

from octavo_runtime.model.config import RopeConfig, RopeScaling


def rope_frequencies(rope: RopeConfig, head_dim: int) -> torch.Tensor:
    """[head_dim / 2] float32."""
    frequencies = 1.0 / rope.theta ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    if rope.scaling is RopeScaling.LINEAR:
        return frequencies / rope.factor
    if rope.scaling is RopeScaling.LLAMA3:
        return _llama3(frequencies, rope)
    return frequencies


def rope_table(frequencies: torch.Tensor, num_positions: int) -> torch.Tensor:
    """[num_positions, D] float32: cosines in the first half, sines in the second."""
    angles = torch.arange(num_positions, dtype=torch.float32).unsqueeze(1) * frequencies
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


def _llama3(frequencies: torch.Tensor, rope: RopeConfig) -> torch.Tensor:
    """Slow rotations are stretched by `factor`, fast ones kept, those between blended by their wavelength."""
    wavelength = 2 * math.pi / frequencies
    original = rope.original_max_positions
    blend = (original / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor)
    blend = blend.clamp(0, 1)  # 0: stretched, 1: kept
    return (1 - blend) * frequencies / rope.factor + blend * frequencies
