"""`spec.model.uri` as a value: a repository of a hub, a claim, a path in the image or one .gguf file behind a URL.

Pure text; whether the thing exists is found by `resolution.py`. A refusal names the field and what to write.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from octavo_operator.model.problem import ModelProblem
from octavo_operator.reasons import Reason

_HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
_CLAIM_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_FORMS = "hf://ORG/NAME, pvc://CLAIM/PATH, file:///PATH or https://HOST/PATH.gguf"


@dataclass(frozen=True, slots=True)
class HubUri:
    """`hf://ORG/NAME`, or one GGUF file of it: `hf://ORG/NAME/FILE.gguf`."""

    repository: str
    file: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimUri:
    """`pvc://CLAIM/PATH`: a folder or .gguf file on a claim in the same namespace. An empty path is its root."""

    claim: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class FileUri:
    """`file:///PATH`: a path that the serving container already has."""

    path: str


@dataclass(frozen=True, slots=True)
class UrlUri:
    """`https://HOST/PATH.gguf`."""

    url: str


ModelUri = HubUri | ClaimUri | FileUri | UrlUri


def parse_uri(text: str) -> ModelUri:
    """Raises ModelProblem(SPEC_INVALID)."""
    scheme, separator, rest = text.partition("://")
    if separator:
        if scheme == "hf":
            return _hub(text, rest)
        if scheme == "pvc":
            return _claim(text, rest)
        if scheme == "file":
            return _file(text, rest)
        if scheme == "https":
            return _url(text)
    raise _invalid(text, f"write {_FORMS}")


def is_downloaded(uri: ModelUri) -> bool:
    """Whether the weights come over the network, by the pod or by the downloader."""
    return isinstance(uri, HubUri | UrlUri)


def model_name(uri: ModelUri) -> str:
    """What a person calls the model; of a claim, the path below its mount."""
    match uri:
        case HubUri(repository, file):
            return f"{repository}/{file}" if file else repository
        case UrlUri(url):
            return url
        case ClaimUri(_, path) | FileUri(path):
            return path


def _hub(text: str, rest: str) -> HubUri:
    if "@" in rest:
        raise _invalid(text, "write the revision into spec.model.revision instead of behind an @")
    parts = rest.split("/")
    if len(parts) < 2 or not all(_HUB_NAME.fullmatch(part) and ".." not in part for part in parts[:2]):
        raise _invalid(text, "write hf://ORG/NAME, such as hf://HuggingFaceTB/SmolLM2-135M-Instruct")
    file = "/".join(parts[2:])
    if file and not (file.endswith(".gguf") and _is_clean(file)):
        raise _invalid(text, "write hf://ORG/NAME for all files, or hf://ORG/NAME/FILE.gguf for one GGUF file")
    return HubUri("/".join(parts[:2]), file or None)


def _claim(text: str, rest: str) -> ClaimUri:
    claim, _, path = rest.partition("/")
    if not _CLAIM_NAME.fullmatch(claim):
        raise _invalid(text, "write pvc://CLAIM/PATH, CLAIM being the name of a PersistentVolumeClaim here")
    path = path.rstrip("/")
    if path and not _is_clean(path):
        raise _invalid(text, "write a path without empty parts, . and ..")
    return ClaimUri(claim, path)


def _file(text: str, rest: str) -> FileUri:
    path = rest.rstrip("/")
    if not path.startswith("/") or not _is_clean(path[1:]):
        raise _invalid(text, "write file:///PATH with three slashes and an absolute path without . and ..")
    return FileUri(path)


def _url(text: str) -> UrlUri:
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        raise _invalid(text, "write https://HOST/PATH.gguf") from None
    if parts.username or parts.password:
        raise ModelProblem(
            Reason.SPEC_INVALID,
            "spec.model.uri holds a user or a password; put the token into a Secret and name that in spec.model.credentials.",
        )
    if not host or not parts.path.endswith(".gguf") or parts.query or parts.fragment or " " in text:
        raise _invalid(text, "write https://HOST/PATH.gguf, the address of one GGUF file without ? and #")
    return UrlUri(text)


def _is_clean(path: str) -> bool:
    return bool(path) and all(part not in ("", ".", "..") for part in path.split("/"))


def _invalid(text: str, remedy: str) -> ModelProblem:
    shown = text if len(text) <= 120 else f"{text[:117]}..."
    return ModelProblem(Reason.SPEC_INVALID, f"spec.model.uri {shown!r} cannot be used: {remedy}.")
