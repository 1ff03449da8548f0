import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from octavo_kernels.reference_backend import ReferenceBackend
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.config import Architecture
from octavo_runtime.model.registry import load_model, no_progress, open_checkpoint
from octavo_runtime.model.weights import SafetensorsSource
from octavo_runtime.testing import build_tiny_model, write_tiny_checkpoint


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tiny_checkpoint(tmp_path, Architecture.LLAMA)


def load(folder: Path) -> object:
    return load_model(open_checkpoint(folder), ReferenceBackend(), torch.float32, 64, no_progress)


def test_sharded_files_hold_the_same_tensors(tmp_path: Path) -> None:
    model = build_tiny_model(Architecture.QWEN3)
    model.save_pretrained(tmp_path, max_shard_size="40KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    source = SafetensorsSource(tmp_path)
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(source.load(name, torch.float32), tensor)


def test_progress_reaches_all_bytes(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    load_model(
        open_checkpoint(folder), ReferenceBackend(), torch.bfloat16, 64, lambda done, total: seen.append((done, total))
    )
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] == (folder / "model.safetensors").stat().st_size - header_bytes(folder)


def header_bytes(folder: Path) -> int:
    with (folder / "model.safetensors").open("rb") as file:
        return 8 + int.from_bytes(file.read(8), "little")


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_a_cut_file_is_refused_and_named(folder: Path, share: float) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(StartError, match=r"model\.safetensors is damaged or cut off.*download it again") as caught:
        load(folder)
    assert caught.value.cause is StartCause.MODEL_CORRUPT


def test_a_header_of_garbage_is_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[8:40] = b"\xff" * 32
    path.write_bytes(content)
    with pytest.raises(StartError, match="header is unreadable"):
        load(folder)


def test_a_missing_shard_is_refused(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-00002.safetensors"}}))
    with pytest.raises(StartError, match=r"model-00002\.safetensors.*missing"):
        load(folder)


def test_a_folder_without_weights_says_what_to_do(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(StartError, match="convert the weights") as caught:
        load(folder)
    assert caught.value.cause is StartCause.MODEL_NOT_FOUND


def test_a_missing_tensor_is_named(folder: Path) -> None:
    change_weights(folder, "model.layers.1.mlp.up_proj.weight", None)
    with pytest.raises(StartError, match=r"no tensor model\.layers\.1\.mlp\.up_proj\.weight") as caught:
        load(folder)
    assert caught.value.cause is StartCause.MODEL_CORRUPT


def test_a_tensor_of_another_shape_is_named_with_both_shapes(folder: Path) -> None:
    change_weights(folder, "model.norm.weight", torch.zeros(63))
    with pytest.raises(StartError, match=r"model\.norm\.weight is \[63\], its config says \[64\]"):
        load(folder)


def test_integer_weights_are_unsupported(folder: Path) -> None:
    change_weights(folder, "model.norm.weight", torch.zeros(64, dtype=torch.int8))
    with pytest.raises(StartError, match="quantized safetensors") as caught:
        load(folder)
    assert caught.value.cause is StartCause.QUANTIZATION_UNSUPPORTED


def change_weights(folder: Path, name: str, tensor: torch.Tensor | None) -> None:
    tensors = load_file(folder / "model.safetensors")
    del tensors[name]
    if tensor is not None:
        tensors[name] = tensor
    save_file(tensors, folder / "model.safetensors")


@pytest.mark.parametrize("name", ["model.safetensors", "model.safetensors.index.json"])
def test_weights_that_may_not_be_read_are_not_called_damaged(
    folder: Path, forbid: Callable[[str], None], name: str
) -> None:
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"x": "model.safetensors"}}')
    forbid(name)
    with pytest.raises(StartError, match=f"{name} may not be read by this user; change its permissions") as caught:
        SafetensorsSource(folder)
    assert caught.value.cause is StartCause.MODEL_NOT_FOUND
