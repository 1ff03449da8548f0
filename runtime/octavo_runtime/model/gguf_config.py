"""`ModelConfig` from GGUF metadata. Knows no tensor data, only the header."""

from collections.abc import Mapping
from typing import Any

from octavo_runtime.gguf_header import GgufHeader
from octavo_runtime.model.config import (
    Architecture,
    ModelConfig,
    RopeConfig,
    RopeScaling,
    check_config,
    corrupt,
    unsupported,
)

GGUF_ARCHITECTURES = {
    "llama": Architecture.LLAMA,
    "mistral": Architecture.MISTRAL,
    "qwen2": Architecture.QWEN2,
    "qwen3": Architecture.QWEN3,
}
"""GGUF's `general.architecture` -> Hugging Face's class name. Mistral files usually say llama."""


def gguf_config(header: GgufHeader) -> ModelConfig:
    """Raises StartError for an architecture that Octavo does not know or a header that misses a field."""
    origin = str(header.path)
    prefix = header.metadata.get("general.architecture")
    architecture = GGUF_ARCHITECTURES.get(prefix) if isinstance(prefix, str) else None
    if architecture is None:
        known = ", ".join(GGUF_ARCHITECTURES)
        raise unsupported(origin, f"architecture {prefix} is not supported; supported in GGUF are {known}")
    fields = _Fields(header.metadata, str(prefix), origin)
    if fields.get("expert_count"):
        raise unsupported(origin, "it is a mixture of experts, which is not supported yet")
    num_layers, num_heads = fields.positive("block_count"), fields.positive("attention.head_count")
    hidden_size = fields.positive("embedding_length")
    head_dim = fields.positive("attention.key_length", hidden_size // num_heads)
    if fields.positive("rope.dimension_count", head_dim) != head_dim:
        raise unsupported(origin, "it rotates only a part of each head, which is not supported")
    if fields.positive("attention.value_length", head_dim) != head_dim:
        raise unsupported(origin, "its keys and values differ in size, which is not supported")
    window = fields.get("attention.sliding_window") or None
    config = ModelConfig(
        architecture=architecture,
        vocab_size=_vocab_size(header, fields),
        hidden_size=hidden_size,
        intermediate_size=fields.positive("feed_forward_length"),
        num_layers=num_layers,
        num_heads=num_heads,
        num_kv_heads=fields.positive("attention.head_count_kv", num_heads),
        head_dim=head_dim,
        rms_norm_eps=float(fields.get("attention.layer_norm_rms_epsilon") or 1e-6),
        max_positions=fields.positive("context_length", 2048),
        rope=_rope(fields),
        tie_word_embeddings="output.weight" not in header.tensors,
        qkv_bias="blk.0.attn_q.bias" in header.tensors,
        o_bias="blk.0.attn_output.bias" in header.tensors,
        mlp_bias="blk.0.ffn_down.bias" in header.tensors,
        qk_norm=architecture is Architecture.QWEN3,
        windows=(int(window) if window else None,) * num_layers,
    )
    check_config(config, origin)
    return config


class _Fields:
    """The metadata below the architecture's prefix."""

    def __init__(self, metadata: Mapping[str, Any], prefix: str, origin: str) -> None:
        self._metadata = metadata
        self._prefix = prefix
        self.origin = origin

    def get(self, name: str) -> Any:
        return self._metadata.get(f"{self._prefix}.{name}")

    def positive(self, name: str, default: int | None = None) -> int:
        value = self.get(name)
        if value is None:
            value = default
        if isinstance(value, list) and len(set(value)) == 1:  # one entry per layer, all equal
            value = value[0]
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise corrupt(self.origin, f"{self._prefix}.{name} must be a positive integer, got {value!r}")
        return value


def _vocab_size(header: GgufHeader, fields: _Fields) -> int:
    """The embedding's own height; it may be padded beyond the tokens that the file lists."""
    embedding = header.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise corrupt(fields.origin, "tensor token_embd.weight is missing")
    return embedding.shape[0]


def _rope(fields: _Fields) -> RopeConfig:
    """Llama 3's scaling comes as a tensor of factors (`rope_freqs.weight`) instead, read with the weights."""
    kind = fields.get("rope.scaling.type") or "none"
    if kind not in ("none", "linear"):
        raise unsupported(fields.origin, f"rope scaling {kind!r} is not supported; supported in GGUF are none, linear")
    return RopeConfig(
        theta=float(fields.get("rope.freq_base") or 10000.0),
        scaling=RopeScaling.LINEAR if kind == "linear" else RopeScaling.NONE,
        factor=float(fields.get("rope.scaling.factor") or 1.0),
    )
