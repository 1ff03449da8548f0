"""`roll`: which revision serves next and how it gets there, with what must be remembered of it.

Pure. Joins the choice of the target, the verdict on it, the room for it, and the planner's setpoints. What has to outlive
the operator (started, succeeded, failed) is kept in the ControllerRevisions, never on the LLMDeployment.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from octavo_operator import quantity
from octavo_operator.effective import Effective
from octavo_operator.observed import Observed, RevisionView
from octavo_operator.preparing import Prepared
from octavo_operator.reasons import Reason
from octavo_operator.revision import RevisionRecord, record_of
from octavo_operator.rollout.capacity import Headroom, headroom
from octavo_operator.rollout.drain import DrainSettings, Victim
from octavo_operator.rollout.planner import RolloutInput, RolloutPlan, plan
from octavo_operator.rollout.replica_set import RELEASED_COST
from octavo_operator.rollout.revisions import Choice, OnFailure, choose, prune
from octavo_operator.rollout.strategy import Ongoing, Strategy, StrategyDecision, decide
from octavo_operator.rollout.verdict import Blocking, VerdictInput, verdict
from octavo_operator.status.creation import diagnose_create
from octavo_operator.status.finding import Finding
from octavo_operator.status.redaction import redact
from octavo_operator.status.severity import worst
from octavo_operator.status.signals import diagnose


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolling:
    """What this pass does to the revisions."""

    observed: Observed  # with the wanted revision among the revisions
    target: str = ""  # empty: nothing can serve yet
    stable: str = ""
    strategy: StrategyDecision | None = None
    plan: RolloutPlan | None = None
    records: tuple[RevisionRecord, ...] = ()  # ControllerRevisions to write: new, or with another state
    pruned: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    last_rollback: Mapping[str, Any] | None = None
    paused: bool = False
    recheck_seconds: float | None = None  # until a verdict may be due, or the plan goes on


def roll(observed: Observed, prepared: Prepared, desired: int) -> Rolling:
    """`desired`: replicas wanted, 0 while suspended."""
    seen = {view.hash: record_of(view) for view in observed.revisions if view.data}
    observed = _with_wanted(observed, prepared)
    observed, verdict_in = _judged(observed, prepared, desired)
    eligible = tuple(
        view for view in observed.revisions if view.data and not (prepared.held and view.hash == prepared.wanted)
    )
    effective = prepared.effective
    choice = choose(prepared.wanted, eligible, OnFailure(effective.rollout.on_failure))
    stable = choice.stable or ""
    target = next((view for view in eligible if view.hash == choice.target), None)
    if target is None:
        records = _changed(seen, observed)
        return Rolling(observed=observed, stable=stable, records=records, recheck_seconds=verdict_in)
    room = _room(observed, target)
    pods = tuple(pod for view in observed.revisions for pod in view.pods)
    lost = observed.lost_nodes
    strategy = decide(observed.deployment.spec.rollout, room, desired, pods, lost, _ongoing(observed))
    paused = choice.held or (effective.rollout.paused and target.hash == prepared.wanted)
    given = RolloutInput(
        now=observed.now,
        target=target.hash,
        stable=stable or None,
        desired=desired,
        revisions=observed.revisions,
        strategy=strategy,
        drain=_drain_settings(effective),
        paused=paused,
        requested=frozenset(pod.name for pod in pods if pod.drain_requested),
        lost_nodes=lost,
        released=frozenset(pod.name for pod in pods if pod.deletion_cost <= RELEASED_COST),
    )
    planned = plan(given)
    if planned.done and desired and target.hash == prepared.wanted:
        observed = _succeeded(observed, target)
    pruned = prune(observed.revisions, {target.hash, stable, prepared.wanted}, effective.rollout.revision_history_limit)
    alone = not observed.beside(target.hash)
    return Rolling(
        observed=observed,
        target=target.hash,
        stable=stable,
        strategy=strategy,
        plan=planned,
        records=_changed(seen, observed),
        pruned=pruned,
        findings=_room_findings(room, planned, target, strategy, alone=alone),
        last_rollback=_rollback(observed, choice, prepared.wanted),
        paused=paused,
        recheck_seconds=min((s for s in (planned.recheck_seconds, verdict_in) if s is not None), default=None),
    )


def _with_wanted(observed: Observed, prepared: Prepared) -> Observed:
    """Add a new revision; a known one that becomes the target again starts afresh: its old failure is forgotten."""
    record = prepared.record
    if record is None:
        return observed
    others = tuple(view for view in observed.revisions if view.hash != record.hash)
    known = next((view for view in observed.revisions if view.hash == record.hash), None)
    if known is None or not known.data:
        view = RevisionView(
            hash=record.hash,
            number=record.number,
            data=record.data,
            replicas=known.replicas if known is not None else None,
            pods=known.pods if known is not None else (),
            started_at=observed.now,
        )
    elif (known.started_at or 0.0) < max((view.started_at or 0.0 for view in others), default=0.0):
        view = replace(known, started_at=observed.now, failure=None)
    else:
        view = known
    return replace(observed, revisions=tuple(sorted((*others, view), key=lambda view: view.number)))


def _judged(observed: Observed, prepared: Prepared, desired: int) -> tuple[Observed, float | None]:
    """Give the wanted revision up when it cannot become ready; one that has served in full is not judged again.

    With it: seconds until another verdict may be due.
    """
    view = next((view for view in observed.revisions if view.hash == prepared.wanted), None)
    if view is None or prepared.held or prepared.sizing is None or view.failure is not None:
        return observed, None
    if _has_succeeded(view):
        return observed, None
    outcome = verdict(
        VerdictInput(
            now=observed.now,
            revision=view,
            blocking=_blocking(view, observed.now),
            progress_deadline_seconds=prepared.sizing.progress_deadline_seconds,
            paused=prepared.effective.rollout.paused,
            desired=desired,
            alone=not observed.beside(view.hash),
        )
    )
    if not outcome.failed or outcome.reason is None:
        return observed, outcome.recheck_seconds
    failure = {"reason": outcome.reason.value, "message": redact(outcome.message), "at": observed.now}
    return _replaced(observed, replace(view, failure=failure)), None


def _blocking(view: RevisionView, now: float) -> Blocking | None:
    """The worst that its pods say; those that were replaced already say nothing about the next."""
    pods = [pod for pod in view.pods if pod.is_active]
    found = [(finding, pod.container.restarts) for pod in pods if (finding := diagnose(pod, now)) is not None]
    created = diagnose_create(view.create_error)
    if created is not None:
        found.append((created, 0))
    finding = worst(finding for finding, _ in found)
    if finding is None:
        return None
    restarts = max(count for other, count in found if other == finding)
    since = finding.since if finding.since is not None else view.started_at or now
    return Blocking(finding.reason, finding.sentence, since, finding.blocks, restarts)


def _room(observed: Observed, target: RevisionView) -> Headroom:
    """How many more pods of the target's shape the cluster holds."""
    spec = target.data["template"]["spec"]
    own = [pod for view in observed.revisions for pod in view.pods]
    return headroom(quantity.sum_requests(spec), spec, observed.cluster, limits=quantity.sum_limits(spec), own=own)


