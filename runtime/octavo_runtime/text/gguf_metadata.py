"""Metadata of a GGUF file: names to values, read in milliseconds.

Reads the header only and walks over arrays that nobody asked for, because the token list of a vocabulary costs seconds
when every string becomes an object. Knows no tensors (`model/` reads those).
"""

import mmap
import struct
from collections.abc import Collection
from pathlib import Path

from octavo_runtime.errors import StartCause, StartError

MetadataValue = bool | int | float | str | list[bool] | list[int] | list[float] | list[str]

_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_MAX_SHORT_ARRAY = 256  # arrays up to this length are always read; longer ones only when named


def read_gguf_metadata(path: Path, arrays: Collection[str] = ()) -> dict[str, MetadataValue]:
    """All scalar and string values of the file, short arrays, and the long arrays named in `arrays`.

    Raises StartError(MODEL_CORRUPT) for a file that is not GGUF version 2 or 3 or ends too early.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _Reader(data).metadata(arrays)
    except (struct.error, ValueError, IndexError, UnicodeDecodeError) as error:
        message = f"{path} is not a complete GGUF file ({error}); download it again."
        raise StartError(StartCause.MODEL_CORRUPT, message) from error


class _Reader:
    """A position in the mapped file; every method reads one thing and moves on."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self._at = 0

    def metadata(self, arrays: Collection[str]) -> dict[str, MetadataValue]:
        if self._data[:4] != b"GGUF":
            raise ValueError("it does not start with GGUF")
        self._at = 4
        version = self._number("I")
        if version not in (2, 3):
            raise ValueError(f"version {version} is not supported")
        self._number("Q")  # number of tensors
        found: dict[str, MetadataValue] = {}
        for _ in range(int(self._number("Q"))):
            key = self._string()
            value = self._value(int(self._number("I")), keep=key in arrays)
            if value is not None:
                found[key] = value
        return found

    def _number(self, letter: str) -> bool | int | float:
        value: bool | int | float = struct.unpack_from("<" + letter, self._data, self._at)[0]
        self._at += struct.calcsize("<" + letter)
        return value

    def _string(self) -> str:
        return self._bytes().decode("utf-8", errors="replace")

    def _bytes(self) -> bytes:
        length = int(self._number("Q"))
        if self._at + length > len(self._data):
            raise ValueError("a string runs past the end of the file")
        raw = self._data[self._at : self._at + length]
        self._at += length
        return raw

    def _value(self, kind: int, keep: bool) -> MetadataValue | None:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._array(keep)
        if kind not in _FORMATS:
            raise ValueError(f"value type {kind} is unknown")
        return self._number(_FORMATS[kind])

    def _array(self, keep: bool) -> MetadataValue | None:
        kind, length = int(self._number("I")), int(self._number("Q"))
        keep = keep or length <= _MAX_SHORT_ARRAY
        if kind == _STRING:
            if keep:
                return [self._string() for _ in range(length)]
            self._skip_strings(length)
            return None
        if kind not in _FORMATS:
            raise ValueError(f"array type {kind} is not supported")
        layout = f"<{length}{_FORMATS[kind]}"
        start, self._at = self._at, self._at + struct.calcsize(layout)
        return list(struct.unpack_from(layout, self._data, start)) if keep else None

    def _skip_strings(self, length: int) -> None:
        data, at, unpack = self._data, self._at, struct.Struct("<Q").unpack_from
        for _ in range(length):
            at += 8 + unpack(data, at)[0]
        self._at = at
