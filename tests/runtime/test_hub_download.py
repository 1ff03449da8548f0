"""Hugging Face's refusals become causes and sentences."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub import errors

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.hub_download import download_model


def refusal(kind: Any, status: int) -> Exception:
    response = SimpleNamespace(status_code=status, headers={}, request=None)
    error: Exception = kind("refused", response=response)
    return error


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (refusal(errors.RepositoryNotFoundError, 404), StartCause.MODEL_NOT_FOUND),
        (refusal(errors.RevisionNotFoundError, 404), StartCause.MODEL_NOT_FOUND),
        (refusal(errors.GatedRepoError, 403), StartCause.MODEL_ACCESS_DENIED),
        (refusal(errors.HfHubHTTPError, 401), StartCause.MODEL_ACCESS_DENIED),
        (refusal(errors.HfHubHTTPError, 500), StartCause.MODEL_NOT_FOUND),
        (errors.LocalEntryNotFoundError("offline"), StartCause.MODEL_NOT_FOUND),
        (errors.HFValidationError("bad id"), StartCause.MODEL_NOT_FOUND),
        (RuntimeError("no route"), StartCause.MODEL_NOT_FOUND),
        (OSError("disk full"), StartCause.MODEL_NOT_FOUND),
    ],
)
def test_refusals_have_a_cause(error: Exception, cause: StartCause, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(StartError, match="some/model") as caught:
        download_model("some/model", "main", None, [])
    assert caught.value.cause is cause


def test_folder_and_single_file_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...]] = []

    def snapshot(repository: str, **options: Any) -> str:
        asked.append((repository, *options["allow_patterns"]))
        return "folder"

    def one_file(repository: str, name: str, **_: Any) -> str:
        asked.append((repository, name))
        return name

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    monkeypatch.setattr(huggingface_hub, "hf_hub_download", one_file)
    assert download_model("some/model", None, None, ["*.json"]) == Path("folder")
    assert download_model("some/model/weights.Q4_0.gguf", None, None, []) == Path("weights.Q4_0.gguf")
    assert asked == [("some/model", "*.json"), ("some/model", "weights.Q4_0.gguf")]
