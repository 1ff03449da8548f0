"""How much memory a model needs, from its config alone: weights, cache, activations, longest context.

Pure arithmetic on `ModelConfig`; used by `octavo plan` without loading, and by the worker before it loads.
"""

from dataclasses import dataclass

from octavo_runtime.model.config import ModelConfig
from octavo_runtime.model.dtype import ModelDtype


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """All sizes in bytes; the cache grows by whole blocks of `block_size` tokens."""

    weight_bytes: int
    block_bytes: int
    block_size: int
    max_positions: int

    def blocks_for(self, num_tokens: int) -> int:
        """Blocks that hold one sequence of `num_tokens`."""
        return -(-num_tokens // self.block_size)

    def cache_bytes(self, num_tokens: int) -> int:
        """Cache of one sequence of `num_tokens`."""
        return self.blocks_for(num_tokens) * self.block_bytes

    def longest_context(self, cache_bytes: int) -> int:
        """Tokens of the longest sequence that a cache of this size holds, at most what the model knows."""
        return min(self.max_positions, cache_bytes // self.block_bytes * self.block_size)


def plan_memory(
    config: ModelConfig, dtype: ModelDtype, block_size: int, weight_itemsize: int | None = None
) -> MemoryPlan:
    """`dtype` as stored (not AUTO), for weights and cache.

    `weight_itemsize`: bytes of a number in the weights, where the backend keeps them in another format than the cache.
    """
    block_bytes = 2 * config.num_layers * config.num_kv_heads * config.head_dim * block_size * dtype.itemsize
    weight_bytes = count_parameters(config) * (weight_itemsize or dtype.itemsize)
    return MemoryPlan(weight_bytes, block_bytes, block_size, config.max_positions)


def count_parameters(config: ModelConfig) -> int:
    """Numbers in all weights; tied tables count once."""
    hidden, width = config.hidden_size, config.intermediate_size
    heads = config.num_heads * config.head_dim
    attention = config.qkv_size * hidden + heads * hidden
    attention += config.qkv_size * config.qkv_bias + hidden * config.o_bias + 2 * config.head_dim * config.qk_norm
    mlp = 3 * hidden * width + (2 * width + hidden) * config.mlp_bias
    tables = config.vocab_size * hidden * (1 if config.tie_word_embeddings else 2)
    return tables + config.num_layers * (attention + mlp + 2 * hidden) + hidden


def activation_bytes(config: ModelConfig, num_tokens: int, num_logits: int) -> int:
    """Upper bound of a step's float32 intermediates: `num_tokens` rows of the widest live set, and the logits."""
    row = 4 * config.hidden_size + config.qkv_size + config.num_heads * config.head_dim + 3 * config.intermediate_size
    return 4 * (num_tokens * row + 2 * num_logits * config.vocab_size)
