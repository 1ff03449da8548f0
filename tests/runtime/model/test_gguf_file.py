import contextlib
from pathlib import Path

import pytest
from gguf.constants import GGMLQuantizationType

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.config import Architecture
from octavo_runtime.model.gguf_file import read_gguf_header
from octavo_runtime.testing import build_tiny_model, write_tiny_gguf


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    model = build_tiny_model(Architecture.QWEN2)
    return write_tiny_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", model, GGMLQuantizationType.Q8_0).read_bytes()


def test_the_header_tells_metadata_and_shapes_rows_first(tmp_path: Path, tiny: bytes) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(tiny)
    header = read_gguf_header(path)
    assert header.metadata["general.architecture"] == "qwen2"
    assert header.tensors["blk.1.ffn_up.weight"].shape == (96, 64)
    assert header.tensors["blk.1.ffn_up.weight"].quantization is GGMLQuantizationType.Q8_0


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.05, 0.5, 0.99])
def test_a_cut_file_is_refused_and_named(tmp_path: Path, tiny: bytes, share: float) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(tiny[: int(len(tiny) * share)])
    with pytest.raises(StartError, match=r"cut\.gguf is damaged or cut off.*download it again") as caught:
        read_gguf_header(path)
    assert caught.value.cause is StartCause.MODEL_CORRUPT


@pytest.mark.parametrize("position", range(0, 700, 7))
def test_a_flipped_byte_in_the_header_never_ends_in_another_error(tmp_path: Path, tiny: bytes, position: int) -> None:
    path = tmp_path / "flipped.gguf"
    path.write_bytes(tiny[:position] + bytes([tiny[position] ^ 0xFF]) + tiny[position + 1 :])
    with contextlib.suppress(StartError):
        read_gguf_header(path)


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="does not exist") as caught:
        read_gguf_header(tmp_path / "none.gguf")
    assert caught.value.cause is StartCause.MODEL_NOT_FOUND
