"""Header of a GGUF file: metadata, and where each tensor lies.

Read by both processes, so it needs neither torch nor numpy and takes milliseconds: arrays that nobody asked for (the
tokens of a vocabulary) are stepped over. Knows no quantization format; `model/gguf_weights.py` reads the tensors.
Source of the format: the GGUF specification, versions 2 and 3.
"""

import mmap
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octavo_runtime.errors import StartCause, StartError, unreadable

_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_SHORT_ARRAY = 256  # arrays up to this length are always read; longer ones only when named
_MAX_DIMENSIONS = 8
_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True, slots=True)
class GgufTensor:
    """`shape` in torch's order (rows first); `kind` is GGML's number; `offset` is from the start of the file."""

    shape: tuple[int, ...]
    kind: int
    offset: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """Metadata (scalars, strings, and the arrays that were read, as lists) and the tensors by their GGUF names."""

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, GgufTensor]


def read_gguf_header(path: Path, arrays: Collection[str] = ()) -> GgufHeader:
    """The header, with the short arrays and those long ones that `arrays` names.

    Raises StartError: MODEL_NOT_FOUND (also for a file that this user may not read), or MODEL_CORRUPT for one that is no
    GGUF file or ends within its header.
    """
    if not path.is_file():
        raise StartError(
            StartCause.MODEL_NOT_FOUND, f"{path} does not exist; check the path or give a Hugging Face id."
        )
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Cursor(data).header(path, arrays)
    except PermissionError as error:
        raise unreadable(error, path) from error
    except (struct.error, ValueError, IndexError, OverflowError, MemoryError) as error:
        raise corrupt_gguf(path, f"its header is unreadable ({error})") from error


def corrupt_gguf(path: Path, reason: str) -> StartError:
    """One sentence for a file that is not what it should be."""
    return StartError(
        StartCause.MODEL_CORRUPT, f"{path} is damaged or cut off: {reason}; delete it and download it again."
    )


class _Cursor:
    """A position in the mapped file; every method reads one thing and moves on."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def header(self, path: Path, arrays: Collection[str]) -> GgufHeader:
        magic, version, num_tensors, num_fields = self._unpack("4sIQQ")
        if magic != b"GGUF":
            raise ValueError("it does not start with GGUF")
        if version not in (2, 3):
            raise ValueError(f"version {version} is unknown")
        metadata: dict[str, Any] = {}
        for _ in range(num_fields):
            name = self._string()
            value = self._value(self._number("I"), keep=name in arrays)
            if value is not None:
                metadata[name] = value
        found = [self._tensor() for _ in range(num_tensors)]
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or alignment < 1:
            raise ValueError("general.alignment is wrong")
        base = -(-self._at // alignment) * alignment
        tensors = {name: GgufTensor(shape, kind, base + offset) for name, shape, kind, offset in found}
        return GgufHeader(path, metadata, tensors)

    def _unpack(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self._data, self._at)
        self._at += struct.calcsize("<" + layout)
        return values

    def _number(self, letter: str) -> Any:
        return self._unpack(letter)[0]

    def _string(self) -> str:
        start = self._at
        self._skip_strings(1)
        return self._data[start + _LENGTH.size : self._at].decode(errors="replace")

    def _value(self, kind: int, keep: bool) -> Any:
        """None for an array that is stepped over."""
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._array(keep)
        return self._number(_letter(kind))

    def _array(self, keep: bool) -> list[Any] | None:
        kind, length = self._unpack("IQ")
        keep = keep or length <= _MAX_SHORT_ARRAY
        if kind == _STRING:
            if keep:
                return [self._string() for _ in range(length)]
            self._skip_strings(length)
            return None
        layout = f"{length}{_letter(kind)}"
        if keep:
            return list(self._unpack(layout))
        self._at += struct.calcsize("<" + layout)
        return None

    def _skip_strings(self, count: int) -> None:
        data, at, end, unpack = self._data, self._at, len(self._data), _LENGTH.unpack_from
        for _ in range(count):
            at += _LENGTH.size + unpack(data, at)[0]
            if at > end:
                raise ValueError("a string runs over the end")
        self._at = at

    def _tensor(self) -> tuple[str, tuple[int, ...], int, int]:
        """Its name, shape, kind and offset from the first tensor's place."""
        name = self._string()
        num_dims = self._number("I")
        if num_dims > _MAX_DIMENSIONS:
            raise ValueError(f"tensor {name} has {num_dims} dimensions")
        dims = self._unpack(f"{num_dims}Q")
        kind, offset = self._unpack("IQ")
        return name, tuple(reversed(dims)), kind, offset


def _letter(kind: int) -> str:
    if kind not in _FORMATS:
        raise ValueError(f"value type {kind} is unknown")
    return _FORMATS[kind]
