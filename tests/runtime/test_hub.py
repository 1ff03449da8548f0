"""What a model name means, and the one sentence when it means nothing."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.manifest import FetchOptions, FileChoice, manifest_digest, sum_file, sum_folder
from octavo_runtime.hub import ModelKind, embedded_model_path, find_local, find_model, resolve_model, served_name
from octavo_runtime.start_state import ModelFacts, StartState


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


def test_a_url_is_never_taken_for_a_path() -> None:
    assert find_local("https://models.example/tiny.gguf") is None
    assert served_name("https://models.example/a/tiny.Q4_0.gguf") == "tiny.Q4_0"


def test_what_may_not_be_read_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(folder))

    monkeypatch.setattr(Path, "exists", refuse)
    assert "may not be read" in str(failure(str(folder)))


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
def test_a_config_that_may_not_be_read_is_not_called_damaged(
    folder: Path, forbid: Callable[[str], None], name: str
) -> None:
    (folder / "generation_config.json").write_text("{}")
    forbid(name)
    error = failure(str(folder))
    assert error.cause is StartCause.MODEL_NOT_FOUND
    assert str(error) == f"{folder / name} may not be read by this user; change its permissions, or the user."


def test_the_revision_is_that_of_the_marker_or_of_the_hubs_cache(folder: Path, tmp_path: Path) -> None:
    assert resolve_model(str(folder)).revision is None
    marker = {"model": "org/tiny", "revision": "abc", "allow": [], "ignore": [], "files": []}
    (folder / ".octavo-complete").write_text(json.dumps(marker))
    assert resolve_model(str(folder)).revision == "abc"
    snapshot = tmp_path / "snapshots" / "c0ffee"
    shutil.copytree(folder, snapshot, ignore=shutil.ignore_patterns(".octavo*", "snapshots"))
    assert resolve_model(str(snapshot)).revision == "c0ffee"


def test_a_digest_is_held_against_the_files_of_a_folder(folder: Path) -> None:
    digest = manifest_digest(sum_folder(folder, FileChoice()))
    assert resolve_model(str(folder), FetchOptions(digest=digest)).path == folder
    (folder / "model.safetensors").write_bytes(b"changed")
    with pytest.raises(StartError) as caught:
        resolve_model(str(folder), FetchOptions(digest=digest))
    assert caught.value.cause is StartCause.DIGEST_MISMATCH


def test_a_marker_is_believed_as_long_as_the_sizes_are_right(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = sum_folder(folder, FileChoice())
    options = FetchOptions(digest=manifest_digest(files))
    marker = {
        "model": "m", "revision": None, "allow": [], "ignore": [],
        "files": [{"path": file.path, "size": file.size, "sha256": file.sha256} for file in files],
    }  # fmt: skip
    (folder / ".octavo-complete").write_text(json.dumps(marker))
    monkeypatch.setattr("octavo_runtime.hub.sum_folder", None)  # not called
    assert resolve_model(str(folder), options).path == folder
    monkeypatch.undo()
    (folder / "config.json").write_text('{"architectures": []}')
    with pytest.raises(StartError):
        resolve_model(str(folder), options)


def test_a_gguf_file_has_a_digest_of_its_own() -> None:
    path = embedded_model_path()
    digest = manifest_digest([sum_file(path.parent, path)])
    assert resolve_model(str(path), FetchOptions(digest=digest)).kind is ModelKind.GGUF


async def test_finding_a_model_beside_an_event_loop_is_the_same(folder: Path) -> None:
    state = StartState("m")
    assert await find_model(str(folder), FetchOptions(), state, None) == resolve_model(str(folder))
    with pytest.raises(StartError):
        await find_model(str(folder), FetchOptions(digest="sha256:" + "0" * 64), state, None)


async def test_a_name_is_fetched_and_its_facts_are_told(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the network is the hub's
    monkeypatch.setattr("octavo_runtime.hub_download.hub_access", lambda: hub.access(tmp_path))
    hub.files["config.json"] = (
        b'{"architectures": ["Qwen2ForCausalLM"], "quantization_config": {"quant_method": "awq"}}'
    )
    facts = (await find_model("org/tiny", FetchOptions(), StartState("org/tiny"), None)).facts()
    assert facts == ModelFacts("org/tiny", "c" * 40, "Qwen2ForCausalLM", "awq", 10240)


def test_facts_of_a_gguf_file() -> None:
    facts = resolve_model("embedded").facts()
    assert (facts.architecture, facts.quantization, facts.weight_bytes) == ("llama", "gguf", 98362432)
