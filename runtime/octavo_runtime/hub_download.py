"""Fetches a model from Hugging Face into the local cache, with a progress bar; or one sentence says why it could not.

The only import of `huggingface_hub`, which reads HF_TOKEN, HF_HOME and HF_HUB_OFFLINE itself. Called by `hub.py` for
names that are no local path.
"""

from pathlib import Path

import huggingface_hub
from huggingface_hub import errors

from octavo_runtime.errors import StartCause, StartError


def download_model(name: str, revision: str | None, download_dir: Path | None, wanted: list[str]) -> Path:
    """The folder of `owner/model`, or the file of `owner/model/file.gguf`.

    `wanted` are the file patterns taken of a folder. Raises StartError MODEL_NOT_FOUND or MODEL_ACCESS_DENIED.
    """
    repository, _, file = name.partition(".gguf")[0].rpartition("/") if name.endswith(".gguf") else (name, "", "")
    try:
        if file:
            return Path(
                huggingface_hub.hf_hub_download(repository, file + ".gguf", revision=revision, cache_dir=download_dir)
            )
        return Path(
            huggingface_hub.snapshot_download(
                repository, revision=revision, cache_dir=download_dir, allow_patterns=wanted
            )
        )
    except Exception as error:  # the HTTP library's own errors differ between versions of huggingface_hub
        raise _start_error(name, revision, error) from error


def _start_error(name: str, revision: str | None, error: Exception) -> StartError:
    denied = (
        f"Access to {name} is denied; accept its licence on Hugging Face and set HF_TOKEN to a token that may read it."
    )
    if isinstance(error, errors.GatedRepoError):
        return StartError(StartCause.MODEL_ACCESS_DENIED, denied)
    if isinstance(error, errors.RevisionNotFoundError):
        return StartError(StartCause.MODEL_NOT_FOUND, f"{name} has no revision {revision}; check --revision.")
    if isinstance(error, errors.EntryNotFoundError) and not isinstance(error, errors.LocalEntryNotFoundError):
        return StartError(StartCause.MODEL_NOT_FOUND, f"{name} has no such file; check the file's name.")
    if isinstance(error, errors.RepositoryNotFoundError | errors.HFValidationError):
        message = f"There is no model {name} on disk or Hugging Face (if it is private, set HF_TOKEN); check the name."
        return StartError(StartCause.MODEL_NOT_FOUND, message)
    response = getattr(error, "response", None)
    if response is not None and response.status_code in (401, 403):
        return StartError(StartCause.MODEL_ACCESS_DENIED, denied)
    message = (
        f"{name} is not on this machine and could not be downloaded ({type(error).__name__}); "
        "check the network and HF_HUB_OFFLINE, or give a local folder."
    )
    return StartError(StartCause.MODEL_NOT_FOUND, message)
