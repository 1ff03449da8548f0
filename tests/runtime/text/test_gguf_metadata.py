"""GGUF headers: values, skipped arrays, files that are cut."""

from pathlib import Path

import gguf
import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.text.gguf_metadata import read_gguf_metadata


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("a.number", 7)
    writer.add_float32("a.float", 0.5)
    writer.add_bool("a.flag", True)
    writer.add_string("a.text", "hé")
    writer.add_array("a.short", [1, 2, 3])
    writer.add_array("a.words", ["w"] * 300)
    writer.add_array("a.long", list(range(300)))
    writer.add_string("z.last", "end")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_values_of_every_kind_and_only_the_long_arrays_asked_for(file: Path) -> None:
    metadata = read_gguf_metadata(file, ["a.words"])
    assert (metadata["a.number"], metadata["a.float"], metadata["a.flag"], metadata["a.text"]) == (7, 0.5, True, "hé")
    assert (metadata["a.short"], metadata["a.words"], metadata["z.last"]) == ([1, 2, 3], ["w"] * 300, "end")
    assert "a.long" not in metadata


@pytest.mark.parametrize("size", [0, 3, 20, 60, 400])
def test_file_that_is_cut_is_corrupt(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(StartError, match="not a complete GGUF file") as caught:
        read_gguf_metadata(file)
    assert caught.value.cause is StartCause.MODEL_CORRUPT


def test_other_file_is_corrupt(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"PK\3\4" + bytes(100))
    with pytest.raises(StartError, match="does not start with GGUF"):
        read_gguf_metadata(tmp_path / "x.gguf")
