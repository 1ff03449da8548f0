"""Volumes of a serving pod and where they are mounted: caches, keys, certificates, weights.

The root of the container is read-only, so whatever is written goes to a volume with a size limit.
"""

from collections.abc import Iterable
from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment
from octavo_operator.desired.arguments import (
    CHAT_TEMPLATE_FOLDER,
    DEFAULT_CHAT_TEMPLATE_KEY,
    KEYS_FOLDER,
    TLS_FOLDER,
)
from octavo_operator.quantity import GIB, format_quantity
from octavo_operator.sizing import Sizing
from octavo_operator.weights import Mounted, Weights, place_of

CACHE_FOLDER = "/cache"
TMP_BYTES = 2 * GIB
_READABLE = 0o444  # by any user id that the platform gives the container

Volume = dict[str, Any]
Mount = dict[str, Any]


def serving_volumes(deployment: LLMDeployment, sizing: Sizing, weights: Weights) -> tuple[list[Volume], list[Mount]]:
    """(volumes of the pod, mounts of its container)."""
    parts = [
        _scratch("cache", CACHE_FOLDER, sizing.cache_bytes),
        _scratch("tmp", "/tmp", TMP_BYTES),
        *_shm(sizing),
        _secret("keys", names.keys_secret(deployment.name), KEYS_FOLDER),
        *_tls(deployment),
        *_chat_template(deployment),
        *_weights(deployment, weights),
    ]
    return [volume for volume, _ in parts], [mount for _, mount in parts]


def scratch_volumes() -> tuple[list[Volume], list[Mount]]:
    """Of a downloader: what it writes beside the claim."""
    parts = [_scratch("cache", CACHE_FOLDER, TMP_BYTES), _scratch("tmp", "/tmp", TMP_BYTES)]
    return [volume for volume, _ in parts], [mount for _, mount in parts]


def claim_volume(claim: str, mount_path: str, *, read_only: bool) -> tuple[Volume, Mount]:
    """Read-only is a matter of the mount: a claim attached read-only could not be written by the downloader too."""
    mount: Mount = {"name": "weights", "mountPath": mount_path}
    if read_only:
        mount["readOnly"] = True
    return {"name": "weights", "persistentVolumeClaim": {"claimName": claim}}, mount


def _scratch(name: str, path: str, limit: int) -> tuple[Volume, Mount]:
    return {"name": name, "emptyDir": {"sizeLimit": format_quantity("storage", limit)}}, {
        "name": name,
        "mountPath": path,
    }


def _shm(sizing: Sizing) -> Iterable[tuple[Volume, Mount]]:
    if sizing.shm_bytes:
        source = {"medium": "Memory", "sizeLimit": format_quantity("memory", sizing.shm_bytes)}
        yield {"name": "shm", "emptyDir": source}, {"name": "shm", "mountPath": "/dev/shm"}


def _secret(name: str, secret: str, path: str) -> tuple[Volume, Mount]:
    """A folder, never a single file of it: only folders follow changes of the Secret."""
    volume = {"name": name, "secret": {"secretName": secret, "defaultMode": _READABLE}}
    return volume, {"name": name, "mountPath": path, "readOnly": True}


def _tls(deployment: LLMDeployment) -> Iterable[tuple[Volume, Mount]]:
    tls = deployment.spec.access.tls
    if tls:
        yield _secret("tls", tls.secret_name, TLS_FOLDER)


def _chat_template(deployment: LLMDeployment) -> Iterable[tuple[Volume, Mount]]:
    template = deployment.spec.model.chat_template
    if template:
        reference = template.config_map_key_ref
        key = reference.key or DEFAULT_CHAT_TEMPLATE_KEY
        source = {"name": reference.name, "defaultMode": _READABLE, "items": [{"key": key, "path": key}]}
        mount = {"name": "chat-template", "mountPath": CHAT_TEMPLATE_FOLDER, "readOnly": True}
        yield {"name": "chat-template", "configMap": source}, mount


def _weights(deployment: LLMDeployment, weights: Weights) -> Iterable[tuple[Volume, Mount]]:
    place = place_of(deployment, weights)
    if isinstance(place, Mounted):
        yield claim_volume(place.claim, place.mount_path, read_only=True)
