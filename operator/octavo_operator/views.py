"""Raw objects -> the frozen views of `observed.py`, one function per view. Pure, and never surprised by a missing field."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from octavo_operator import names
from octavo_operator.conditions import condition
from octavo_operator.observed import (
    ClaimView,
    ContainerView,
    EventView,
    JobView,
    NodeView,
    PodView,
    QuotaView,
    RevisionView,
    RuntimeView,
)
from octavo_operator.quantity import parse_resources
from octavo_operator.slimming import requests_of
from octavo_operator.timestamp import parse_time

DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"

_Raw = Mapping[str, Any]


def view_pod(raw: _Raw, runtime: RuntimeView | None = None, events: Sequence[EventView] = ()) -> PodView:
    """A pod of ours."""
    metadata, spec, status = raw["metadata"], raw.get("spec") or {}, raw.get("status") or {}
    labels = metadata.get("labels") or {}
    scheduled, ready = condition(status, "PodScheduled"), condition(status, "Ready")
    refused = scheduled.get("status") == "False"
    return PodView(
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        revision=labels.get(names.REVISION, ""),
        created_at=parse_time(metadata.get("creationTimestamp")) or 0.0,
        phase=status.get("phase", "Pending"),
        ready=ready.get("status") == "True",
        routed=labels.get(names.ROUTED) == "true",
        drain_started_at=parse_time((metadata.get("annotations") or {}).get(names.DRAIN_STARTED_AT)),
        terminating="deletionTimestamp" in metadata,
        deletion_cost=_int((metadata.get("annotations") or {}).get(names.DELETION_COST)),
        drain_requested=names.DRAIN_REQUESTED in (metadata.get("annotations") or {}),
        node=spec.get("nodeName", ""),
        ip=status.get("podIP", ""),
        scheduled_reason=scheduled.get("reason", "") if refused else "",
        scheduled_message=scheduled.get("message", "") if refused else "",
        scheduled_at=_since(scheduled),
        ready_at=_since(ready),
        status_reason=status.get("reason", ""),
        status_message=status.get("message", ""),
        container=view_container(status),
        requests=requests_of(raw),
        runtime=runtime,
        events=tuple(events),
    )


def view_container(status: _Raw) -> ContainerView:
    """Of the serving or downloading container; of an init container (the user's patch) while that one stands in the way."""
    found = _container(status)
    state = found.get("state") or {}
    waiting, running = state.get("waiting") or {}, state.get("running") or {}
    ended = state.get("terminated") or (found.get("lastState") or {}).get("terminated") or {}
    return ContainerView(
        waiting_reason=waiting.get("reason", ""),
        waiting_message=waiting.get("message", ""),
        running_since=parse_time(running.get("startedAt")),
        terminated_reason=ended.get("reason", ""),
        terminated_message=ended.get("message", ""),
        exit_code=ended.get("exitCode"),
        finished_at=parse_time(ended.get("finishedAt")),
        restarts=found.get("restartCount", 0),
    )


def view_revision(
    revision_hash: str, record: _Raw | None, deployment: _Raw | None, pods: Sequence[PodView] = ()
) -> RevisionView:
    """A revision from its ControllerRevision and its Deployment, either of which may be missing."""
    annotations = (record["metadata"].get("annotations") if record else None) or {}
    failed = condition((deployment or {}).get("status") or {}, "ReplicaFailure")
    return RevisionView(
        hash=revision_hash,
        number=record.get("revision", 0) if record else 0,
        data=(record.get("data") if record else None) or {},
        replicas=(deployment.get("spec") or {}).get("replicas", 1) if deployment else None,
        pods=tuple(sorted(pods, key=lambda pod: (pod.created_at, pod.name))),
        started_at=parse_time(annotations.get(names.STARTED_AT)),
        succeeded_at=parse_time(annotations.get(names.SUCCEEDED_AT)),
        failure=_json(annotations.get(names.FAILURE)),
        create_error=failed.get("message", "") if failed.get("status") == "True" else "",
    )


def view_job(raw: _Raw, pods: Sequence[PodView] = ()) -> JobView:
    """A downloader."""
    status = raw.get("status") or {}
    return JobView(
        name=raw["metadata"]["name"],
        active=status.get("active", 0),
        succeeded=status.get("succeeded", 0),
        failed=status.get("failed", 0),
        complete=condition(status, "Complete").get("status") == "True",
        gave_up=condition(status, "Failed").get("status") == "True",
        pods=tuple(pods),
    )


def view_node(raw: _Raw, requested: Mapping[str, int]) -> NodeView:
    """A node with what its pods ask for together."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    ready = condition(status, "Ready").get("status") == "True"
    return NodeView(
        name=raw["metadata"]["name"],
        schedulable=ready and not spec.get("unschedulable", False),
        labels=raw["metadata"].get("labels") or {},
        taints=tuple(spec.get("taints") or ()),
        allocatable=parse_resources(status.get("allocatable")),
        requested={name: amount for name, amount in requested.items() if amount},
        ready=ready,
    )


def has_scope(quota: _Raw) -> bool:
    """Whether a ResourceQuota counts some pods only. Which, is not looked into: such a quota is left to the API server."""
    spec = quota.get("spec") or {}
    return bool(spec.get("scopes") or spec.get("scopeSelector"))


def view_quota(raw: _Raw) -> QuotaView:
    """A ResourceQuota."""
    status = raw.get("status") or {}
    hard = status.get("hard") or (raw.get("spec") or {}).get("hard")
    return QuotaView(name=raw["metadata"]["name"], hard=parse_resources(hard), used=parse_resources(status.get("used")))


def view_claim(raw: _Raw, events: Sequence[EventView] = ()) -> ClaimView:
    """A PersistentVolumeClaim."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    return ClaimView(
        name=raw["metadata"]["name"],
        phase=status.get("phase", "Pending"),
        access_modes=tuple(spec.get("accessModes") or ()),
        storage_class=spec.get("storageClassName") or "",
        events=tuple(events),
    )


