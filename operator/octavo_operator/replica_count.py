"""`ReplicaCounts`: how many replicas are wanted now. Git's or the scaler's number, or in mode Auto the policy's.

Keeps the policy's recent past of each resource in memory; after a restart it goes on from `status.scaling`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from octavo_operator.autoscaling import decisions, policy
from octavo_operator.effective import Effective
from octavo_operator.names import Key
from octavo_operator.observed import Observed
from octavo_operator.status.situation import ScalingFacts


@dataclass(frozen=True, slots=True)
class Wanted:
    """The number, and in mode Auto where it comes from."""

    replicas: int
    facts: ScalingFacts | None = None
    recheck_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class _Past:
    state: policy.AutoState
    changes: tuple[decisions.Change, ...]


class ReplicaCounts:
    """One past per resource in mode Auto."""

    def __init__(self, sample: Callable[[str], Any]) -> None:
        """`sample`: pod uid -> its last TimedSample, or None."""
        self._sample = sample
        self._pasts: dict[Key, _Past] = {}

    def wanted(self, observed: Observed, effective: Effective, startup_seconds: float) -> Wanted:
        """Replicas of this pass; 0 while suspended."""
        deployment = observed.deployment
        key = (deployment.namespace, deployment.name)
        if deployment.spec.scaling.auto is None or effective.auto is None:
            self._pasts.pop(key, None)
            return Wanted(effective.fixed_replicas or 0)
        past = self._pasts.get(key) or _restored(observed, effective)
        if effective.suspended:  # the number is kept for the day it goes on
            self._pasts[key] = past
            kept = ScalingFacts(desired=past.state.desired, decisions=tuple(decisions.to_status(past.changes)))
            return Wanted(0, kept)
        pods = [pod for view in observed.revisions for pod in view.pods]
        decision = policy.decide(
            policy.AutoInput(
                now=observed.now,
                settings=policy.AutoSettings.of(deployment.spec.scaling.auto, effective.engine.max_num_seqs),
                state=past.state,
                ready=policy.pod_samples(pods, self._sample),
                starting=policy.count_starting(pods, observed.now, startup_seconds),
            )
        )
        changes = past.changes
        if decision.desired != past.state.desired:
            change = decisions.Change(observed.now, past.state.desired, decision.desired, decision.reason)
            changes = decisions.record(changes, change)
        self._pasts[key] = _Past(decision.state, changes)
        facts = ScalingFacts(
            desired=decision.desired,
            decisions=tuple(decisions.to_status(changes)),
            fresh=not decision.metrics_lost,
            message=decision.reason,
            metrics_at=None if decision.metrics_age is None else observed.now - decision.metrics_age,
        )
        return Wanted(decision.desired, facts, decision.recheck_seconds)

    def forget(self, key: Key) -> None:
        """The resource is gone."""
        self._pasts.pop(key, None)


def _restored(observed: Observed, effective: Effective) -> _Past:
    """From the status, or from the spec's own number when the mode has just become Auto."""
    scaling: Mapping[str, Any] = observed.deployment.status.get("scaling") or {}
    least = effective.auto.min_replicas if effective.auto else 1
    running = sum(view.replicas or 0 for view in observed.revisions)
    state = policy.restore(scaling, max(least, running), observed.now)
    return _Past(state, decisions.from_status(scaling.get("decisions") or []))
