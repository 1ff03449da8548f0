"""`FakeKube`: the API server's manners in memory, for tests of everything that takes a `KubeClient`; and sample objects.

It has resource versions and generations, server-side apply that forgets what is no longer sent, a status apart, collection
by owner reference, preconditions, and failures on demand. It has no controllers: what they would do, a test does with
`put` and `remove`. Verbs that `kinds.py` does not grant are refused, as the chart's RBAC would.
"""

import base64
import copy
from collections.abc import Iterable, Mapping
from typing import Any

from octavo_operator.kinds import KINDS
from octavo_operator.kube_client import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    ObjectList,
    Raw,
    Witness,
    name_of,
    version_of,
)

Place = tuple[str, str, str]
"""Kind, namespace (empty for the cluster's), name."""

CREATED = "2026-01-01T00:00:00Z"


class FakeKube:
    """Objects by kind, namespace and name. `writes` has what was written, in order."""

    def __init__(
        self, objects: Iterable[Mapping[str, Any]] = (), witness: Witness | None = None, *, as_operator: bool = True
    ) -> None:
        self.writes: list[tuple[str, str, str, str]] = []
        self.events: list[Raw] = []
        self.served = {kind.name for kind in KINDS.values() if not kind.optional}
        self.pages: dict[tuple[str, str, str], str] = {}  # (namespace, pod, path)
        self.lingering = False  # whether deleted pods stay, terminating, until `remove`
        self._objects: dict[Place, Raw] = {}
        self._applied: dict[
            tuple[Place, str], Raw
        ] = {}  # what server-side apply last sent, for an object or its status
        self._failures: list[tuple[ApiError, str]] = []
        self._witness = witness
        self._as_operator = as_operator
        self._version = 0
        self._uids = 0
        for raw in objects:
            self.put(raw)

    # what a test does

    def put(self, raw: Mapping[str, Any]) -> Raw:
        """Create or replace an object, as any other client; its status included."""
        place, kept = _place(raw), copy.deepcopy(dict(raw))
        old = self._objects.get(place)
        return copy.deepcopy(self._store(place, kept, old))

    def change(self, kind: str, namespace: str, name: str, body: Mapping[str, Any]) -> Raw:
        """Merge-patch an object as any other client; its status included."""
        return self.put(_merge_patched(self._found((kind, namespace, name)), body))

    def remove(self, kind: str, namespace: str, name: str) -> None:
        """The object goes away, and with it what it owns."""
        raw = self._objects.pop((kind, namespace, name), None)
        if raw is None:
            return
        self._applied = {which: sent for which, sent in self._applied.items() if which[0] != (kind, namespace, name)}
        uid = raw["metadata"]["uid"]
        for place, child in list(self._objects.items()):
            if any(owner["uid"] == uid for owner in child["metadata"].get("ownerReferences") or ()):
                self.remove(*place)

    def find(self, kind: str, namespace: str, name: str) -> Raw | None:
        """A copy of an object."""
        return copy.deepcopy(self._objects.get((kind, namespace, name)))

    def all(self, kind: str) -> list[Raw]:
        """Copies of all objects of a kind."""
        return [copy.deepcopy(raw) for place, raw in self._objects.items() if place[0] == kind]

    def fail_next(self, error: ApiError, verb: str = "") -> None:
        """The next call (of this verb) ends like this, without effect."""
        self._failures.append((error, verb))

    # KubeClient

    async def get(self, kind: str, namespace: str | None, name: str) -> Raw:
        """A copy."""
        self._begin("get", kind)
        return copy.deepcopy(self._found((kind, namespace or "", name)))

    async def list(self, kind: str, namespace: str | None = None, *, labels: str = "", fields: str = "") -> ObjectList:
        """Copies; selectors know equality only."""
        self._begin("list", kind)
        if kind not in self.served:
            raise NotFound(404, "the server could not find the requested resource")
        found = [
            copy.deepcopy(raw)
            for place, raw in self._objects.items()
            if place[0] == kind
            and namespace in (None, place[1])
            and all(_labels(raw).get(name) == value for name, value in _terms(labels))
            and all(str(_at(raw, path)) == value for path, value in _terms(fields))
        ]
        return ObjectList(tuple(found), str(self._version))

    async def apply(self, manifest: Mapping[str, Any]) -> Raw:
        """Server-side apply."""
        place = _place(manifest)
        self._begin("patch", place[0])
        return self._apply(place, manifest, "")

    async def patch_status(self, namespace: str, name: str, uid: str, status: Mapping[str, Any]) -> Raw:
        """Server-side apply of the status."""
        place = ("LLMDeployment", namespace, name)
        self._begin("patch", place[0], "status")
        if self._found(place)["metadata"]["uid"] != uid:
            raise Conflict(409, "the uid is another one")
        return self._apply(place, {"status": status}, "status")

    async def create(self, manifest: Mapping[str, Any]) -> Raw:
        """POST."""
        place = _place(manifest)
        self._begin("create", place[0])
        if place in self._objects:
            raise Conflict(409, "already exists", name_of(manifest))
        return self._written("create", place, dict(manifest))

    async def replace(self, manifest: Mapping[str, Any]) -> Raw:
        """PUT."""
        place = _place(manifest)
        self._begin("update", place[0])
        sent, old = manifest["metadata"], self._objects.get(place, {}).get("metadata")
        if old is None and place[0] != "Lease":  # a PUT makes those of this kind, whatever version it names
            raise NotFound(404, "not found", name_of(manifest))
        now = old or {"uid": "", "resourceVersion": sent.get("resourceVersion")}
        if any(sent.get(name, now[name]) != now[name] for name in ("uid", "resourceVersion")):
            raise Conflict(409, "the object has been modified", name_of(manifest))
        return self._written("update", place, dict(manifest))

    async def merge_patch(self, kind: str, namespace: str, name: str, body: Mapping[str, Any]) -> Raw:
        """JSON merge patch; a uid in it is a precondition."""
        self._begin("patch", kind)
        old = self._found((kind, namespace, name))
        uid = body.get("metadata", {}).get("uid", old["metadata"]["uid"])
        if uid != old["metadata"]["uid"]:
            raise Conflict(409, "the uid is another one")
        return self._written("patch", (kind, namespace, name), _merge_patched(old, body))

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None
    ) -> None:
        """DELETE; a pod stays, terminating, while `lingering`."""
        self._begin("delete", kind)
        raw = self._objects.get((kind, namespace, name))
        if raw is not None and uid not in (None, raw["metadata"]["uid"]):
            raise Conflict(409, "the uid is another one")
        if raw is not None and kind == "Pod" and self.lingering and grace_seconds != 0:
            self._written("delete", (kind, namespace, name), _merge_patched(raw, _TERMINATING))
            return
        self.writes.append(("delete", kind, namespace, name))
        self.remove(kind, namespace, name)
        if self._witness:
            self._witness.forget(kind, namespace, name)

    async def read_secret(self, namespace: str, name: str) -> dict[str, bytes]:
        """Decoded values."""
        raw = await self.get("Secret", namespace, name)
        return {key: base64.b64decode(value) for key, value in (raw.get("data") or {}).items()}

    async def create_event(self, event: Mapping[str, Any]) -> None:
        """Kept in `events`."""
        self._begin("create", "Event")
        self.events.append(dict(event))

    async def serves(self, kind: str) -> bool:
        """Whether it is in `served`."""
        self._fail("serves")
        return kind in self.served

    async def pod_page(self, namespace: str, pod: str, port: int, path: str) -> str:
        """From `pages`; the port does not matter."""
        try:
            return self.pages[namespace, pod, path]
        except KeyError:
            raise NotFound(404, f"port {port} of {pod} has no {path}") from None

    # inside

    def _begin(self, verb: str, kind: str, subresource: str = "") -> None:
        if self._as_operator and not KINDS[kind].permits(verb, subresource):
            raise Forbidden(403, f"kinds.py does not grant {verb} on {KINDS[kind].plural}/{subresource}")
        self._fail(verb)

    def _fail(self, verb: str) -> None:
        for index, (error, of) in enumerate(self._failures):
            if of in ("", verb):
                del self._failures[index]
                raise error

    def _found(self, place: Place) -> Raw:
        try:
            return self._objects[place]
        except KeyError:
            raise NotFound(404, "not found", f"{place[0]} {place[1]}/{place[2]}") from None

    def _apply(self, place: Place, manifest: Mapping[str, Any], part: str) -> Raw:
        old = self._objects.get(place)
        before = self._applied.get((place, part), {})
        kept = copy.deepcopy(old) if old is not None else {}
        _forget(kept, before, manifest)
        _lay_over(kept, copy.deepcopy(dict(manifest)))
        self._applied[place, part] = copy.deepcopy(dict(manifest))
        return self._written("apply" if not part else "status", place, kept)

    def _written(self, verb: str, place: Place, kept: Raw) -> Raw:
        self.writes.append((verb, *place))
        stored = copy.deepcopy(self._store(place, kept, self._objects.get(place)))
        if self._witness:
            self._witness.see(copy.deepcopy(stored))
        return stored

    def _store(self, place: Place, kept: Raw, old: Raw | None) -> Raw:
        metadata = kept["metadata"] = dict(kept["metadata"])
        if old is None:
            self._uids += 1
            metadata.setdefault("uid", f"uid-{self._uids}")
            metadata.setdefault("creationTimestamp", CREATED)
            metadata.setdefault("generation", 1)
        else:
            for name in ("uid", "creationTimestamp", "generation", "resourceVersion"):
                metadata[name] = old["metadata"][name]
            if kept == old:
                return old
            if kept.get("spec") != old.get("spec"):
                metadata["generation"] += 1
        self._version = max(self._version + 1, version_of(kept))
        metadata["resourceVersion"] = str(self._version)
        self._objects[place] = kept
        return kept


