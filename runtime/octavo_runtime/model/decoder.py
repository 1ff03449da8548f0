"""`Decoder`: the pre-norm transformer that every architecture here is, from token ids to logits.

Each norm is joined with the residual addition before it. An architecture's file derives from it and overrides what is its
own; numbers (heads, windows, biases, scaling) come with `ModelConfig`.
"""

from typing import TypeVar

import torch

from octavo_kernels.ops import Ops
from octavo_runtime.model.config import ModelConfig
from octavo_runtime.model.layers import (
    Attention,
    DecoderLayer,
    load_attention,
    load_cos_sin,
    load_embedding,
    load_lm_head,
    load_mlp,
)
from octavo_runtime.model.loader import WeightLoader

V = TypeVar("V")


class Decoder:
    """Embedding, layers, final norm, lm_head."""

    def __init__(self, config: ModelConfig, loader: WeightLoader, num_positions: int) -> None:
        """Reads all weights; rotations for positions 0 ... num_positions - 1. Raises StartError(MODEL_CORRUPT)."""
        self.eps = config.rms_norm_eps
        self.embedding = load_embedding(loader, config)
        cos_sin = load_cos_sin(loader, config, num_positions)
        self.layers = [self.load_layer(loader, config, layer, cos_sin) for layer in range(config.num_layers)]
        self.norm = loader.vector("model.norm.weight", config.hidden_size)
        self.lm_head = load_lm_head(loader, config, self.embedding)

    def load_layer(self, loader: WeightLoader, config: ModelConfig, layer: int, cos_sin: torch.Tensor) -> DecoderLayer:
        """Layer `layer` with its two norms."""
        stem = f"model.layers.{layer}"
        return DecoderLayer(
            input_norm=loader.vector(f"{stem}.input_layernorm.weight", config.hidden_size),
            attention=self.load_attention(loader, config, layer, cos_sin),
            post_norm=loader.vector(f"{stem}.post_attention_layernorm.weight", config.hidden_size),
            mlp=load_mlp(loader, config, layer),
        )

    def load_attention(self, loader: WeightLoader, config: ModelConfig, layer: int, cos_sin: torch.Tensor) -> Attention:
        """The attention of layer `layer`."""
        return load_attention(loader, config, layer, cos_sin)

    def forward(self, ops: Ops[V]) -> V:
        """Logits [L, vocab], float32."""
        residual = ops.embedding(self.embedding)
        x = ops.rms_norm(residual, self.layers[0].input_norm, self.eps)
        next_norms = [layer.input_norm for layer in self.layers[1:]] + [self.norm]
        for layer, next_norm in zip(self.layers, next_norms, strict=True):
            x, residual = ops.add_rms_norm(layer.attention(ops, x), residual, layer.post_norm, self.eps)
            x, residual = ops.add_rms_norm(layer.mlp(ops, x), residual, next_norm, self.eps)
        return ops.linear(ops.logits_rows(x), self.lm_head)
