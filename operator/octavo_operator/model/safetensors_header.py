"""What safetensors files hold, from their headers: 8 bytes of length, then JSON; read as a span of bytes each.

Given a function that reads; knows no hub and no model. A file that is shorter than its header promises, or whose header
cannot be read, is a ModelProblem(MODEL_CORRUPT) that names it, before anything is downloaded.
"""

import asyncio
import json
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from octavo_operator.model.bounded import map_bounded
from octavo_operator.model.http_get import Span
from octavo_operator.model.shape import corrupt

ReadSpan = Callable[[str, Span], Awaitable[bytes]]
"""Path and span -> bytes, fewer where the file ends."""

FIRST_READ = 64 << 10  # bytes: most headers come whole with the first read
LONGEST_HEADER = 100_000_000  # bytes, the limit of the format
MOST_AT_ONCE = 8  # headers that are read at the same time
MOST_NUMBERS = 1 << 50  # in one tensor; beyond it a header is garbage

_BITS: Mapping[str, int] = {
    "F64": 64, "I64": 64, "U64": 64, "C64": 64,
    "F32": 32, "I32": 32, "U32": 32,
    "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
    "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "I8": 8, "U8": 8, "BOOL": 8,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TensorSummary:
    """All tensors of a model together. `numbers`: how many per number format; `largest`: bytes of the biggest tensor."""

    numbers: Mapping[str, int]
    num_bytes: Mapping[str, int]
    largest: int

    @property
    def total_numbers(self) -> int:
        """Stored numbers; parameters where the weights are not packed."""
        return sum(self.numbers.values())

    @property
    def total_bytes(self) -> int:
        """Bytes of all tensors, as they are stored."""
        return sum(self.num_bytes.values())


class _Tensor(msgspec.Struct, frozen=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


async def read_summary(origin: str, sizes: Mapping[str, int], read: ReadSpan) -> TensorSummary:
    """Of the files in `sizes` (path -> bytes). `origin` goes before the path in errors."""

    async def one(path: str) -> TensorSummary:
        return await _read_header(f"{origin}: {path}", path, sizes[path], read)

    return combine(await map_bounded(MOST_AT_ONCE, one, sizes))


def combine(parts: Sequence[TensorSummary]) -> TensorSummary:
    """The sum of several files."""
    numbers: Counter[str] = Counter()
    num_bytes: Counter[str] = Counter()
    for part in parts:
        numbers.update(part.numbers)
        num_bytes.update(part.num_bytes)
    return TensorSummary(dict(numbers), dict(num_bytes), max((part.largest for part in parts), default=0))


def parse_header(name: str, header: bytes, data_bytes: int) -> TensorSummary:
    """Of one header, in front of `data_bytes` bytes of tensors. `name` is the file's, for errors."""
    try:
        entries = msgspec.json.decode(header, type=dict[str, msgspec.Raw])
        tensors = [msgspec.json.decode(raw, type=_Tensor) for key, raw in entries.items() if key != "__metadata__"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise corrupt(name, "its header is unreadable") from None
    numbers: Counter[str] = Counter()
    num_bytes: Counter[str] = Counter()
    largest = needed = 0
    for tensor in tensors:
        begin, end = tensor.data_offsets
        count = _count(tensor)
        bits = _BITS.get(tensor.dtype)
        if not 0 <= begin <= end or count < 0 or (bits is not None and (count * bits + 7) // 8 != end - begin):
            raise corrupt(name, "its header contradicts itself")
        numbers[tensor.dtype] += count
        num_bytes[tensor.dtype] += end - begin
        largest, needed = max(largest, end - begin), max(needed, end)
    if needed > data_bytes:
        missing = needed - data_bytes
        raise corrupt(name, f"it is cut off, the last {missing} bytes that its header promises are missing")
    return TensorSummary(dict(numbers), dict(num_bytes), largest)


def index_files(index: bytes, origin: str) -> tuple[str, ...]:
    """The weight files that a `model.safetensors.index.json` names, in order of name."""
    try:
        content: Any = json.loads(index)
        names = {str(name) for name in content["weight_map"].values()}
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError):
        raise corrupt(origin, "it is not a safetensors index") from None
    return tuple(sorted(names))


async def _read_header(name: str, path: str, size: int, read: ReadSpan) -> TensorSummary:
    if size < 8:
        raise corrupt(name, f"it is only {size} bytes long")
    head = await read(path, Span(0, min(size, FIRST_READ)))
    if len(head) < min(size, FIRST_READ):
        raise corrupt(name, f"it ends after {len(head)} of {size} bytes")
    length = int.from_bytes(head[:8], "little")
    if length > min(size - 8, LONGEST_HEADER):
        raise corrupt(name, f"a header of {length} bytes cannot be in its {size} bytes")
    header = head[8 : 8 + length]
    if len(header) < length:
        header += await read(path, Span(len(head), length - len(header)))
    if len(header) < length:
        raise corrupt(name, f"it ends after {8 + len(header)} of {size} bytes")
    return await asyncio.to_thread(parse_header, name, header, size - 8 - length)


def _count(tensor: _Tensor) -> int:
    """Of a tensor's numbers; -1 when its shape is none."""
    count = math.prod(tensor.shape)
    return count if min(tensor.shape, default=0) >= 0 and count <= MOST_NUMBERS else -1
