"""From a path on disk to its `ModelConfig`, reading headers only. Needs no torch."""

from pathlib import Path

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.gguf_header import read_gguf_header
from octavo_runtime.model.config import ModelConfig, read_config
from octavo_runtime.model.gguf_config import gguf_config


def is_gguf(path: Path) -> bool:
    """Whether the path is a GGUF file (by its name)."""
    return path.suffix.lower() == ".gguf"


def read_model_config(path: Path) -> ModelConfig:
    """Config of a Hugging Face folder or a .gguf file. Raises StartError."""
    if is_gguf(path):
        return gguf_config(read_gguf_header(path))
    if not path.exists():
        raise StartError(
            StartCause.MODEL_NOT_FOUND, f"{path} does not exist; check the path or give a Hugging Face id."
        )
    if not path.is_dir():
        raise StartError(
            StartCause.MODEL_UNSUPPORTED,
            f"{path} is neither a folder nor a .gguf file; give one of these or a Hugging Face id.",
        )
    return read_config(path)
