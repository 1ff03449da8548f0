"""Where weights come from: `WeightSource`, and its form for folders of (sharded) safetensors.

A source knows names, shapes and sizes from the headers and reads one tensor at a time through a memory map, so loading
never holds a second copy of the model. Names are Hugging Face's. Knows no architecture.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import torch
from safetensors import SafetensorError, safe_open

from octavo_runtime.errors import StartCause, StartError, unreadable


class WeightSource(Protocol):
    """Tensors by Hugging Face name."""

    @property
    def origin(self) -> str:
        """The file or folder, for error messages."""
        ...

    @property
    def sizes(self) -> Mapping[str, int]:
        """Bytes each tensor takes in the file; its keys are all names."""
        ...

    def load(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        """The tensor, converted. Raises KeyError for an unknown name, StartError for a damaged file."""
        ...


class SafetensorsSource:
    """A folder with `model.safetensors`, or several files and their `model.safetensors.index.json`."""

    def __init__(self, folder: Path) -> None:
        self.origin = str(folder)
        self._file_of: dict[str, Path] = {}
        self._sizes: dict[str, int] = {}
        try:
            headers = {path: _header(path) for path in _weight_files(folder)}
        except PermissionError as error:
            raise unreadable(error, folder) from error
        for path, header in headers.items():
            for name, size in header.items():
                self._file_of[name] = path
                self._sizes[name] = size

    @property
    def sizes(self) -> Mapping[str, int]:
        return self._sizes

    def load(self, name: str, dtype: torch.dtype) -> torch.Tensor:
        path = self._file_of[name]
        try:
            with safe_open(path, framework="pt") as file:
                tensor: torch.Tensor = file.get_tensor(name)
        except (SafetensorError, OSError, ValueError) as error:
            raise _corrupt(path, str(error)) from error
        if not tensor.is_floating_point():
            raise StartError(
                StartCause.QUANTIZATION_UNSUPPORTED,
                f"{path}: tensor {name} holds {tensor.dtype}; quantized safetensors are not supported yet, "
                "use the bf16 model.",
            )
        return tensor.to(dtype)


def _weight_files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            names = sorted(set(json.loads(index.read_bytes())["weight_map"].values()))
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise _corrupt(index, "it is not a safetensors index") from error
        files = [folder / name for name in names]
    else:
        files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise StartError(
            StartCause.MODEL_NOT_FOUND,
            f"{folder} has no .safetensors file; convert the weights with save_pretrained(safe_serialization=True).",
        )
    for path in files:
        if not path.is_file():
            raise _corrupt(path, "the file is missing though the index names it")
    return files


def _header(path: Path) -> dict[str, int]:
    """Name -> bytes, from the first bytes of the file: 8 bytes of length, then JSON."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            raise _corrupt(path, f"it is only {size} bytes long")
        try:
            header = json.loads(file.read(length))
            ends = {name: entry["data_offsets"] for name, entry in header.items() if name != "__metadata__"}
            needed = 8 + length + max((end for _, end in ends.values()), default=0)
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise _corrupt(path, "its header is unreadable") from error
    if needed > size:
        raise _corrupt(path, f"it is {size} bytes long, its header promises {needed}")
    return {name: end - begin for name, (begin, end) in ends.items()}


def _corrupt(path: Path, reason: str) -> StartError:
    return StartError(
        StartCause.MODEL_CORRUPT, f"{path} is damaged or cut off: {reason}; delete it and download it again."
    )
