"""For tests, examples and benchmarks: tiny random checkpoints, and a model on a small paged cache without an engine.

Checkpoints are made by transformers from small configs, so they are exactly what a user would bring. Not for serving.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gguf
import torch
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from octavo_kernels.backend import Backend
from octavo_kernels.ops import CacheShape
from octavo_runtime.engine.plan import Row, StepPlan
from octavo_runtime.model.config import Architecture, RopeConfig, parse_config
from octavo_runtime.model.gguf_weights import gguf_stem
from octavo_runtime.model.registry import load_model, no_progress, open_checkpoint
from octavo_runtime.model.rope import rope_frequencies
from octavo_runtime.worker.inputs import InputBuilder

TINY_CONFIGS: Mapping[Architecture, Mapping[str, Any]] = {
    Architecture.LLAMA: {
        "model_type": "llama",
        "rope_parameters": {
            "rope_type": "llama3",
            "rope_theta": 10000.0,
            "factor": 4.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        },
    },
    Architecture.MISTRAL: {"model_type": "mistral", "sliding_window": 12},
    Architecture.QWEN2: {"model_type": "qwen2", "tie_word_embeddings": True},
    Architecture.QWEN3: {"model_type": "qwen3", "head_dim": 32},
}
"""What makes each architecture itself, on top of `TINY_SHAPE`."""

TINY_SHAPE: Mapping[str, Any] = {
    "vocab_size": 160,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "initializer_range": 0.25,
}


def build_tiny_model(architecture: Architecture, seed: int = 0, **overrides: Any) -> Any:
    """A transformers model with random weights, float32; overrides are fields of its config."""
    from transformers import AutoConfig, AutoModelForCausalLM

    fields = {**TINY_SHAPE, **TINY_CONFIGS[architecture], **overrides}
    config = AutoConfig.for_model(**fields)
    torch.manual_seed(seed)
    build: Any = AutoModelForCausalLM.from_config
    model = build(config, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:  # norms and biases start at 1 and 0, which would hide mistakes
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def write_tiny_checkpoint(folder: Path, architecture: Architecture, seed: int = 0, **overrides: Any) -> Path:
    """`build_tiny_model` saved as safetensors; returns the folder."""
    build_tiny_model(architecture, seed, **overrides).save_pretrained(folder)
    return folder


def write_tiny_gguf(path: Path, model: Any, quantization: GGMLQuantizationType) -> Path:
    """A model of `build_tiny_model` as llama.cpp's converter would write it, without a tokenizer; returns the path.

    Vectors stay float32, as do matrices whose rows are no whole number of blocks.
    """
    config, state = model.config, model.state_dict()
    architecture = GGUF_NAMES[config.model_type]
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    if config.rope_parameters["rope_type"] == "llama3":
        plain = RopeConfig(theta=config.rope_parameters["rope_theta"])
        scaled = parse_config({**config.to_dict(), "architectures": [LLAMA]}, "").rope
        factors = rope_frequencies(plain, head_dim) / rope_frequencies(scaled, head_dim)
        writer.add_tensor("rope_freqs.weight", factors.numpy())
    for name, tensor in state.items():
        if name != "lm_head.weight" or not config.tie_word_embeddings:
            _add_gguf_tensor(writer, name, _interleave(name, tensor, architecture, head_dim), quantization)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


GGUF_NAMES = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
"""transformers' model_type -> GGUF's architecture."""

LLAMA = "LlamaForCausalLM"


def _interleave(name: str, tensor: torch.Tensor, architecture: str, head_dim: int) -> torch.Tensor:
    """Llama's q and k rows as the converter orders them: the two halves of a rotation side by side."""
    if architecture != "llama" or not any(part in name for part in (".q_proj.", ".k_proj.")):
        return tensor
    halves = tensor.view(-1, 2, head_dim // 2, *tensor.shape[1:])
    return halves.transpose(1, 2).reshape(tensor.shape)


def _add_gguf_tensor(
    writer: gguf.GGUFWriter, name: str, tensor: torch.Tensor, quantization: GGMLQuantizationType
) -> None:
    stem, kind = name.rsplit(".", 1)
    gguf_name = f"{gguf_stem(stem)}.{kind}"
    block = GGML_QUANT_SIZES[quantization][0]
    if tensor.dim() == 1 or tensor.shape[1] % block:
        quantization = GGMLQuantizationType.F32
    data = gguf.quants.quantize(tensor.contiguous().numpy(), quantization)
    writer.add_tensor(gguf_name, data, raw_dtype=quantization)


class PagedModel:
    """A checkpoint on a small paged cache; sequences are fed piece by piece and get the logits of every position."""

    def __init__(
        self,
        path: Path,
        backend: Backend,
        dtype: torch.dtype = torch.float32,
        block_size: int = 16,
        num_blocks: int = 64,
    ) -> None:
        checkpoint = open_checkpoint(path)
        config = checkpoint.config
        model = load_model(checkpoint, backend, dtype, config.max_positions, no_progress)
        shape = CacheShape(config.num_layers, num_blocks, block_size, config.num_kv_heads, config.head_dim, dtype)
        self.config = config
        self._step = backend.compile(model.forward, backend.allocate_kv_cache(shape), config.vocab_size)
        self._inputs = InputBuilder(block_size)
        self._block_size = block_size
        self._free = torch.randperm(num_blocks, generator=torch.Generator().manual_seed(0)).tolist()
        self._tables: dict[int, list[int]] = {}
        self._lengths: dict[int, int] = {}

    def feed(self, pieces: Sequence[tuple[int, Sequence[int]]]) -> list[torch.Tensor]:
        """(sequence, its next tokens) in one batch -> logits [tokens, vocab] of each."""
        plan = StepPlan(tuple(self._row(sequence, tokens) for sequence, tokens in pieces))
        logits = self._step(self._inputs.build(plan)[0])
        return [part.clone() for part in torch.split(logits, [len(tokens) for _, tokens in pieces])]

    def _row(self, sequence: int, tokens: Sequence[int]) -> Row:
        start = self._lengths.get(sequence, 0)
        table = self._tables.setdefault(sequence, [])
        while len(table) * self._block_size < start + len(tokens):
            table.append(self._free.pop())
        self._lengths[sequence] = start + len(tokens)
        return Row(sequence, tokens, start, tuple(table), prompt_targets=tokens)
