"""Mistral: the plain decoder with a sliding window in every attention.

The window comes with the layer's AttentionShape (`ModelConfig.windows`); blocks outside it stay in the cache.
"""

from octavo_runtime.model.decoder import Decoder


class Mistral(Decoder):
    """MistralForCausalLM: overrides nothing."""
