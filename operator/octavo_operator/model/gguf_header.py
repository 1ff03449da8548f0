"""What a GGUF file holds, from its beginning: metadata and tensor shapes, without its tensors.

Given a function that reads a span, asked for more until the header is whole. Arrays longer than a few entries (the
tokens) are stepped over. Source of the format: the GGUF specification, versions 2 and 3.
"""

import asyncio
import math
import struct
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from octavo_operator.model.http_get import Span
from octavo_operator.model.shape import corrupt

ReadPart = Callable[[Span], Awaitable[bytes]]

FIRST_READ = 1 << 20  # bytes; a vocabulary and its merges take a few MiB
LONGEST_HEADER = 32 << 20  # bytes: a file whose header is longer is left for the runtime to read

_LAYOUTS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LENGTH = struct.Struct("<Q")
_LONGEST_ARRAY = 256  # entries of an array that is kept: one per layer, not one per token
_MOST_DIMENSIONS = 8
_MOST_NUMBERS = 1 << 50  # in one tensor; beyond it a header is garbage
_SMALLEST = 24  # bytes of magic, version and the two counts


@dataclass(frozen=True, slots=True)
class GgufSummary:
    """`shapes`: rows first, by tensor name."""

    metadata: Mapping[str, Any]
    shapes: Mapping[str, tuple[int, ...]]

    @property
    def total_numbers(self) -> int:
        """Numbers in all tensors."""
        return sum(math.prod(shape) for shape in self.shapes.values())


class NeedsMoreError(Exception):
    """The header goes on behind what was read."""


async def read_gguf(origin: str, size: int, read: ReadPart) -> GgufSummary | None:
    """None when the header is too long to be read from here. Raises ModelProblem(MODEL_CORRUPT) naming `origin`."""
    if size < _SMALLEST:
        raise corrupt(origin, f"it is only {size} bytes long")
    data, wanted = b"", min(size, FIRST_READ)
    while True:
        data += await read(Span(len(data), wanted - len(data)))
        try:
            return await asyncio.to_thread(parse_gguf, origin, data)
        except NeedsMoreError:
            if len(data) < wanted or wanted == size:
                raise corrupt(origin, f"it ends after {len(data)} bytes, within its header") from None
        if wanted >= LONGEST_HEADER:
            return None
        wanted = min(size, 4 * wanted, LONGEST_HEADER)


def parse_gguf(origin: str, data: bytes) -> GgufSummary:
    """Of the beginning of a file."""
    cursor = _Cursor(data)
    try:
        magic, version, num_tensors, num_fields = cursor.unpack("4sIQQ")
        if magic != b"GGUF":
            raise corrupt(origin, "it does not start with GGUF")
        if version not in (2, 3):
            raise corrupt(origin, f"GGUF version {version} is unknown")
        metadata = {name: value for name, value in (cursor.field() for _ in range(num_fields)) if value is not None}
        shapes = dict(cursor.tensor() for _ in range(num_tensors))
    except ValueError as error:
        raise corrupt(origin, str(error)) from None
    return GgufSummary(metadata, shapes)


class _Cursor:
    """A position in the bytes; every method reads one thing and moves on. Raises ValueError and NeedsMoreError."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def unpack(self, layout: str) -> tuple[Any, ...]:
        start = self._at
        self._skip(struct.calcsize(f"<{layout}"))
        return struct.unpack_from(f"<{layout}", self._data, start)

    def field(self) -> tuple[str, Any]:
        """Name and value; None for an array that is stepped over."""
        return self._string(), self._value(self._number("I"))

    def tensor(self) -> tuple[str, tuple[int, ...]]:
        """Its name and shape; where it lies does not matter here."""
        name, num_dimensions = self._string(), self._number("I")
        if num_dimensions > _MOST_DIMENSIONS:
            raise ValueError(f"a tensor has {num_dimensions} dimensions")
        dimensions = self.unpack(f"{num_dimensions}Q")
        if math.prod(dimensions) > _MOST_NUMBERS:
            raise ValueError(f"a tensor has the shape {dimensions}")
        self.unpack("IQ")
        return name, tuple(reversed(dimensions))

    def _skip(self, num_bytes: int) -> None:
        self._at += num_bytes
        if self._at > len(self._data):
            raise NeedsMoreError

    def _number(self, letter: str) -> int:
        (number,) = self.unpack(letter)
        return int(number)

    def _string(self) -> str:
        length = self._number("Q")
        start = self._at
        self._skip(length)
        return self._data[start : self._at].decode(errors="replace")

    def _skip_strings(self, count: int) -> None:
        data, at, end, length_at = self._data, self._at, len(self._data) - _LENGTH.size, _LENGTH.unpack_from
        for _ in range(count):
            if at > end:
                raise NeedsMoreError
            at += _LENGTH.size + length_at(data, at)[0]
        self._at = at
        self._skip(0)

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._array()
        return self.unpack(_layout(kind))[0]

    def _array(self) -> list[Any] | None:
        kind, length = self._number("I"), self._number("Q")
        if kind == _STRING:
            if length <= _LONGEST_ARRAY:
                return [self._string() for _ in range(length)]
            self._skip_strings(length)
            return None
        letter = _layout(kind)
        if length <= _LONGEST_ARRAY:
            return list(self.unpack(f"{length}{letter}"))
        self._skip(length * struct.calcsize(f"<{letter}"))
        return None


def _layout(kind: int) -> str:
    if kind not in _LAYOUTS:
        raise ValueError(f"its header holds a value of the unknown type {kind}")
    return _LAYOUTS[kind]
