"""Qwen3: no bias, an explicit head size, and an RMS norm on every query and key head before the rotation."""

from dataclasses import replace

import torch

from octavo_runtime.model.config import ModelConfig
from octavo_runtime.model.decoder import Decoder
from octavo_runtime.model.layers import Attention, QkNorm
from octavo_runtime.model.loader import WeightLoader


class Qwen3(Decoder):
    """Qwen3ForCausalLM."""

    def load_attention(self, loader: WeightLoader, config: ModelConfig, layer: int, cos_sin: torch.Tensor) -> Attention:
        """The plain attention, its heads normed."""
        plain = super().load_attention(loader, config, layer, cos_sin)
        stem = f"model.layers.{layer}.self_attn"
        q = loader.vector(f"{stem}.q_norm.weight", config.head_dim)
        k = loader.vector(f"{stem}.k_norm.weight", config.head_dim)
        return replace(plain, qk_norm=QkNorm(q, k, config.rms_norm_eps))