def _ongoing(observed: Observed) -> Ongoing | None:
    """A rollout that has begun keeps its strategy, which the status has; where nothing moves it is chosen afresh."""
    known = (observed.deployment.status.get("rollout") or {}).get("strategy")
    if known not in set(Strategy):
        return None
    replicas = tuple(view.replicas for view in observed.revisions if view.replicas is not None)
    return Ongoing(Strategy(known), observed.now, replicas)


def _has_succeeded(view: RevisionView) -> bool:
    """Whether it served in full since it last became the target."""
    return view.succeeded_at is not None and view.succeeded_at >= (view.started_at or 0.0)


def _drain_settings(effective: Effective) -> DrainSettings:
    settings = effective.rollout
    return DrainSettings(settings.unroute_seconds, settings.drain_seconds, Victim(settings.victim))


def _succeeded(observed: Observed, target: RevisionView) -> Observed:
    """Remember the first time that all wanted pods of this try were ready."""
    current = next(view for view in observed.revisions if view.hash == target.hash)
    if _has_succeeded(current):
        return observed
    return _replaced(observed, replace(current, succeeded_at=observed.now, failure=None))


def _replaced(observed: Observed, view: RevisionView) -> Observed:
    return replace(observed, revisions=tuple(view if old.hash == view.hash else old for old in observed.revisions))


def _changed(seen: Mapping[str, RevisionRecord], observed: Observed) -> tuple[RevisionRecord, ...]:
    records = (record_of(view) for view in observed.revisions if view.data)
    return tuple(record for record in records if seen.get(record.hash) != record)


def _room_findings(
    room: Headroom, planned: RolloutPlan, target: RevisionView, strategy: StrategyDecision, *, alone: bool
) -> tuple[Finding, ...]:
    if room.impossible and not any(pod.ready for pod in target.pods):
        return (Finding(Reason.IMPOSSIBLE_REQUEST, room.impossible),)
    if alone:  # no pod could go first: its own pods say what is short
        return ()
    if strategy.is_held and not planned.done:
        return (Finding(Reason.ROLLOUT_BLOCKED_NO_CAPACITY, strategy.reason),)
    if planned.blocked and room.instead:  # else no setting of the rollout helps: the pod's own state says what is short
        return (Finding(Reason.ROLLOUT_BLOCKED_NO_CAPACITY, planned.text),)
    return ()


def _rollback(observed: Observed, choice: Choice, wanted: str) -> Mapping[str, Any] | None:
    """For status: from where to where, why and when."""
    failed = next((view for view in observed.revisions if view.hash == wanted and view.failure), None)
    if not choice.rolled_back or failed is None or failed.failure is None:
        return None
    return {"from": wanted, "to": choice.target, "reason": failed.failure["reason"], "at": failed.failure["at"]}
