import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.model.http_get import Span
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.safetensors_header import (
    FIRST_READ,
    MOST_AT_ONCE,
    combine,
    index_files,
    parse_header,
    read_summary,
)
from octavo_operator.reasons import Reason

Build = Callable[[dict[str, tuple[str, tuple[int, ...]]]], bytes]


class Files:
    """A reader over bytes in memory. `reads`: every span that was asked for."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self.contents = contents
        self.reads: list[tuple[str, Span]] = []

    @property
    def sizes(self) -> dict[str, int]:
        return {path: len(content) for path, content in self.contents.items()}

    async def read(self, path: str, span: Span) -> bytes:
        self.reads.append((path, span))
        return self.contents[path][span.start : span.start + span.length]


def header(entry: dict[str, Any]) -> bytes:
    return json.dumps({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | entry}).encode()


async def test_formats_and_sizes_of_all_files_are_summed(safetensors: Build) -> None:
    files = Files(
        {
            "a": safetensors({"x": ("BF16", (4, 8)), "y": ("F32", (3,))}),
            "b": safetensors({"z": ("BF16", (100,)), "scalar": ("F32", ())}),
        }
    )
    summary = await read_summary("org/x", files.sizes, files.read)
    assert summary.numbers == {"BF16": 132, "F32": 4}
    assert summary.num_bytes == {"BF16": 264, "F32": 16}
    assert (summary.total_numbers, summary.total_bytes, summary.largest) == (136, 280, 200)


async def test_a_short_header_takes_one_read_and_a_long_one_two(safetensors: Build) -> None:
    short = Files({"a": safetensors({"x": ("BF16", (50_000,))})})
    await read_summary("org/x", short.sizes, short.read)
    assert short.reads == [("a", Span(0, FIRST_READ))]
    shapes = {f"layer.{number}.weight": ("BF16", (1,)) for number in range(2000)}
    long = Files({"a": safetensors(shapes)})
    assert (await read_summary("org/x", long.sizes, long.read)).total_numbers == 2000
    assert len(long.reads) == 2
    assert long.reads[1][1].start == FIRST_READ


async def test_a_file_without_tensors_is_read(safetensors: Build) -> None:
    files = Files({"a": safetensors({})})
    assert (await read_summary("org/x", files.sizes, files.read)).total_bytes == 0


async def test_many_shards_are_read_a_few_at_a_time(safetensors: Build) -> None:
    content = safetensors({"x": ("BF16", (1,))})
    files = Files({f"model-{number:05}.safetensors": content for number in range(50)})
    summary = await read_summary("org/x", files.sizes, files.read)
    assert (summary.total_numbers, len(files.reads)) == (50, 50)
    assert MOST_AT_ONCE < 50


@pytest.mark.parametrize("kept", [0, 4, 7, 8, 60, -1])
async def test_a_cut_off_file_is_damaged_and_named(safetensors: Build, kept: int) -> None:
    files = Files({"model-2.safetensors": safetensors({"x": ("BF16", (64,))})[:kept]})
    with pytest.raises(ModelProblem, match=r"org/x: model-2\.safetensors is damaged") as caught:
        await read_summary("org/x", files.sizes, files.read)
    assert caught.value.reason is Reason.MODEL_CORRUPT


async def test_a_file_that_gives_less_than_its_size_is_damaged(safetensors: Build) -> None:
    files = Files({"a": safetensors({"x": ("BF16", (64,))})})
    with pytest.raises(ModelProblem, match="it ends after"):
        await read_summary("org/x", {"a": 1 << 30}, files.read)
    shapes = {f"layer.{number}.weight": ("BF16", (1,)) for number in range(2000)}
    long = Files({"a": safetensors(shapes)[: FIRST_READ + 10]})
    with pytest.raises(ModelProblem, match="it ends after"):
        await read_summary("org/x", {"a": 1 << 30}, long.read)


@pytest.mark.parametrize(
    "content", [b"\xff" * 100, b"<html>an error page</html>" * 9, (40).to_bytes(8, "little") + b"x" * 60]
)
async def test_garbage_is_damaged(content: bytes) -> None:
    files = Files({"a": content})
    with pytest.raises(ModelProblem) as caught:
        await read_summary("org/x", files.sizes, files.read)
    assert caught.value.reason is Reason.MODEL_CORRUPT


@pytest.mark.parametrize(
    "entry",
    [
        {"data_offsets": [8, 0]},
        {"data_offsets": [-8, 0]},
        {"data_offsets": [0, 9]},
        {"shape": [-2]},
        {"shape": [3]},
        {"shape": "2"},
        {"dtype": 1},
        {"data_offsets": [0]},
    ],
)
def test_a_header_that_contradicts_itself_is_damaged(entry: dict[str, Any]) -> None:
    with pytest.raises(ModelProblem) as caught:
        parse_header("a", header(entry), 1000)
    assert caught.value.reason is Reason.MODEL_CORRUPT


def test_a_format_that_is_not_known_yet_is_counted_as_it_is() -> None:
    summary = parse_header("a", header({"dtype": "F8_NEW", "data_offsets": [0, 3]}), 3)
    assert summary.num_bytes == {"F8_NEW": 3}


def test_nothing_sums_to_nothing() -> None:
    assert combine([]).largest == 0


def test_an_index_names_its_files_once() -> None:
    index = {"metadata": {}, "weight_map": {"a": "2.safetensors", "b": "1.safetensors", "c": "2.safetensors"}}
    assert index_files(json.dumps(index).encode(), "x") == ("1.safetensors", "2.safetensors")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"weight_map": []}', b'{"weight_map": null}', b"\xff"])
def test_something_else_is_no_index(content: bytes) -> None:
    with pytest.raises(ModelProblem, match="not a safetensors index"):
        index_files(content, "org/x: model.safetensors.index.json")


@given(
    st.one_of(
        st.binary(max_size=200), st.binary(max_size=100).map(lambda end: b'{"x": {"dtype": "F8", "shape": [' + end)
    )
)
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    with contextlib.suppress(ModelProblem):
        parse_header("a", content, 10)


@pytest.mark.parametrize(
    "content",
    [b'{"x":' + b"[" * 100_000, header({"dtype": "NEW", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 1]})],
)
def test_garbage_made_to_hurt_is_refused(content: bytes) -> None:
    with pytest.raises(ModelProblem):
        parse_header("a", content, 10)
