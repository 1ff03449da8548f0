"""`Observer`: one read of the caches per reconcile -> `Observed`. What the caches do not hold is asked for, and kept a while.

Asked for are Events of pods and claims that are not well, ConfigMaps and typed Secrets that a spec names, and whether the
server knows PodMonitors. A question that the server cannot answer now counts as "nothing known": the next pass asks again.
"""

import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from octavo_operator import names
from octavo_operator.api import LLMDeployment, parse
from octavo_operator.cache import Cache
from octavo_operator.effective import token_key
from octavo_operator.kinds import KINDS
from octavo_operator.kube_client import ApiError, KubeClient, NotFound, Raw
from octavo_operator.names import Key
from octavo_operator.observed import (
    ClaimView,
    ClusterView,
    EventView,
    JobView,
    NodeView,
    Observed,
    PodView,
    RevisionView,
    RuntimeView,
)
from octavo_operator.slimming import HASHES
from octavo_operator.views import (
    has_scope,
    view_claim,
    view_event,
    view_job,
    view_node,
    view_pod,
    view_quota,
    view_revision,
    view_storage_classes,
)
from octavo_operator.wakeup import references_of
from octavo_operator.weights import claim_of_uri, shared_claim

log = logging.getLogger(__name__)

EVENTS_SECONDS = 5.0
OBJECT_SECONDS = 15.0
KINDS_SECONDS = 60.0
FEWEST_ANSWERS = 4096  # beyond it, those of objects long gone are dropped when their number has doubled

Answer = TypeVar("Answer")
SeenNode = tuple[Raw, Mapping[str, int], NodeView]
"""What a view was made of, and the view."""


class RuntimeViews(Protocol):
    """Who reads the pods' own words: the scraper."""

    def view(self, pod_uid: str) -> RuntimeView | None:
        """The last answer of a pod."""
        ...


