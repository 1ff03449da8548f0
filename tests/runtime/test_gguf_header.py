"""GGUF headers: values, arrays that are stepped over, tensors, and files that are cut or damaged."""

import contextlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.constants import GGMLQuantizationType

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.gguf_header import read_gguf_header


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("a.number", 7)
    writer.add_float32("a.float", 0.5)
    writer.add_bool("a.flag", True)
    writer.add_string("a.text", "hé")
    writer.add_array("a.short", [1, 2, 3])
    writer.add_array("a.words", ["w"] * 300)
    writer.add_array("a.long", list(range(300)))
    writer.add_string("z.last", "end")
    writer.add_tensor("t.first", np.zeros((3, 5), np.float32))
    writer.add_tensor("t.second", np.ones((4, 2), np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@pytest.fixture
def file(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(content)
    return path


def test_values_of_every_kind_and_only_the_long_arrays_asked_for(file: Path) -> None:
    metadata = read_gguf_header(file, ["a.words"]).metadata
    assert (metadata["a.number"], metadata["a.float"], metadata["a.flag"], metadata["a.text"]) == (7, 0.5, True, "hé")
    assert (metadata["a.short"], metadata["a.words"], metadata["z.last"]) == ([1, 2, 3], ["w"] * 300, "end")
    assert "a.long" not in metadata
    assert "a.words" not in read_gguf_header(file).metadata


def test_tensors_have_their_rows_first_and_lie_where_the_file_has_them(file: Path, content: bytes) -> None:
    tensors = read_gguf_header(file).tensors
    first, second = tensors["t.first"], tensors["t.second"]
    assert (first.shape, first.kind) == ((3, 5), GGMLQuantizationType.F32)
    assert (second.shape, second.kind) == ((4, 2), GGMLQuantizationType.F16)
    assert content[second.offset : second.offset + 16] == np.ones(8, np.float16).tobytes()


@pytest.mark.parametrize("size", [0, 3, 20, 60, 400])
def test_a_file_cut_in_its_header_is_refused_and_named(file: Path, content: bytes, size: int) -> None:
    file.write_bytes(content[:size])
    with pytest.raises(StartError, match=r"tiny\.gguf is damaged or cut off.*download it again") as caught:
        read_gguf_header(file)
    assert caught.value.cause is StartCause.MODEL_CORRUPT


def test_a_flipped_byte_in_the_header_never_ends_in_another_error(file: Path, content: bytes) -> None:
    for position in (*range(700), *range(len(content) - 400, len(content))):
        for mask in (0xFF, 0x80):
            file.write_bytes(content[:position] + bytes([content[position] ^ mask]) + content[position + 1 :])
            with contextlib.suppress(StartError):
                read_gguf_header(file)


def test_another_kind_of_file_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"PK\3\4" + bytes(100))
    with pytest.raises(StartError, match="does not start with GGUF"):
        read_gguf_header(tmp_path / "x.gguf")


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="does not exist") as caught:
        read_gguf_header(tmp_path / "none.gguf")
    assert caught.value.cause is StartCause.MODEL_NOT_FOUND


def test_a_file_that_may_not_be_read_is_named(file: Path, forbid: Callable[[str], None]) -> None:
    forbid(file.name)
    with pytest.raises(StartError, match="may not be read by this user") as caught:
        read_gguf_header(file)
    assert caught.value.cause is StartCause.MODEL_NOT_FOUND


def test_a_header_is_read_without_torch_and_numpy() -> None:
    code = "import sys, octavo_runtime.gguf_header; sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
