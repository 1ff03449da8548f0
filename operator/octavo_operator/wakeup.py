"""Which LLMDeployments a changed object concerns. Pure: a raw object and the known resources in, keys out.

A child names its resource in a label. Secrets and claims concern those whose spec names or selects them
(ConfigMaps are asked for, not watched); nodes, quotas, storage classes and freed room concern those that wait for room.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from octavo_operator.names import DEPLOYMENT, Key
from octavo_operator.reasons import Reason
from octavo_operator.weights import claim_of_uri

WAITING = frozenset(
    {
        Reason.WAITING_FOR_GPU,
        Reason.WAITING_FOR_QUOTA,
        Reason.WAITING_FOR_NODE,
        Reason.ROLLOUT_BLOCKED_NO_CAPACITY,
        Reason.IMPOSSIBLE_REQUEST,
        Reason.STORAGE_CLASS_MISSING,
        Reason.DEVICE_UNAVAILABLE,
    }
)


class World(Protocol):
    """What is known of all resources."""

    def deployments(self, namespace: str) -> Iterable[Mapping[str, Any]]:
        """Raw LLMDeployments of a namespace."""
        ...

    def waiting(self) -> Iterable[Key]:
        """Those that wait for room."""
        ...


def keys_to_wake(raw: Mapping[str, Any], world: World) -> frozenset[Key]:
    """Whom a new, changed or deleted object concerns."""
    kind, metadata = raw["kind"], raw["metadata"]
    namespace = metadata.get("namespace", "")
    owner = owner_of(raw)
    if kind == "LLMDeployment":
        return frozenset({key_of(raw)})
    if kind in ("Node", "StorageClass") or (kind == "Pod" and owner is None):
        return frozenset(world.waiting())
    if kind == "ResourceQuota":
        return frozenset(key for key in world.waiting() if key[0] == namespace)
    keys = {owner} if owner else set()
    if kind == "Secret" and owner:  # no spec names or selects one of ours, and there are as many as resources
        return frozenset(keys)
    if kind in ("Secret", "PersistentVolumeClaim"):
        reference = (kind, metadata["name"])
        labels = metadata.get("labels") or {}
        keys |= {
            key_of(deployment)
            for deployment in world.deployments(namespace)
            if reference in references_of(deployment) or (kind == "Secret" and selects(selector_of(deployment), labels))
        }
    return frozenset(keys)


def key_of(raw: Mapping[str, Any]) -> Key:
    """Of an LLMDeployment."""
    return raw["metadata"]["namespace"], raw["metadata"]["name"]


def owner_of(raw: Mapping[str, Any]) -> Key | None:
    """The resource that a child's label names."""
    metadata = raw["metadata"]
    name = (metadata.get("labels") or {}).get(DEPLOYMENT)
    return (metadata.get("namespace", ""), name) if name else None


def waits_for_room(deployment: Mapping[str, Any]) -> bool:
    """Whether its status says that it waits for what other objects may free."""
    conditions = (deployment.get("status") or {}).get("conditions") or ()
    return any(condition.get("reason") in WAITING for condition in conditions)


def references_of(deployment: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Kind and name of the objects that the spec names. The spec may be one that nobody has checked."""
    return frozenset(_references(deployment.get("spec") or {}))


def selector_of(deployment: Mapping[str, Any]) -> Mapping[str, str]:
    """Labels of the Secrets that hold its API keys; empty: it selects none."""
    return _at(deployment, "spec", "access", "apiKeys", "secretSelector")


def selects(selector: Mapping[str, str], labels: Mapping[str, str]) -> bool:
    """Whether these labels have all of a selector, which has some."""
    return bool(selector) and all(labels.get(name) == value for name, value in selector.items())


def _references(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    named = (
        ("Secret", _at(spec, "model", "credentials", "secretRef").get("name")),
        ("Secret", _at(spec, "access", "tls").get("secretName")),
        ("ConfigMap", _at(spec, "model", "chatTemplate", "configMapKeyRef").get("name")),
        ("PersistentVolumeClaim", _at(spec, "cache", "sharedPVC").get("claimName")),
        ("PersistentVolumeClaim", claim_of_uri(str(_at(spec, "model").get("uri")))),
    )
    return ((kind, name) for kind, name in named if isinstance(name, str) and name)


def _at(value: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """The block at a path; an empty one when it is not there."""
    for name in path:
        block = value.get(name)
        if not isinstance(block, Mapping):
            return {}
        value = block
    return value
