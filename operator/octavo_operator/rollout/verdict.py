"""`verdict`: has the rollout of the target revision failed, or is it only slow.

A state that needs a person fails it after a moment; a crash must repeat first; what heals by itself, waiting for a GPU
above all, has until the progress deadline. A revision that has served is never judged again: it is Degraded, not rolled back.
"""

from dataclasses import dataclass

from octavo_operator.observed import RevisionView
from octavo_operator.reasons import Reason

GRACE_SECONDS = 30.0  # a registry or an API server may stumble
CRASHES = 3  # of one container

_MAY_PASS = frozenset({Reason.CRASH_LOOP, Reason.OUT_OF_MEMORY, Reason.ENGINE_STALLED, Reason.DEVICE_MEMORY_BUSY})
_NO_ROOM = frozenset({Reason.WAITING_FOR_GPU, Reason.WAITING_FOR_QUOTA, Reason.WAITING_FOR_NODE})


@dataclass(frozen=True, slots=True)
class Blocking:
    """The worst that was found on the target revision's pods."""

    reason: Reason
    message: str
    since: float
    stalled: bool  # will not heal by itself
    restarts: int = 0  # of the pod's container


@dataclass(frozen=True, slots=True)
class VerdictInput:
    """What one verdict is about."""

    now: float
    revision: RevisionView
    blocking: Blocking | None
    progress_deadline_seconds: float
    paused: bool = False
    desired: int = 1  # replicas wanted now
    alone: bool = False  # no other revision has pods, as in a first start


@dataclass(frozen=True, slots=True)
class Verdict:
    """Go on, or give up and why."""

    failed: bool
    reason: Reason | None = None
    message: str = ""
    recheck_seconds: float | None = None  # when the clock alone may change it


def verdict(given: VerdictInput) -> Verdict:
    """Of the revision that is being rolled out."""
    revision, blocking, now = given.revision, given.blocking, given.now
    started = revision.started_at
    if given.paused or started is None or _has_served(revision, started) or not _is_tried(given):
        return Verdict(False)
    left = []
    if blocking is not None and blocking.stalled:
        wait = blocking.since + GRACE_SECONDS - now
        if wait <= 0 and _is_certain(blocking):
            return Verdict(True, blocking.reason, blocking.message)
        if wait > 0:
            left.append(wait)
    wait = last_progress(revision, started) + given.progress_deadline_seconds - now
    if wait <= 0:
        return _too_late(given)
    return Verdict(False, recheck_seconds=min([*left, wait]))


def last_progress(revision: RevisionView, started: float) -> float:
    """When the rollout last got on: it began, one more of its pods was made, or became ready.

    A pod that is replaced again and again makes no progress: only the oldest of each that is not ready counts.
    """
    active = [pod for pod in revision.pods if pod.is_active]
    ready = [pod.ready_at for pod in active if pod.ready and pod.ready_at is not None]
    made = [pod.created_at for pod in active if not pod.ready]
    return max([started, *ready, *([min(made)] if made else [])])


def _is_tried(given: VerdictInput) -> bool:
    """Whether it had a chance: held back, suspended or waiting for old pods to drain, it cannot fail."""
    return given.desired > 0 and bool(given.revision.pods or given.revision.create_error)


def _has_served(revision: RevisionView, started: float) -> bool:
    return revision.succeeded_at is not None and revision.succeeded_at >= started


def _is_certain(blocking: Blocking) -> bool:
    return blocking.reason not in _MAY_PASS or blocking.restarts >= CRASHES


def _too_late(given: VerdictInput) -> Verdict:
    """Names what it waited for."""
    blocking = given.blocking
    seconds = f"{given.progress_deadline_seconds:.0f} seconds"
    if blocking is None:
        return Verdict(True, Reason.PROGRESS_DEADLINE_EXCEEDED, f"No further pod became ready within {seconds}.")
    message = f"No further pod became ready within {seconds}: {blocking.message}"
    if blocking.reason not in _NO_ROOM:
        return Verdict(True, Reason.PROGRESS_DEADLINE_EXCEEDED, message)
    # Where no old pod could make room, no setting of the rollout helps: what is short is the reason, and has the remedy.
    return Verdict(True, blocking.reason if given.alone else Reason.ROLLOUT_BLOCKED_NO_CAPACITY, message)