def view_event(raw: _Raw) -> EventView:
    """A Kubernetes Event, at the last time it happened."""
    about = raw.get("involvedObject") or {}
    times = (
        (raw.get("series") or {}).get("lastObservedTime"),
        raw.get("lastTimestamp"),
        raw.get("eventTime"),
        raw["metadata"].get("creationTimestamp"),
    )
    return EventView(
        reason=raw.get("reason", ""),
        message=raw.get("message", ""),
        at=next((at for at in map(parse_time, times) if at is not None), 0.0),
        kind=about.get("kind", ""),
        name=about.get("name", ""),
    )


def view_storage_classes(raws: Iterable[_Raw]) -> tuple[frozenset[str], str]:
    """Their names, and that of the default one (empty when there is none)."""
    found = {raw["metadata"]["name"]: raw["metadata"].get("annotations") or {} for raw in raws}
    default = next((name for name in sorted(found) if found[name].get(DEFAULT_CLASS) == "true"), "")
    return frozenset(found), default


def _since(found: _Raw) -> float | None:
    return parse_time(found.get("lastTransitionTime")) if found.get("status") == "True" else None


def _container(status: _Raw) -> _Raw:
    statuses = status.get("containerStatuses") or ()
    ours = (names.CONTAINER, names.DOWNLOADER_CONTAINER)
    own: _Raw = next((item for item in statuses if item.get("name") in ours), next(iter(statuses), {}))
    waiting = ((own.get("state") or {}).get("waiting") or {}).get("reason", "")
    if waiting == "PodInitializing":
        return next(filter(_stands_in_the_way, status.get("initContainerStatuses") or ()), own)
    return own


def _stands_in_the_way(init: _Raw) -> bool:
    state = init.get("state") or {}
    failed = bool((state.get("terminated") or {}).get("exitCode", 0))
    return failed or bool((state.get("waiting") or {}).get("reason", "PodInitializing") != "PodInitializing")


def _json(text: str | None) -> Mapping[str, Any] | None:
    """None for what is absent or edited beyond reading."""
    try:
        value = json.loads(text) if text else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _int(text: object) -> int:
    """0 for what is no number."""
    try:
        return int(str(text))
    except ValueError:
        return 0
