"""`Effects`: carries a pass's decisions out, in an order that is safe to be stopped at any point.

Given frozen decisions; writes only what differs from what was seen. What the API server refuses is kept as a finding for the
status instead of ending the pass: the other children are still brought in order.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from octavo_operator import names
from octavo_operator.apply import NameTaken, apply_if_changed, differs, is_outdated
from octavo_operator.cache import Cache
from octavo_operator.desired import PRUNABLE, ChildInputs, children, revision_children
from octavo_operator.desired.arguments import API_KEYS_FILE, reads_api_keys
from octavo_operator.desired.service import service_scheme
from octavo_operator.effective import OperatorIdentity
from octavo_operator.journal import tell, tell_written
from octavo_operator.kube_client import Conflict, Forbidden, Invalid, KubeClient, NotFound
from octavo_operator.names import Key
from octavo_operator.observed import Observed, PodView
from octavo_operator.preparing import Prepared
from octavo_operator.reasons import Reason
from octavo_operator.revision import egress_ports, record_of
from octavo_operator.rolling import Rolling
from octavo_operator.rollout.replica_set import MARKED_COST, RELEASED_COST
from octavo_operator.status.creation import diagnose_create
from octavo_operator.status.finding import Finding
from octavo_operator.timestamp import format_time

Raw = dict[str, Any]


class Effects:
    """The only writer of children and pod marks."""

    def __init__(self, kube: KubeClient, cache: Cache) -> None:
        self._kube = kube
        self._cache = cache
        self._refusals: dict[Key, list[Finding]] = {}

    def refusals(self, key: Key) -> tuple[Finding, ...]:
        """What was refused in the last pass."""
        return tuple(self._refusals.get(key, ()))

    def forget(self, key: Key) -> None:
        """The resource is gone."""
        self._refusals.pop(key, None)

    async def carry_out(
        self, rolling: Rolling, prepared: Prepared, replicas: int, operator: OperatorIdentity, admin_key_hash: str
    ) -> None:
        """State of revisions and what pods need first, then pods, then what is no longer needed."""
        observed = rolling.observed
        self._refusals[_key(observed)] = []
        records = [record_of(view) for view in observed.revisions if view.data]
        inputs = ChildInputs(
            replicas=replicas,
            operator=operator,
            admin_key_hash=admin_key_hash,
            scheme=service_scheme(observed.deployment, observed.revisions),
            api_key_hashes=observed.api_key_hashes,
            kept_api_keys=self._kept_api_keys(observed),
            egress_ports=egress_ports(records),
        )
        wanted = [*children(observed.deployment, prepared.effective, inputs)]
        jobs = [] if prepared.downloader is None else [dict(prepared.downloader)]
        states = self._records(rolling)
        await self._apply_together(observed, [*states, *wanted, *self._new(observed, jobs)])
        await self._end_outdated(observed, jobs)
        await self._mark_pods(rolling)
        await self._set_replicas(rolling)
        await self._prune(observed, rolling, [*wanted, *jobs])

    def _kept_api_keys(self, observed: Observed) -> str:
        """The file of API keys as it is, while there are pods, or may be again, that do not start without it.

        Whom the spec asked to let in then is known from nowhere else.
        """
        live = [view for view in observed.revisions if view.pods or view.replicas is not None]
        if not any(reads_api_keys(view.data.get("template") or {}) for view in live):
            return ""
        seen = self._seen(observed, "Secret", names.keys_secret(observed.deployment.name))
        return str((seen or {}).get("data", {}).get(API_KEYS_FILE, ""))

    def _new(self, observed: Observed, jobs: Iterable[Raw]) -> list[Raw]:
        """Jobs that are not there yet: a Job's template cannot be changed."""
        return [job for job in jobs if self._seen(observed, "Job", job["metadata"]["name"]) is None]

    async def _end_outdated(self, observed: Observed, jobs: Iterable[Raw]) -> None:
        """A Job that has not finished and would be made differently goes; the next pass makes it anew."""
        complete = {job.name for job in observed.downloads if job.complete}
        for job in jobs:
            name = job["metadata"]["name"]
            seen = self._seen(observed, "Job", name)
            if seen is not None and name not in complete and is_outdated(job, seen):
                await self._delete(observed, "Job", name)

    def _seen(self, observed: Observed, kind: str, name: str) -> Raw | None:
        return self._cache.child(kind, _key(observed), observed.deployment.uid, name)

    def _records(self, rolling: Rolling) -> list[Raw]:
        """ControllerRevisions that are new or whose state changed."""
        deployment = rolling.observed.deployment
        return [revision_children(deployment, record, None)[0] for record in rolling.records]

    async def _mark_pods(self, rolling: Rolling) -> None:
        """Put drain marks on and take them off; delete what the ReplicaSet could not choose."""
        plan, observed = rolling.plan, rolling.observed
        if plan is None:
            return
        pods = {pod.name: pod for view in observed.revisions for pod in view.pods}
        for name in plan.drain:
            if await self._patch_pod(observed, pods.get(name), _drain_mark(observed.now)):
                tell(_key(observed), "pod drain begun", pod=name)
        for name in plan.release:
            released = {"annotations": {names.DELETION_COST: str(RELEASED_COST)}}
            await self._patch_pod(observed, pods.get(name), released)
        for name in plan.undrain:
            if await self._patch_pod(observed, pods.get(name), _no_mark()):
                tell(_key(observed), "pod drain cancelled", pod=name)
        for name in plan.delete:
            pod = pods.get(name)
            if pod is not None:
                await self._kube.delete("Pod", observed.deployment.namespace, name, uid=pod.uid)
                tell(_key(observed), "pod deleted", pod=name)

    async def _patch_pod(self, observed: Observed, pod: PodView | None, metadata: Raw) -> bool:
        """Whether it was done."""
        if pod is None:
            return False
        body = {"metadata": {"uid": pod.uid, **metadata}}  # the uid: never another pod of the same name
        with contextlib.suppress(NotFound, Conflict):  # it is gone; the next pass sees that
            await self._kube.merge_patch("Pod", observed.deployment.namespace, pod.name, body)
            return True
        return False

    async def _set_replicas(self, rolling: Rolling) -> None:
        if rolling.plan is None:
            return
        observed = rolling.observed
        for view in observed.revisions:
            if view.hash in rolling.plan.replicas and view.data:
                count = rolling.plan.replicas[view.hash]
                for manifest in revision_children(observed.deployment, record_of(view), count)[1:]:
                    await self._apply(observed, manifest)

    async def _prune(self, observed: Observed, rolling: Rolling, wanted: Iterable[Mapping[str, Any]]) -> None:
        """Deployments and revisions that are over, and children that the spec no longer asks for."""
        name = observed.deployment.name
        obsolete = set(rolling.plan.obsolete if rolling.plan else ()) | set(rolling.pruned)
        for revision in sorted(obsolete):
            await self._delete(observed, "Deployment", names.revision(name, revision))
        for revision in rolling.pruned:
            await self._delete(observed, "ControllerRevision", names.revision(name, revision))
        keep = {(manifest["kind"], manifest["metadata"]["name"]) for manifest in wanted}
        for kind in PRUNABLE:
            for raw in self._cache.children(kind, _key(observed), observed.deployment.uid):
                if (kind, raw["metadata"]["name"]) not in keep:
                    await self._delete(observed, kind, raw["metadata"]["name"])

    async def _delete(self, observed: Observed, kind: str, name: str) -> None:
        deployment = observed.deployment
        raw = self._seen(observed, kind, name)
        if raw is not None and "deletionTimestamp" not in raw["metadata"]:
            await self._kube.delete(kind, deployment.namespace, name, uid=raw["metadata"]["uid"])
            tell(_key(observed), "child deleted", kind=kind, name=name)

    async def _apply_together(self, observed: Observed, manifests: Sequence[Raw]) -> None:
        """At the same time: none of them has to be there before another. Raises the first of what went wrong, if anything."""
        needed = []
        for manifest in manifests:
            seen = self._seen(observed, manifest["kind"], manifest["metadata"]["name"])
            if seen is None or differs(manifest, seen):
                needed.append(self._apply(observed, manifest))
        for outcome in await asyncio.gather(*needed, return_exceptions=True) if needed else ():
            if outcome is not None:
                raise outcome

    async def _apply(self, observed: Observed, manifest: Raw) -> None:
        key, kind, name = _key(observed), manifest["kind"], manifest["metadata"]["name"]
        seen = self._seen(observed, kind, name)
        try:
            if await apply_if_changed(self._kube, manifest, seen):
                tell_written(key, manifest, seen)
        except NameTaken as error:
            self._refusals[key].append(Finding(Reason.NAME_TAKEN, str(error)))
        except (Forbidden, Invalid) as error:
            found = diagnose_create(error.message)
            message = f"{kind} {name}: {error.message}"
            self._refusals[key].append(found or Finding(Reason.ADMISSION_DENIED, message))


def _key(observed: Observed) -> Key:
    return observed.deployment.namespace, observed.deployment.name


def _drain_mark(now: float) -> Raw:
    return {
        "labels": {names.ROUTED: "false"},
        "annotations": {names.DRAIN_STARTED_AT: format_time(now), names.DELETION_COST: str(MARKED_COST)},
    }


def _no_mark() -> Raw:
    return {
        "labels": {names.ROUTED: "true"},
        "annotations": {names.DRAIN_STARTED_AT: None, names.DELETION_COST: None},
    }
