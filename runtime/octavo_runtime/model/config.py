"""`ModelConfig`: the facts of a checkpoint that the model, the cache and the scheduler need, checked once.

Read from a Hugging Face `config.json` here, from GGUF metadata in `gguf_config.py`. Knows no tensors.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from octavo_runtime.errors import StartCause, StartError, unreadable


class Architecture(StrEnum):
    """The architectures that Octavo runs, by their Hugging Face class name."""

    LLAMA = "LlamaForCausalLM"
    MISTRAL = "MistralForCausalLM"
    QWEN2 = "Qwen2ForCausalLM"
    QWEN3 = "Qwen3ForCausalLM"


class RopeScaling(StrEnum):
    """How rotation frequencies are changed to reach beyond the trained context."""

    NONE = "default"
    LINEAR = "linear"
    LLAMA3 = "llama3"


@dataclass(frozen=True, slots=True)
class RopeConfig:
    """Rotary embedding: base `theta` and the scaling; the frequency factors only count for LLAMA3."""

    theta: float = 10000.0
    scaling: RopeScaling = RopeScaling.NONE
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_positions: int = 8192


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Shape of a decoder-only transformer. `windows` holds each layer's sliding window, None = the whole context."""

    architecture: Architecture
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rms_norm_eps: float
    max_positions: int
    rope: RopeConfig
    tie_word_embeddings: bool
    qkv_bias: bool
    o_bias: bool
    mlp_bias: bool
    qk_norm: bool
    windows: tuple[int | None, ...]

    @property
    def qkv_size(self) -> int:
        """Output width of the fused query, key and value projection."""
        return (self.num_heads + 2 * self.num_kv_heads) * self.head_dim


def read_config(folder: Path) -> ModelConfig:
    """Config of a Hugging Face folder. Raises StartError with what is wrong and what to do."""
    path = folder / "config.json"
    if not path.is_file():
        raise StartError(
            StartCause.MODEL_NOT_FOUND,
            f"{folder} has no config.json; give a folder made by save_pretrained, a .gguf file or a Hugging Face id.",
        )
    try:
        fields = json.loads(path.read_bytes())
    except PermissionError as error:
        raise unreadable(error, path) from error
    except ValueError as error:
        raise StartError(
            StartCause.MODEL_CORRUPT, f"{path} is not valid JSON ({error}); download the model again."
        ) from error
    if not isinstance(fields, dict):
        raise StartError(StartCause.MODEL_CORRUPT, f"{path} must hold a JSON object; download the model again.")
    return parse_config(fields, str(path))


