from pathlib import Path

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.config import Architecture
from octavo_runtime.model.registry import MODELS, open_checkpoint


def test_every_architecture_has_a_class() -> None:
    assert set(MODELS) == set(Architecture)


def test_a_path_that_does_not_exist_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="does not exist") as caught:
        open_checkpoint(tmp_path / "model")
    assert caught.value.cause is StartCause.MODEL_NOT_FOUND


def test_a_file_of_another_kind_says_what_to_give(tmp_path: Path) -> None:
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(b"x")
    with pytest.raises(StartError, match=r"neither a folder nor a \.gguf file"):
        open_checkpoint(path)
