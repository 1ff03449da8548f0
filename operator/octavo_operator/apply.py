"""Applies a child only where it differs from what is there, so that a second pass writes nothing.

The server adds defaults and writes quantities its own way, so a manifest is compared as a part of the observed object;
fields that a manifest no longer has are noticed by its fingerprint, which every child carries as an annotation.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from octavo_operator.api import GROUP
from octavo_operator.cache import controlled_by
from octavo_operator.kube_client import Conflict, KubeClient, NotFound, Raw, name_of
from octavo_operator.quantity import QuantityError, parse_quantity

APPLIED = f"{GROUP}/applied"
"""Annotation: the fingerprint of the manifest as it was last applied."""

_ENCODER = msgspec.json.Encoder(order="deterministic")
_BLOCKS = (dict, Mapping)  # asked in this order: an abstract class takes long to say yes
_PIECE = 2047  # bytes: for more, hashlib lets other threads run, and then waits for them longer than it hashes
_QUANTITIES = frozenset({"requests", "limits", "hard", "overhead", "capacity", "allocatable"})
_QUANTITY_FIELDS = frozenset({"sizeLimit"})
_MERGE_KEYS = ("name", "mountPath", "containerPort", "port", "key", "uid")


class NameTaken(Conflict):
    """An object of the wanted name belongs to somebody else: it is left alone."""


async def apply_if_changed(kube: KubeClient, manifest: Mapping[str, Any], observed: Mapping[str, Any] | None) -> bool:
    """Apply a child; True if that was needed. `observed` is the cache's; None makes sure that the name is free.

    Raises NameTaken, and whatever ApiError the server answers with.
    """
    if observed is None:
        observed = await _theirs_or_ours(kube, manifest)
    if observed is not None and not differs(manifest, observed):
        return False
    await kube.apply(_marked(manifest))
    return True


def differs(manifest: Mapping[str, Any], observed: Mapping[str, Any]) -> bool:
    """Whether the object has to be applied: the manifest changed, or somebody changed what it sets."""
    annotations = observed["metadata"].get("annotations") or {}
    return annotations.get(APPLIED) != fingerprint(manifest) or not matches(manifest, observed)


def is_outdated(manifest: Mapping[str, Any], observed: Mapping[str, Any]) -> bool:
    """Whether the object was made from another manifest; what others changed of it does not count."""
    return bool((observed["metadata"].get("annotations") or {}).get(APPLIED) != fingerprint(manifest))


def fingerprint(manifest: Mapping[str, Any]) -> str:
    """Equal for equal manifests, in every process."""
    encoded, digest = _ENCODER.encode(manifest), hashlib.sha256()
    for start in range(0, len(encoded), _PIECE):
        digest.update(encoded[start : start + _PIECE])
    return digest.hexdigest()[:16]


def matches(wanted: Any, seen: Any, field: str = "", parent: str = "") -> bool:
    """Whether `seen` has everything of `wanted`. Empty values equal absent ones: the server drops them."""
    if wanted == seen:  # most of it, and much quicker than a walk
        return True
    if isinstance(wanted, _BLOCKS):
        theirs = seen if isinstance(seen, _BLOCKS) else {}
        known = seen is None or isinstance(seen, _BLOCKS)
        return known and all(matches(value, theirs.get(name), name, field) for name, value in wanted.items())
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        return _matches_list(wanted, seen or (), field)
    if seen is None:
        return not wanted
    return _same_amount(wanted, seen, field, parent)


def _matches_list(wanted: Sequence[Any], seen: Any, field: str) -> bool:
    if not isinstance(seen, Sequence) or isinstance(seen, str):
        return False
    key = _merge_key(wanted)
    if key is None:
        return len(wanted) == len(seen) and all(
            matches(one, other, field) for one, other in zip(wanted, seen, strict=True)
        )
    theirs = {item.get(key): item for item in seen if isinstance(item, _BLOCKS)}
    return all(item[key] in theirs and matches(item, theirs[item[key]], field) for item in wanted)


def _merge_key(items: Sequence[Any]) -> str | None:
    """The field by which the server merges a list of objects; None where it compares by place."""
    if not items or not all(isinstance(item, _BLOCKS) for item in items):
        return None
    return next((key for key in _MERGE_KEYS if len({item.get(key) for item in items} - {None}) == len(items)), None)


def _same_amount(wanted: Any, seen: Any, field: str, parent: str) -> bool:
    """`1000m` and `1`; `80` and `"80"` where both are allowed."""
    if parent in _QUANTITIES or field in _QUANTITY_FIELDS:
        try:
            return parse_quantity(field, wanted) == parse_quantity(field, seen)
        except QuantityError:
            return False
    return not isinstance(wanted, bool) and not isinstance(seen, bool) and str(wanted) == str(seen)


def _marked(manifest: Mapping[str, Any]) -> Raw:
    metadata = manifest["metadata"]
    annotations = {**(metadata.get("annotations") or {}), APPLIED: fingerprint(manifest)}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


async def _theirs_or_ours(kube: KubeClient, manifest: Mapping[str, Any]) -> Raw | None:
    """What already has this name, if it is ours and the watch has not shown it yet."""
    metadata = manifest["metadata"]
    try:
        there = await kube.get(manifest["kind"], metadata.get("namespace"), metadata["name"])
    except NotFound:
        return None
    owner = next(iter(metadata.get("ownerReferences") or ()), None)
    if owner and not controlled_by(there, owner["uid"]):
        raise NameTaken(409, "an object of this name exists and is not Octavo's", name_of(manifest))
    return there
