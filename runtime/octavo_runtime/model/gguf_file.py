"""Header of a GGUF file: metadata and where each tensor lies.

Reads only what the engine needs: long string arrays (tokens, merges) are stepped over and known by their length, which
takes milliseconds where a full parse takes seconds. The tokenizer is read elsewhere, from the same file.
Source of the format: the GGUF specification, versions 2 and 3.
"""

import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFValueType

from octavo_runtime.errors import StartCause, StartError


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """`shape` in torch's order (rows first); `offset` is from the start of the file."""

    shape: tuple[int, ...]
    quantization: GGMLQuantizationType
    offset: int
    num_bytes: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Metadata (without string arrays), lengths of all arrays, and the tensors by their GGUF names."""

    path: Path
    metadata: Mapping[str, Any]
    array_lengths: Mapping[str, int]
    tensors: Mapping[str, GgufTensor]


def read_gguf_header(path: Path) -> GgufHeader:
    """Raises StartError when the file is missing, cut off or no GGUF file."""
    if not path.is_file():
        raise StartError(
            StartCause.MODEL_NOT_FOUND, f"{path} does not exist; check the path or give a Hugging Face id."
        )
    size = path.stat().st_size
    if size < 24:
        raise corrupt_gguf(path, f"it is only {size} bytes long")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        try:
            header = _Cursor(data, path).read_header()
        except (struct.error, ValueError, UnicodeDecodeError, OverflowError, MemoryError) as error:
            raise corrupt_gguf(path, f"its header is unreadable ({error})") from error
    for name, tensor in header.tensors.items():
        if tensor.offset + tensor.num_bytes > size:
            needed = max(t.offset + t.num_bytes for t in header.tensors.values())
            raise corrupt_gguf(path, f"it is {size} bytes long, tensor {name} needs {needed}")
    return header


def corrupt_gguf(path: Path, reason: str) -> StartError:
    """One sentence for a file that is not what it should be."""
    return StartError(
        StartCause.MODEL_CORRUPT, f"{path} is damaged or cut off: {reason}; delete it and download it again."
    )


_SCALARS = {
    GGUFValueType.UINT8: "B",
    GGUFValueType.INT8: "b",
    GGUFValueType.UINT16: "H",
    GGUFValueType.INT16: "h",
    GGUFValueType.UINT32: "I",
    GGUFValueType.INT32: "i",
    GGUFValueType.FLOAT32: "f",
    GGUFValueType.BOOL: "?",
    GGUFValueType.UINT64: "Q",
    GGUFValueType.INT64: "q",
    GGUFValueType.FLOAT64: "d",
}


class _Cursor:
    """Walks over the bytes of the header."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self._data = data
        self._path = path
        self._at = 0

    def read_header(self) -> GgufHeader:
        magic, version, num_tensors, num_fields = self._unpack("4sIQQ")
        if magic != b"GGUF":
            raise ValueError("it does not start with GGUF")
        if version not in (2, 3):
            raise ValueError(f"version {version} is unknown")
        metadata: dict[str, Any] = {}
        lengths: dict[str, int] = {}
        for _ in range(num_fields):
            name = self._string()
            kind = GGUFValueType(self._unpack("I")[0])
            if kind is GGUFValueType.ARRAY:
                lengths[name], values = self._array()
                if values is not None:
                    metadata[name] = values
            else:
                metadata[name] = self._value(kind)
        infos = [self._tensor_info() for _ in range(num_tensors)]
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise ValueError("general.alignment is wrong")
        base = -(-self._at // alignment) * alignment
        tensors = {name: _tensor(shape, kind, base + offset) for name, shape, kind, offset in infos}
        return GgufHeader(self._path, metadata, lengths, tensors)

    def _unpack(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self._data, self._at)
        self._at += struct.calcsize("<" + layout)
        return values

    def _string(self) -> str:
        (length,) = self._unpack("Q")
        if length > len(self._data) - self._at:
            raise ValueError("a string runs over the end")
        text = self._data[self._at : self._at + length].decode()
        self._at += length
        return text

    def _value(self, kind: GGUFValueType) -> Any:
        return self._string() if kind is GGUFValueType.STRING else self._unpack(_SCALARS[kind])[0]

    def _array(self) -> tuple[int, tuple[Any, ...] | None]:
        kind, length = self._unpack("IQ")
        kind = GGUFValueType(kind)
        if kind is GGUFValueType.STRING:
            self._skip_strings(length)
            return length, None
        if kind is GGUFValueType.ARRAY:
            raise ValueError("an array of arrays")
        return length, self._unpack(f"{length}{_SCALARS[kind]}")

    def _skip_strings(self, count: int) -> None:
        at, data, end = self._at, self._data, len(self._data)
        for _ in range(count):
            at += 8 + int.from_bytes(data[at : at + 8], "little")
            if at > end:
                raise ValueError("a string runs over the end")
        self._at = at

    def _tensor_info(self) -> tuple[str, tuple[int, ...], GGMLQuantizationType, int]:
        name = self._string()
        (num_dims,) = self._unpack("I")
        if num_dims > 8:
            raise ValueError(f"tensor {name} has {num_dims} dimensions")
        dims = self._unpack(f"{num_dims}Q")
        kind, offset = self._unpack("IQ")
        return name, tuple(reversed(dims)), GGMLQuantizationType(kind), offset


def _tensor(shape: tuple[int, ...], kind: GGMLQuantizationType, offset: int) -> GgufTensor:
    elements = 1
    for dim in shape:
        elements *= dim
    per_block, block_bytes = GGML_QUANT_SIZES[kind]
    return GgufTensor(shape, kind, offset, elements // per_block * block_bytes)
