"""`Phase`: one word for people. Conditions are the contract; this is a summary of them for a column."""

from enum import StrEnum

from octavo_operator.reasons import Reason


class Phase(StrEnum):
    """In the order of a life."""

    PENDING = "Pending"
    RESOLVING = "Resolving"
    DOWNLOADING = "Downloading"
    SCHEDULING = "Scheduling"  # looking for a node, making the container there, until its server begins to load
    LOADING = "Loading"
    READY = "Ready"
    ROLLING = "Rolling"  # serves; another revision takes over
    SCALING = "Scaling"  # serves; replicas of the same revision come or go
    SUSPENDED = "Suspended"
    DEGRADED = "Degraded"  # serves, but something is wrong
    FAILED = "Failed"  # does not serve and will not by itself


_OF_REASON = {
    Reason.RESOLVING_MODEL: Phase.RESOLVING,
    Reason.RECONCILE_FAILED: Phase.RESOLVING,  # the look-up met an error, and is made again
    Reason.MODEL_RATE_LIMITED: Phase.RESOLVING,
    Reason.HUB_UNREACHABLE: Phase.RESOLVING,
    Reason.DOWNLOADING: Phase.DOWNLOADING,
    Reason.WAITING_FOR_GPU: Phase.SCHEDULING,
    Reason.WAITING_FOR_QUOTA: Phase.SCHEDULING,
    Reason.WAITING_FOR_NODE: Phase.SCHEDULING,
    Reason.WAITING_FOR_VOLUME: Phase.SCHEDULING,
    Reason.ADMISSION_DENIED: Phase.SCHEDULING,  # this and the next: where they pass by themselves
    Reason.IMAGE_PULL_FAILED: Phase.SCHEDULING,
    Reason.IMAGE_PULLING: Phase.SCHEDULING,
    Reason.STARTING: Phase.SCHEDULING,
    Reason.SCALING: Phase.SCHEDULING,
    Reason.ROLLING_OUT: Phase.SCHEDULING,  # this and the next: where nothing serves, pods wait until they may be made
    Reason.PAUSED: Phase.SCHEDULING,
    Reason.EVICTED: Phase.SCHEDULING,
    Reason.NODE_LOST: Phase.SCHEDULING,
    Reason.LOADING: Phase.LOADING,
    Reason.WARMING_UP: Phase.LOADING,
    Reason.ENGINE_FAILED: Phase.LOADING,
    Reason.ENGINE_STALLED: Phase.LOADING,
    Reason.OUT_OF_MEMORY: Phase.LOADING,
}


def phase_of(reason: Reason, *, available: bool, degraded: bool, rolling: bool, scaling: bool, blocked: bool) -> Phase:
    """Of a resource that is not suspended and not ready. What serves is not told by the steps of a start."""
    if blocked or degraded:
        return Phase.DEGRADED if available else Phase.FAILED
    if rolling and available:
        return Phase.ROLLING
    if scaling and available:
        return Phase.SCALING
    return _OF_REASON.get(reason, Phase.PENDING)
