"""`Situation`: everything that one status is made of: what was seen, what was decided, what reconcile itself met."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from octavo_operator.observed import JobView, Observed, PodView, RevisionView
from octavo_operator.status.finding import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutFacts:
    """What the planner decided."""

    strategy: str = ""
    reason: str = ""  # why this strategy
    text: str = ""  # what happens now
    done: bool = True
    paused: bool = False
    started_at: float | None = None
    last_rollback: Mapping[str, Any] | None = None  # {"from", "to", "reason", "at"}; None keeps what the status has


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingFacts:
    """What the autoscaler decided. Only in mode Auto."""

    desired: int
    decisions: tuple[Mapping[str, Any], ...] = ()
    fresh: bool = True
    message: str = ""  # told while metrics are lost
    metrics_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The one input of `judge` and `report`."""

    observed: Observed
    desired: int  # replicas wanted now, 0 when suspended
    wanted: str = ""  # revision of the spec; empty when it cannot be told
    target: str = ""  # revision that is rolled to: an older one after a refusal or a rollback
    stable: str = ""  # newest revision that once served in full
    findings: tuple[Finding, ...] = ()
    model: Mapping[str, Any] = field(default_factory=dict)
    memory_plan: Mapping[str, Any] = field(default_factory=dict)
    effective: Mapping[str, Any] = field(default_factory=dict)  # of the wanted revision, as its record has it
    url: str = ""
    selector: str = ""
    cached_on: str = ""  # the claim on which the weights lie complete
    download: JobView | None = None  # of the wanted revision
    rollout: RolloutFacts = RolloutFacts()
    scaling: ScalingFacts | None = None
    unmet: tuple[str, ...] = ()  # what the spec asks for and is not there, a sentence each
    upgrade: str = ""

    @property
    def now(self) -> float:
        return self.observed.now

    @property
    def suspended(self) -> bool:
        return bool(self.observed.deployment.spec.suspend)

    @property
    def before(self) -> Mapping[str, Any]:
        """The status as last written."""
        return self.observed.deployment.status

    @property
    def is_resolved(self) -> bool:
        """Whether the spec's revision is made, so that its model is known."""
        view = self.revision(self.wanted)
        return view is not None and bool(view.data)

    def revision(self, revision_hash: str) -> RevisionView | None:
        return next((view for view in self.observed.revisions if view.hash == revision_hash), None)

    def pods(self) -> tuple[PodView, ...]:
        """Serving pods of every revision."""
        return tuple(pod for view in self.observed.revisions for pod in view.pods)

    def target_pods(self) -> tuple[PodView, ...]:
        view = self.revision(self.target)
        return view.pods if view is not None else ()


def serves(pod: PodView) -> bool:
    """Whether requests reach it and are answered."""
    return pod.is_active and pod.ready and pod.routed and pod.drain_started_at is None
