"""Where a pod gets its weights from: it fetches them, they lie on a claim, or they are in the container already.

Given the resource and what is known of the resolved model. Says paths and claims; whether the URI is well formed was
judged when the model was resolved.
"""

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from octavo_operator import names
from octavo_operator.api import LLMDeployment

SHARED_MOUNT = "/models"
CLAIM_MOUNT = "/model"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_CHOICE_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Weights:
    """What is known of a model before it is loaded."""

    commit: str | None = None  # 40 hex digits; None where the source has no commits
    size_bytes: int | None = None  # None: known only once a pod reads them
    cpu_memory_bytes: int | None = None  # memory of a pod that serves it on the CPU, when the plan could tell


@dataclass(frozen=True, slots=True)
class Download:
    """The pod fetches the model itself."""

    model: str  # MODEL of `octavo serve`: ORG/NAME, ORG/NAME/FILE.gguf or a URL
    commit: str | None


@dataclass(frozen=True, slots=True)
class Mounted:
    """The model lies on a claim, which the pod mounts read-only."""

    claim: str
    mount_path: str
    path: str  # of the model, in the container


@dataclass(frozen=True, slots=True)
class InContainer:
    """The model is in the image, or on a volume that spec.pod.patch mounts."""

    path: str


Place = Download | Mounted | InContainer


def place_of(deployment: LLMDeployment, weights: Weights) -> Place:
    """How a serving pod comes to this model."""
    scheme, _, rest = deployment.spec.model.uri.partition("://")
    if scheme == "file":
        return InContainer(rest)
    if scheme == "pvc":
        claim, _, path = rest.partition("/")
        return Mounted(claim, CLAIM_MOUNT, f"{CLAIM_MOUNT}/{path}".rstrip("/"))
    if is_shared(deployment):
        folder = f"{SHARED_MOUNT}/{shared_folder(deployment, weights.commit)}"
        return Mounted(shared_claim(deployment), SHARED_MOUNT, f"{folder}/{_single_file(deployment)}".rstrip("/"))
    return Download(runtime_model(deployment), weights.commit)


def claim_of_uri(uri: str) -> str | None:
    """`weights` of pvc://weights/llama; None of a URI of another kind."""
    scheme, _, rest = uri.partition("://")
    return rest.partition("/")[0] if scheme == "pvc" else None


def is_shared(deployment: LLMDeployment) -> bool:
    """Whether a downloader fills a claim that all pods read."""
    scheme = deployment.spec.model.uri.partition("://")[0]
    return deployment.spec.cache.mode == "SharedPVC" and scheme in ("hf", "https")


def shared_claim(deployment: LLMDeployment) -> str:
    """The user's claim, or the one that the operator makes."""
    shared = deployment.spec.cache.shared_pvc
    return (shared.claim_name if shared else None) or names.claim(deployment.name)


def shared_folder(deployment: LLMDeployment, commit: str | None) -> str:
    """Below the claim's root: one folder per model, commit and choice of files; what is complete there never changes."""
    model = deployment.spec.model
    scheme, _, rest = model.uri.partition("://")
    if scheme == "https":
        host, path = urlsplit(model.uri).hostname or "", urlsplit(model.uri).path
        slug = _safe(f"{host}--{path.rpartition('/')[2]}")
        version = names.digest(model.uri, model.digest or "", length=names.REVISION_DIGITS)
    else:
        slug = _safe("--".join(rest.split("/")[:2]))
        version = _safe(commit or model.revision or "main")
    chosen = (*model.files.allow, "", *model.files.ignore, _single_file(deployment) if scheme == "hf" else "")
    if any(chosen):
        version += f"-{names.digest(*chosen, length=_CHOICE_DIGITS)}"
    return f"{slug}/{version}"


def runtime_model(deployment: LLMDeployment) -> str:
    """MODEL of `octavo serve` and `octavo download` for a model that is fetched."""
    uri = deployment.spec.model.uri
    return uri.removeprefix("hf://")


def _single_file(deployment: LLMDeployment) -> str:
    """The file that the URI itself names, relative to where a download puts it; empty for a whole repository."""
    scheme, _, rest = deployment.spec.model.uri.partition("://")
    if scheme == "https":
        return urlsplit(deployment.spec.model.uri).path.rpartition("/")[2]
    return "/".join(rest.split("/")[2:])


def _safe(text: str) -> str:
    return _UNSAFE.sub("-", text).strip("-.")[:100] or "model"
