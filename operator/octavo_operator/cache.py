"""`Cache`: the newest known form of every object that the operator reads, from watches, lists and its own writes.

Whatever has the higher resource version wins, wherever it comes from: so a reconcile reads its own writes, and a late
event changes nothing. Objects of one resource are found without looking at those of another. Knows no I/O and no kopf.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from octavo_operator.kube_client import ObjectList, Raw, version_of
from octavo_operator.names import Key
from octavo_operator.slimming import HASHES, is_ours, node_of, requests_of, slim
from octavo_operator.wakeup import owner_of, selector_of, selects, waits_for_room

Place = tuple[str, str]
"""Namespace (empty for a node) and name."""

_NEWEST = 1 << 63


class Cache:
    """Fed by `see`, `forget` and `replace_all`, each of which says what is news; read by `observe.py`."""

    def __init__(self) -> None:
        self._objects: dict[str, dict[Place, Raw]] = defaultdict(dict)
        self._children: dict[Key, dict[str, dict[str, Raw]]] = defaultdict(lambda: defaultdict(dict))
        self._by_namespace: dict[tuple[str, str], dict[str, Raw]] = defaultdict(dict)  # (kind, namespace) -> name
        self._waiting: set[Key] = set()
        self._deleted: dict[tuple[str, Place], int] = {}  # versions at which objects went away
        self._listed: dict[str, int] = {}  # version of the last list, by kind
        self._shares: dict[Place, tuple[str, Mapping[str, int]]] = {}  # pod -> its node and requests
        self._requested: dict[str, Counter[str]] = defaultdict(Counter)  # node -> sum
        self.cluster_version = 0  # rises with every change of nodes, their load or storage classes

    # feeding

    def see(self, raw: Raw) -> bool:
        """An object as it was at its resource version. False when that, or all that matters of it, was known."""
        kind, place, version = raw["kind"], _place(raw), version_of(raw)
        known = self._objects[kind].get(place)
        if version <= max(self._deleted.get((kind, place), 0), version_of(known) if known else -1):
            return False
        kept = slim(raw)
        self._remove(kind, place)
        self._insert(kind, place, kept)
        return self._matters(kind, known, kept)

    def forget(self, kind: str, namespace: str | None, name: str, version: int | None = None) -> Raw | None:
        """An object went away (at this version). Returns what was known of it; None when nothing was."""
        place = (namespace or "", name)
        known = self._objects[kind].get(place)
        gone_at = version if version is not None else version_of(known) if known else 0
        self._deleted[kind, place] = max(gone_at, self._deleted.get((kind, place), 0))
        if known is None or version_of(known) > gone_at:
            return None
        self._remove(kind, place)
        return known

    def replace_all(self, kind: str, found: ObjectList, namespace: str | None = None) -> list[Raw]:
        """All objects of a kind (in a namespace), as a list gave them. Returns what is news, what went away included.

        Watches lose deletions while they are cut; this is where they are noticed. A version below that of the last list
        means that the API server's storage was set back: what was known then counts for nothing.
        """
        version = int(found.resource_version) if found.resource_version.isdigit() else _NEWEST
        if version < self._listed.get(kind, 0):
            self._deleted = {gone: at for gone, at in self._deleted.items() if gone[0] != kind}
            for place in list(self._objects[kind]):
                self._remove(kind, place)
        self._listed[kind] = version if version < _NEWEST else 0
        news = []
        for raw in found.items:
            before = self.relabelled(raw)
            if self.see(raw):
                news += [raw] if before is None else [raw, before]
        there = {_place(raw) for raw in found.items}
        for place, known in list(self._objects[kind].items()):
            if place not in there and version_of(known) <= version and namespace in (None, place[0]):
                self._remove(kind, place)
                news.append(known)
        self._deleted = {gone: at for gone, at in self._deleted.items() if gone[0] != kind or at > version}
        return news

    # reading

    def relabelled(self, raw: Raw) -> Raw | None:
        """What is known of this object if its labels were others: then it may have concerned others than it does now."""
        known = self._objects[raw["kind"]].get(_place(raw))
        if known is None or (known["metadata"].get("labels") or {}) == (raw["metadata"].get("labels") or {}):
            return None
        return known

    def keys(self) -> frozenset[Key]:
        """All LLMDeployments."""
        return frozenset(self._objects["LLMDeployment"])

    def deployment(self, key: Key) -> Raw | None:
        """An LLMDeployment."""
        return self._objects["LLMDeployment"].get(key)

    def deployments(self, namespace: str) -> tuple[Raw, ...]:
        """LLMDeployments of a namespace."""
        return self._in(namespace, "LLMDeployment")

    def waiting(self) -> frozenset[Key]:
        """LLMDeployments that wait for room."""
        return frozenset(self._waiting)

    def children(self, kind: str, key: Key, uid: str) -> tuple[Raw, ...]:
        """Objects with the resource's label, less those that another uid, or nobody, controls. Pods: all."""
        found = self._children[key][kind].values() if key in self._children else ()
        return tuple(raw for raw in found if kind == "Pod" or controlled_by(raw, uid))

    def child(self, kind: str, key: Key, uid: str, name: str) -> Raw | None:
        """One of `children`."""
        raw = self._children[key][kind].get(name) if key in self._children else None
        return raw if raw and (kind == "Pod" or controlled_by(raw, uid)) else None

    def claim(self, namespace: str, name: str) -> Raw | None:
        """A PersistentVolumeClaim."""
        return self._objects["PersistentVolumeClaim"].get((namespace, name))

    def quotas(self, namespace: str) -> tuple[Raw, ...]:
        """ResourceQuotas of a namespace."""
        return self._in(namespace, "ResourceQuota")

    def secret_hashes(self, namespace: str, name: str) -> Mapping[str, str] | None:
        """Hashes of a foreign Opaque Secret, by key. None: not known, which for a Secret of another type is no news."""
        raw = self._objects["Secret"].get((namespace, name))
        return raw[HASHES] if raw and HASHES in raw else None

    def key_secrets(self, deployment: Mapping[str, Any]) -> tuple[Raw, ...]:
        """The (slim) Secrets that its apiKeys select, never our own."""
        selector = selector_of(deployment)
        found = self._in(deployment["metadata"]["namespace"], "Secret") if selector else ()
        return tuple(
            raw for raw in found if selects(selector, raw["metadata"].get("labels") or {}) and not is_ours(raw)
        )

    def nodes(self) -> tuple[tuple[Raw, Mapping[str, int]], ...]:
        """Nodes with what the pods on them ask for together."""
        return tuple((raw, self._requested[name]) for (_, name), raw in self._objects["Node"].items())

    def storage_classes(self) -> tuple[Raw, ...]:
        """All StorageClasses."""
        return tuple(self._objects["StorageClass"].values())

    def count(self, kind: str) -> int:
        """How many of a kind are known."""
        return len(self._objects[kind])

    # inside

    def _in(self, namespace: str, kind: str) -> tuple[Raw, ...]:
        return tuple(self._by_namespace.get((kind, namespace), {}).values())

    def _insert(self, kind: str, place: Place, kept: Raw) -> None:
        self._objects[kind][place] = kept
        self._by_namespace[kind, place[0]][place[1]] = kept
        owner = owner_of(kept)
        if owner:
            self._children[owner][kind][place[1]] = kept
        if kind == "LLMDeployment" and waits_for_room(kept):
            self._waiting.add(place)
        if kind == "Pod":
            self._take_share(place, kept)
        if kind in ("Node", "StorageClass"):
            self.cluster_version += 1

    def _remove(self, kind: str, place: Place) -> None:
        known = self._objects[kind].pop(place, None)
        if known is None:
            return
        self._by_namespace[kind, place[0]].pop(place[1], None)
        owner = owner_of(known)
        if owner:
            of_owner = self._children[owner]
            of_owner[kind].pop(place[1], None)
            if not any(of_owner.values()):
                del self._children[owner]
        if kind == "LLMDeployment":
            self._waiting.discard(place)
        if kind == "Pod":
            self._free_share(place)
        if kind in ("Node", "StorageClass"):
            self.cluster_version += 1

    def _take_share(self, place: Place, kept: Raw) -> None:
        node = kept["node"] if "node" in kept else node_of(kept)
        if node:
            requests = requests_of(kept)
            self._shares[place] = (node, requests)
            self._requested[node].update(requests)
            self.cluster_version += 1

    def _free_share(self, place: Place) -> None:
        node, requests = self._shares.pop(place, ("", {}))
        if node:
            self._requested[node].subtract(requests)
            self.cluster_version += 1

    def _matters(self, kind: str, known: Raw | None, kept: Raw) -> bool:
        """Heartbeats of nodes and the lives of foreign pods wake nobody; a foreign pod's end does, and one that was ours."""
        if kind == "Pod" and "node" in kept:
            return known is not None and ("node" not in known or (bool(known["node"]) and not kept["node"]))
        if known is None or kind not in ("Node", "ResourceQuota"):
            return True
        return {**known, "metadata": _lasting(known)} != {**kept, "metadata": _lasting(kept)}


def controlled_by(raw: Mapping[str, Any], uid: str) -> bool:
    """Whether the object's controller has this uid."""
    owners: Iterable[Mapping[str, Any]] = raw["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner.get("uid") == uid for owner in owners)


def _place(raw: Mapping[str, Any]) -> Place:
    metadata = raw["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _lasting(raw: Mapping[str, Any]) -> Raw:
    return {name: value for name, value in raw["metadata"].items() if name != "resourceVersion"}
