"""Qwen2 and Qwen2.5: the plain decoder with a bias on q, k and v, tied embeddings in the small ones.

The bias belongs to the packed projection (`ModelConfig.qkv_bias`).
"""

from octavo_runtime.model.decoder import Decoder


class Qwen2(Decoder):
    """Qwen2ForCausalLM: overrides nothing."""