_TERMINATING = {"metadata": {"deletionTimestamp": CREATED}}


def llm_deployment(name: str = "smollm", namespace: str = "default", **spec: Any) -> Raw:
    """A minimal resource, as a server gives it; `spec` comes over it."""
    return {
        "apiVersion": "octavo.dev/v1alpha1",
        "kind": "LLMDeployment",
        "metadata": {"namespace": namespace, "name": name, "uid": f"uid-of-{namespace}-{name}", "generation": 1},
        "spec": {"model": {"uri": "hf://HuggingFaceTB/SmolLM2-135M-Instruct"}, **spec},
    }


def node(name: str = "node-1", allocatable: Mapping[str, str] | None = None) -> Raw:
    """A node that is ready."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "allocatable": dict(allocatable or {"cpu": "8", "memory": "32Gi", "pods": "110"}),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _place(raw: Mapping[str, Any]) -> Place:
    return raw["kind"], raw["metadata"].get("namespace", ""), raw["metadata"]["name"]


def _labels(raw: Mapping[str, Any]) -> Mapping[str, str]:
    return raw["metadata"].get("labels") or {}


def _terms(selector: str) -> list[tuple[str, str]]:
    pairs = (term.partition("=") for term in selector.split(",") if term)
    return [(name, value) for name, _, value in pairs]


def _at(raw: Any, path: str) -> Any:
    for name in path.split("."):
        raw = raw.get(name, {})
    return raw


def _merge_patched(value: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = copy.deepcopy(value) if isinstance(value, dict) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = _merge_patched(result.get(name), change)
    return result


def _forget(kept: Raw, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Remove what was applied before and is no longer."""
    for name, value in before.items():
        if name not in now:
            kept.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(now[name], Mapping) and isinstance(kept.get(name), dict):
            _forget(kept[name], value, now[name])


def _lay_over(kept: Raw, manifest: Mapping[str, Any]) -> None:
    for name, value in manifest.items():
        if isinstance(value, Mapping) and isinstance(kept.get(name), dict):
            _lay_over(kept[name], value)
        else:
            kept[name] = value
