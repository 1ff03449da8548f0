import contextlib
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.model import gguf_header
from octavo_operator.model.gguf_header import GgufSummary, parse_gguf, read_gguf
from octavo_operator.model.http_get import Span
from octavo_operator.model.problem import ModelProblem
from octavo_operator.reasons import Reason

Build = Callable[[dict[str, Any], dict[str, tuple[int, ...]]], bytes]


class File:
    """A reader over bytes in memory. `reads`: every span that was asked for."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.reads: list[Span] = []

    async def read(self, span: Span) -> bytes:
        self.reads.append(span)
        return self.content[span.start : span.start + span.length]

    async def summary(self, size: int | None = None) -> GgufSummary | None:
        return await read_gguf("org/x: f.gguf", len(self.content) if size is None else size, self.read)


async def test_metadata_and_shapes_are_read_without_the_tokens(tiny_gguf: bytes) -> None:
    summary = await File(tiny_gguf).summary()
    assert summary is not None
    assert summary.metadata["general.architecture"] == "llama"
    assert summary.metadata["llama.block_count"] == 4
    assert "tokenizer.ggml.tokens" not in summary.metadata
    assert summary.shapes == {"token_embd.weight": (64, 32), "blk.0.attn_q.weight": (32, 32)}
    assert summary.total_numbers == 64 * 32 + 32 * 32


async def test_a_header_that_is_longer_is_read_on_where_the_first_read_ended(
    gguf: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf_header, "FIRST_READ", 100)
    file = File(gguf({"general.architecture": "llama", "tokens": ["a token"] * 300}, {"t": (2,)}))
    summary = await file.summary()
    assert summary is not None
    assert summary.shapes == {"t": (2,)}
    ends = [span.start + span.length for span in file.reads]
    assert [span.start for span in file.reads] == [0, *ends[:-1]]


async def test_a_header_that_is_too_long_is_left_to_the_runtime(gguf: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_header, "FIRST_READ", 100)
    monkeypatch.setattr(gguf_header, "LONGEST_HEADER", 400)
    file = File(gguf({"tokens": ["a token"] * 300}, {}))
    assert await file.summary() is None
    assert sum(span.length for span in file.reads) == 400


@pytest.mark.parametrize("kept", [0, 3, 20, 24, 60, 300, -70])
async def test_a_file_that_ends_within_its_header_is_damaged_and_named(tiny_gguf: bytes, kept: int) -> None:
    with pytest.raises(ModelProblem, match=r"org/x: f\.gguf is damaged") as caught:
        await File(tiny_gguf[:kept]).summary()
    assert caught.value.reason is Reason.MODEL_CORRUPT


async def test_a_file_that_gives_less_than_its_size_is_damaged(tiny_gguf: bytes) -> None:
    with pytest.raises(ModelProblem, match="it ends after"):
        await File(tiny_gguf[:500]).summary(size=1 << 30)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"<html>" * 10, "does not start with GGUF"),
        (b"GGUF\x01\0\0\0" + bytes(40), "version 1"),
        (
            b"GGUF\x03\0\0\0" + bytes(8) + b"\x01" + bytes(7) + b"\x01" + bytes(7) + b"a" + b"\x63" + bytes(30),
            "type 99",
        ),
        (b"GGUF\x03\0\0\0\x01" + bytes(7) + bytes(8) + bytes(8) + b"\x09" + bytes(90), "9 dimensions"),
    ],
)
def test_garbage_is_damaged(content: bytes, says: str) -> None:
    with pytest.raises(ModelProblem, match=says):
        parse_gguf("x", content)


@given(st.binary(max_size=200), st.integers(0, 3), st.integers(0, 3))
def test_any_bytes_are_read_or_refused(content: bytes, num_tensors: int, num_fields: int) -> None:
    head = struct.pack("<4sIQQ", b"GGUF", 3, num_tensors, num_fields)
    with contextlib.suppress(ModelProblem, gguf_header.NeedsMoreError):
        parse_gguf("x", head + content)


def test_a_tensor_larger_than_anything_is_refused(gguf: Build) -> None:
    with pytest.raises(ModelProblem, match="shape"):
        parse_gguf("x", gguf({}, {"t": (1 << 40, 1 << 40)}))
