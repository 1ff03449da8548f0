"""Strategic merge patch of a pod template, as `kubectl patch` has it: maps merge, null deletes, lists of things that
have a name merge by it, other lists are replaced.

`$patch: delete` in a named thing removes it, `$patch: replace` takes the patch for the whole. Pure; changes neither
argument.
"""

from collections.abc import Mapping, Sequence
from typing import Any

MERGE_KEYS: Mapping[str, str] = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "volumeDevices": "devicePath",
    "env": "name",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "topologySpreadConstraints": "topologyKey",
    "resourceClaims": "name",
    "schedulingGates": "name",
}
"""List -> the field that tells its items apart, from the API's own patchMergeKey marks."""

_DIRECTIVE = "$patch"


class MergeError(ValueError):
    """`path` is the place in the patch, the message what is wrong there."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def merge(base: Mapping[str, Any], patch: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """`base` with `patch` over it. Raises MergeError; `path` is where the patch is, for its messages."""
    directive = patch.get(_DIRECTIVE, "merge")
    if directive not in ("merge", "replace"):
        raise MergeError(path, f"$patch: {directive} is for the items of a list; write null to remove a field.")
    merged = {} if directive == "replace" else dict(base)
    for key, value in patch.items():
        place = f"{path}.{key}"
        if key == _DIRECTIVE:
            continue
        if key.startswith("$"):
            raise MergeError(place, "only the directive $patch is known.")
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge_value(key, merged.get(key), value, place)
    return merged


def _merge_value(key: str, base: Any, value: Any, path: str) -> Any:
    if isinstance(value, Mapping):
        return merge(base if isinstance(base, Mapping) else {}, value, path)
    if isinstance(value, Sequence) and not isinstance(value, str) and key in MERGE_KEYS:
        return _merge_list(key, base if isinstance(base, Sequence) else (), value, path)
    return value


def _merge_list(key: str, base: Sequence[Any], patch: Sequence[Any], path: str) -> list[Any]:
    """Items keep their order; new ones come at the end."""
    name = MERGE_KEYS[key]
    if {_DIRECTIVE: "replace"} in patch:
        base, patch = (), [item for item in patch if item != {_DIRECTIVE: "replace"}]
    merged = {_identity(item, name, path): item for item in base}
    for index, item in enumerate(patch):
        place = f"{path}[{index}]"
        identity = _identity(item, name, place)
        if item.get(_DIRECTIVE) == "delete":
            merged.pop(identity, None)
        else:
            old = _of_one_kind(key, merged.get(identity, {}), item)
            merged[identity] = merge(old, item, place)
    return list(merged.values())


def _identity(item: Any, name: str, path: str) -> Any:
    if not isinstance(item, Mapping) or name not in item:
        raise MergeError(path, f"each item needs {name}, which tells the items apart.")
    return item[name]


def _of_one_kind(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any]:
    """A volume has one source, an environment variable one origin: a new one takes the old one's place."""
    new_source = key == "volumes" and not set(new) <= set(old) | {_DIRECTIVE}
    return {} if new_source or key == "env" else old