class Observer:
    """Reads for `reconcile.py`."""

    def __init__(self, kube: KubeClient, cache: Cache, runtimes: RuntimeViews, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._cache = cache
        self._runtimes = runtimes
        self._clock = clock
        self._asked: dict[tuple[str, ...], tuple[float, Any]] = {}
        self._most = FEWEST_ANSWERS
        self._nodes: dict[str, SeenNode] = {}
        self._cluster: tuple[int, tuple[NodeView, ...], frozenset[str], str] = (-1, (), frozenset(), "")

    async def observe(self, key: Key) -> Observed | None:
        """Everything about one resource. None when it is gone (or on its way). Raises SpecError."""
        raw = self._cache.deployment(key)
        if raw is None or "deletionTimestamp" in raw["metadata"]:
            return None
        deployment = parse(raw)
        return Observed(
            now=self._clock(),
            deployment=deployment,
            cluster=await self._view_cluster(deployment.namespace),
            revisions=await self._view_revisions(key, deployment.uid),
            claim=await self._view_claim(deployment),
            downloads=await self._view_downloads(key, deployment.uid),
            api_key_hashes=self._view_keys(raw),
            token_hash=self._token_hash(deployment),
            missing_references=await self._missing(raw, deployment),
        )

    async def _view_cluster(self, namespace: str) -> ClusterView:
        if self._cluster[0] != self._cache.cluster_version:
            self._nodes = {raw["metadata"]["name"]: self._view_node(raw, busy) for raw, busy in self._cache.nodes()}
            nodes = tuple(view for _, _, view in self._nodes.values())
            self._cluster = (self._cache.cluster_version, nodes, *view_storage_classes(self._cache.storage_classes()))
        _, nodes, classes, default = self._cluster
        return ClusterView(
            nodes=nodes,
            quotas=tuple(view_quota(raw) for raw in self._cache.quotas(namespace) if not has_scope(raw)),
            storage_classes=classes,
            default_storage_class=default,
            kinds=await self._view_kinds(),
        )

    def _view_node(self, raw: Raw, requested: Mapping[str, int]) -> SeenNode:
        """The same view until something of this node changes: on some other node of a large cluster something always does."""
        known = self._nodes.get(raw["metadata"]["name"])
        if known is not None and known[0] is raw and known[1] == requested:
            return known
        return raw, dict(requested), view_node(raw, requested)

    async def _view_kinds(self) -> frozenset[str]:
        optional = [kind.name for kind in KINDS.values() if kind.optional]
        found = [
            await self._ask(
                ("serves", name), KINDS_SECONDS, partial(self._kube.serves, name), self._cache.count(name) > 0
            )
            for name in optional
        ]
        return frozenset(name for name, is_served in zip(optional, found, strict=True) if is_served)

    async def _view_revisions(self, key: Key, uid: str) -> tuple[RevisionView, ...]:
        records = {_hash(raw): raw for raw in self._cache.children("ControllerRevision", key, uid)}
        deployments = {_hash(raw): raw for raw in self._cache.children("Deployment", key, uid)}
        pods: dict[str, list[PodView]] = defaultdict(list)
        for raw in self._cache.children("Pod", key, uid):
            if _component(raw) == names.SERVER:
                pods[_hash(raw)].append(await self._view_pod(raw))
        found = [
            view_revision(name, records.get(name), deployments.get(name), pods.get(name, ()))
            for name in records.keys() | deployments.keys() | pods.keys()
        ]
        return tuple(sorted(found, key=lambda revision: (revision.number, revision.hash)))

    async def _view_downloads(self, key: Key, uid: str) -> tuple[JobView, ...]:
        pods: dict[str, list[PodView]] = defaultdict(list)
        for raw in self._cache.children("Pod", key, uid):
            for owner in raw["metadata"].get("ownerReferences") or ():
                if owner.get("kind") == "Job":
                    pods[owner["uid"]].append(await self._view_pod(raw))
        jobs = self._cache.children("Job", key, uid)
        return tuple(view_job(raw, pods.get(raw["metadata"]["uid"], ())) for raw in jobs)

    async def _view_pod(self, raw: Raw) -> PodView:
        view = view_pod(raw, self._runtimes.view(raw["metadata"].get("uid", "")))
        if view.ready or view.terminating or view.phase == "Succeeded" or not view.node:
            return view  # of one without a node the scheduler has said everything in its condition
        return view_pod(raw, view.runtime, await self._events_of(raw))

    async def _view_claim(self, deployment: LLMDeployment) -> ClaimView | None:
        # The user's, or ours if there is one.
        name = claim_of_uri(deployment.spec.model.uri) or shared_claim(deployment)
        raw = self._cache.claim(deployment.namespace, name)
        if raw is None:
            return None
        bound = (raw.get("status") or {}).get("phase") == "Bound"
        return view_claim(raw, () if bound else await self._events_of(raw))

    def _view_keys(self, raw: Raw) -> Mapping[str, str]:
        return {
            f"{secret['metadata']['name']}/{name}": value
            for secret in self._cache.key_secrets(raw)
            for name, value in secret[HASHES].items()
        }

    def _token_hash(self, deployment: LLMDeployment) -> str:
        credentials = deployment.spec.model.credentials
        if credentials is None:
            return ""
        hashes = self._cache.secret_hashes(deployment.namespace, credentials.secret_ref.name) or {}
        return hashes.get(token_key(credentials), "")

    async def _missing(self, raw: Raw, deployment: LLMDeployment) -> tuple[str, ...]:
        found = [
            f"{kind} {name}"
            for kind, name in sorted(references_of(raw))
            if not await self._exists(kind, deployment.namespace, name)
        ]
        credentials = deployment.spec.model.credentials
        if credentials:
            name, key = credentials.secret_ref.name, token_key(credentials)
            hashes = self._cache.secret_hashes(deployment.namespace, name)
            if hashes is not None and key not in hashes:
                found.append(f"Secret {name}, key {key}")
        return tuple(found)

    async def _exists(self, kind: str, namespace: str, name: str) -> bool:
        if kind == "PersistentVolumeClaim":
            return self._cache.claim(namespace, name) is not None
        if kind == "Secret" and self._cache.secret_hashes(namespace, name) is not None:
            return True
        return await self._ask(
            ("get", kind, namespace, name), OBJECT_SECONDS, lambda: self._get(kind, namespace, name), True
        )

    async def _get(self, kind: str, namespace: str, name: str) -> bool:
        try:
            await self._kube.get(kind, namespace, name)
        except NotFound:
            return False
        return True

    async def _events_of(self, raw: Raw) -> tuple[EventView, ...]:
        namespace, uid = raw["metadata"]["namespace"], raw["metadata"].get("uid", "")
        return await self._ask(("events", uid), EVENTS_SECONDS, lambda: self._told_of(namespace, uid), ())

    async def _told_of(self, namespace: str, uid: str) -> tuple[EventView, ...]:
        found = await self._kube.list("Event", namespace, fields=f"involvedObject.uid={uid}")
        return tuple(sorted(map(view_event, found.items), key=lambda event: event.at))

    async def _ask(
        self, question: tuple[str, ...], seconds: float, ask: Callable[[], Awaitable[Answer]], unknown: Answer
    ) -> Answer:
        """The answer, at most so old."""
        now = self._clock()
        at, answer = self._asked.get(question, (float("-inf"), unknown))
        if now - at < seconds:
            return answer  # type: ignore[no-any-return]
        try:
            answer = await ask()
        except ApiError as error:
            log.warning("cannot ask the API server about %s: %s", "/".join(question), error)  # the last answer stands
        if len(self._asked) >= self._most:
            self._asked = {old: kept for old, kept in self._asked.items() if now - kept[0] < KINDS_SECONDS}
            self._most = max(FEWEST_ANSWERS, 2 * len(self._asked))
        self._asked[question] = (now, answer)
        return answer  # type: ignore[no-any-return]


def _hash(raw: Raw) -> str:
    return (raw["metadata"].get("labels") or {}).get(names.REVISION, "")  # type: ignore[no-any-return]


def _component(raw: Raw) -> str:
    return (raw["metadata"].get("labels") or {}).get(names.COMPONENT, "")  # type: ignore[no-any-return]