def parse_config(fields: Mapping[str, Any], origin: str) -> ModelConfig:
    """`fields` as in config.json; `origin` names the file in errors."""
    architecture = _architecture(fields, origin)
    if fields.get("quantization_config") is not None:
        raise StartError(StartCause.QUANTIZATION_UNSUPPORTED, _quantized(fields["quantization_config"], origin))
    if fields.get("hidden_act", "silu") not in ("silu", "swish"):
        raise unsupported(origin, f"its activation is {fields['hidden_act']!r}, only silu is known")
    read = _Reader(fields, origin)
    num_heads = read.positive("num_attention_heads")
    hidden_size = read.positive("hidden_size")
    bias = bool(fields.get("attention_bias", False)) and architecture in (Architecture.LLAMA, Architecture.QWEN3)
    config = ModelConfig(
        architecture=architecture,
        vocab_size=read.positive("vocab_size"),
        hidden_size=hidden_size,
        intermediate_size=read.positive("intermediate_size"),
        num_layers=read.positive("num_hidden_layers"),
        num_heads=num_heads,
        num_kv_heads=read.positive("num_key_value_heads", num_heads),
        head_dim=read.positive("head_dim", _DEFAULT_HEAD_DIM.get(architecture, hidden_size // num_heads)),
        rms_norm_eps=float(fields.get("rms_norm_eps", 1e-6)),
        max_positions=read.positive("max_position_embeddings", 2048),
        rope=_rope(fields, origin),
        tie_word_embeddings=bool(fields.get("tie_word_embeddings", False)),
        qkv_bias=bias or architecture is Architecture.QWEN2,
        o_bias=bias,
        mlp_bias=bool(fields.get("mlp_bias", False)) and architecture is Architecture.LLAMA,
        qk_norm=architecture is Architecture.QWEN3,
        windows=_windows(fields, architecture, read.positive("num_hidden_layers")),
    )
    check_config(config, origin)
    return config


def check_config(config: ModelConfig, origin: str) -> None:
    """Raises StartError when the shape cannot be that of a model."""
    if config.num_heads % config.num_kv_heads:
        raise corrupt(origin, f"{config.num_heads} heads cannot share {config.num_kv_heads} key-value heads")
    if config.head_dim % 2:
        raise corrupt(origin, f"head_dim {config.head_dim} is odd, so it cannot be rotated")


def unsupported(origin: str, reason: str) -> StartError:
    """The model is fine, Octavo cannot run it."""
    return StartError(StartCause.MODEL_UNSUPPORTED, f"{origin}: {reason}.")


def corrupt(origin: str, reason: str) -> StartError:
    """The file contradicts itself or misses a part."""
    return StartError(StartCause.MODEL_CORRUPT, f"{origin}: {reason}; download the model again.")


_DEFAULT_HEAD_DIM = {Architecture.QWEN3: 128}


@dataclass(frozen=True, slots=True)
class _Reader:
    fields: Mapping[str, Any]
    origin: str

    def positive(self, name: str, default: int | None = None) -> int:
        value = self.fields.get(name)
        if value is None:
            value = default
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise corrupt(self.origin, f"{name} must be a positive integer, got {value!r}")
        return value


def _quantized(quantization: Any, origin: str) -> str:
    method = quantization.get("quant_method") if isinstance(quantization, Mapping) else None
    named = f"as {method}" if isinstance(method, str) else "in an unknown format"
    return f"{origin}: its weights are quantized {named}, which this build does not run; use the bf16 model or a GGUF file."


def _architecture(fields: Mapping[str, Any], origin: str) -> Architecture:
    names = fields.get("architectures") or ["(none)"]
    for name in names:
        if name in Architecture.__members__.values():
            return Architecture(name)
    known = ", ".join(Architecture)
    raise unsupported(origin, f"architecture {names[0]} is not supported; supported are {known}")


def _rope(fields: Mapping[str, Any], origin: str) -> RopeConfig:
    """transformers 5 writes `rope_parameters`, older versions `rope_theta` and `rope_scaling`."""
    rope: Mapping[str, Any] = fields.get("rope_parameters") or fields.get("rope_scaling") or {}
    theta = rope.get("rope_theta") or fields.get("rope_theta") or 10000.0
    if float(rope.get("partial_rotary_factor") or fields.get("partial_rotary_factor") or 1.0) != 1.0:
        raise unsupported(origin, "it rotates only a part of each head, which is not supported")
    kind = rope.get("rope_type") or rope.get("type") or RopeScaling.NONE
    if kind not in RopeScaling.__members__.values():
        raise unsupported(origin, f"rope scaling {kind!r} is not supported; supported are {', '.join(RopeScaling)}")
    return RopeConfig(
        theta=float(theta),
        scaling=RopeScaling(kind),
        factor=float(rope.get("factor") or 1.0),
        low_freq_factor=float(rope.get("low_freq_factor") or 1.0),
        high_freq_factor=float(rope.get("high_freq_factor") or 4.0),
        original_max_positions=int(rope.get("original_max_position_embeddings") or 8192),
    )


def _windows(fields: Mapping[str, Any], architecture: Architecture, num_layers: int) -> tuple[int | None, ...]:
    """Mistral slides in every layer; Qwen only when told to, from layer `max_window_layers` up or by `layer_types`."""
    window = fields.get("sliding_window")
    if architecture is Architecture.LLAMA or window is None:
        return (None,) * num_layers
    if architecture is Architecture.MISTRAL:
        return (int(window),) * num_layers
    if not fields.get("use_sliding_window", False):
        return (None,) * num_layers
    kinds = fields.get("layer_types")
    if kinds is None:
        first = int(fields.get("max_window_layers", num_layers))
        kinds = ["full_attention"] * first + ["sliding_attention"] * (num_layers - first)
    return tuple(int(window) if kind == "sliding_attention" else None for kind in kinds[:num_layers])
