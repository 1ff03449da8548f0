"""For tests, examples and benchmarks: tiny random checkpoints, and a model on a small paged cache without an engine.

Checkpoints are made by transformers from small configs, so they are exactly what a user would bring. Not for serving.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from octavo_kernels.backend import Backend
from octavo_kernels.ops import CacheShape

from octavo_runtime.engine.plan import Row, StepPlan
from octavo_runtime.model.config import Architecture
from octavo_runtime.model.registry import load_model, no_progress, open_checkpoint
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
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:  # norms and biases start at 1 and 0, which would hide mistakes
                parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def write_tiny_checkpoint(folder: Path, architecture: Architecture, seed: int = 0, **overrides: Any) -> Path:
    """`build_tiny_model` saved as safetensors; returns the folder."""
    build_tiny_model(architecture, seed, **overrides).save_pretrained(folder)
    return folder


class PagedModel:
    """A checkpoint on a small paged cache; sequences are fed piece by piece and get the logits of every position."""

    def __init__(
        self, path: Path, backend: Backend, dtype: torch.dtype = torch.float32, block_size: int = 16, num_blocks: int = 64
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
