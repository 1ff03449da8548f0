"""What a model name means, and the one sentence when it means nothing."""

import json
from pathlib import Path

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.hub import ModelKind, embedded_model_path, resolve_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"]}))
    (tmp_path / "model.safetensors").write_bytes(b"")
    return tmp_path


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked for")

    monkeypatch.setattr("socket.getaddrinfo", refuse)


def failure(name: str) -> StartError:
    with pytest.raises(StartError) as caught:
        resolve_model(name)
    assert str(caught.value).count(". ") == 0
    return caught.value


def test_folder_gives_its_configs(folder: Path) -> None:
    (folder / "generation_config.json").write_text('{"top_k": 3}')
    source = resolve_model(str(folder))
    assert (source.kind, source.path, source.name) == (ModelKind.SAFETENSORS, folder, str(folder))
    assert source.config["architectures"] == ["LlamaForCausalLM"]
    assert source.generation_config == {"top_k": 3}


def test_gguf_file_gives_its_metadata() -> None:
    source = resolve_model(str(embedded_model_path()))
    assert source.kind is ModelKind.GGUF
    assert source.config["llama.context_length"] == 8192
    assert "tokenizer.ggml.tokens" not in source.config


def test_embedded_model_has_a_name_of_its_own() -> None:
    assert resolve_model("embedded").name == "SmolLM2-135M-Instruct"


def test_folder_with_one_gguf_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").symlink_to(embedded_model_path())
    assert resolve_model(str(tmp_path)).kind is ModelKind.GGUF


def test_folder_with_several_gguf_files_asks_which(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).touch()
    assert "a.gguf" in str(failure(str(tmp_path)))


@pytest.mark.parametrize("name", ["/no/such/model", "./none", "../none", "~/none-such", "none.gguf", "/a/b/c.gguf"])
def test_missing_local_path_never_asks_the_network(name: str) -> None:
    assert failure(name).cause is StartCause.MODEL_NOT_FOUND


def test_folder_without_config_is_no_model(tmp_path: Path) -> None:
    assert failure(str(tmp_path)).cause is StartCause.MODEL_NOT_FOUND


def test_folder_without_safetensors_is_unsupported(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert failure(str(folder)).cause is StartCause.MODEL_UNSUPPORTED


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_broken_config_is_corrupt(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    assert failure(str(folder)).cause is StartCause.MODEL_CORRUPT


def test_other_file_is_unsupported(folder: Path) -> None:
    assert failure(str(folder / "model.safetensors")).cause is StartCause.MODEL_UNSUPPORTED
