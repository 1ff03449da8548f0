"""Llama 2 and 3 (and everything built like them: SmolLM2, TinyLlama, Yi, ...).

Pre-norm decoder: grouped-query attention with rotary positions (Llama 3's scaling included), gated SiLU MLP.
"""

from typing import TypeVar

from octavo_kernels.ops import Ops
from octavo_runtime.model.config import ModelConfig
from octavo_runtime.model.layers import load_cos_sin, load_embedding, load_layer, load_lm_head
from octavo_runtime.model.loader import WeightLoader

V = TypeVar("V")


class Llama:
    """Weights and forward of LlamaForCausalLM."""

    def __init__(self, config: ModelConfig, loader: WeightLoader, num_positions: int) -> None:
        self.eps = config.rms_norm_eps
        self.embedding = load_embedding(loader, config)
        cos_sin = load_cos_sin(loader, config, num_positions)
        self.layers = [load_layer(loader, config, layer, cos_sin) for layer in range(config.num_layers)]
        self.norm = loader.vector("model.norm.weight", config.hidden_size)
        self.lm_head = load_lm_head(loader, config, self.embedding)

    def forward(self, ops: Ops[V]) -> V:
        """Logits [L, vocab]. Each norm is joined with the residual addition before it."""
        residual = ops.embedding(self.embedding)
        x = ops.rms_norm(residual, self.layers[0].input_norm, self.eps)
        next_norms = [layer.input_norm for layer in self.layers[1:]] + [self.norm]
        for layer, next_norm in zip(self.layers, next_norms, strict=True):
            x, residual = ops.add_rms_norm(layer.attention(ops, x), residual, layer.post_norm, self.eps)
            x, residual = ops.add_rms_norm(layer.mlp(ops, x), residual, next_norm, self.eps)
        return ops.linear(ops.logits_rows(x), self.lm_head)
