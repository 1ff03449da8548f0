"""Llama 2 and 3 (and everything built like them: SmolLM2, TinyLlama, Yi, ...).

Grouped-query attention with rotary positions (Llama 3's scaling included) and a gated SiLU MLP: the plain decoder.
"""

from octavo_runtime.model.decoder import Decoder


class Llama(Decoder):
    """LlamaForCausalLM: overrides nothing."""
