"""Architecture -> class, and from a path on disk to a model that is ready to run.

The dictionary is the list of what Octavo supports; a new architecture is one file and one line here.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

import torch

from octavo_kernels.backend import Backend
from octavo_kernels.ops import Ops
from octavo_runtime.gguf_header import read_gguf_header
from octavo_runtime.model.config import Architecture, ModelConfig
from octavo_runtime.model.config_reader import is_gguf, read_model_config
from octavo_runtime.model.gguf_config import gguf_config
from octavo_runtime.model.gguf_weights import GgufSource
from octavo_runtime.model.llama import Llama
from octavo_runtime.model.loader import Progress, WeightLoader
from octavo_runtime.model.mistral import Mistral
from octavo_runtime.model.qwen2 import Qwen2
from octavo_runtime.model.qwen3 import Qwen3
from octavo_runtime.model.weights import SafetensorsSource, WeightSource

V = TypeVar("V")


class Model(Protocol):
    """What an architecture gives."""

    def forward(self, ops: Ops[V]) -> V: ...


class ModelClass(Protocol):
    """How an architecture is made."""

    def __call__(self, config: ModelConfig, loader: WeightLoader, num_positions: int) -> Model: ...


MODELS: dict[Architecture, ModelClass] = {
    Architecture.LLAMA: Llama,
    Architecture.MISTRAL: Mistral,
    Architecture.QWEN2: Qwen2,
    Architecture.QWEN3: Qwen3,
}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A model on disk, its headers read: config and tensors."""

    config: ModelConfig
    source: WeightSource


def open_checkpoint(path: Path) -> Checkpoint:
    """A folder with config.json and safetensors, or a .gguf file. Raises StartError."""
    if is_gguf(path):
        header = read_gguf_header(path)
        config = gguf_config(header)
        return Checkpoint(config, GgufSource(header, config))
    return Checkpoint(read_model_config(path), SafetensorsSource(path))


def load_model(
    checkpoint: Checkpoint, backend: Backend, dtype: torch.dtype, num_positions: int, progress: Progress
) -> Model:
    """Read and pack all weights, kept in `dtype`; rotations for `num_positions` positions."""
    loader = WeightLoader(checkpoint.source, backend, dtype, progress)
    return MODELS[checkpoint.config.architecture](checkpoint.config, loader, num_positions)


def no_progress(done_bytes: int, total_bytes: int) -> None:
    """A progress callback for those who do not watch."""
