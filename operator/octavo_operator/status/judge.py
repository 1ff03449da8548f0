"""`judge`: a situation -> conditions, phase and counts. One check per condition, each on the same findings.

kstatus reads them as: Stalled -> failed, Reconciling -> in progress, Ready -> current. So a stalled resource is never
also reconciling, and Ready is never true while a pod crashes.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from octavo_operator.explanations import EXPLANATIONS
from octavo_operator.observed import PodView
from octavo_operator.reasons import Reason
from octavo_operator.status import feature_conditions
from octavo_operator.status.conditions import Condition, ConditionType, with_remedy
from octavo_operator.status.counts import Counts, count
from octavo_operator.status.crash import RECENT_SECONDS, is_recent
from octavo_operator.status.finding import Finding
from octavo_operator.status.gathering import gather, is_rolled, is_satisfied
from octavo_operator.status.phases import Phase, phase_of
from octavo_operator.status.severity import worst
from octavo_operator.status.situation import Situation

_NO_ROOM = frozenset(
    {Reason.WAITING_FOR_GPU, Reason.WAITING_FOR_NODE, Reason.WAITING_FOR_QUOTA, Reason.WAITING_FOR_VOLUME}
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a situation amounts to."""

    conditions: tuple[Condition, ...]
    phase: Phase
    counts: Counts
    finding: Finding | None  # the worst; None when all is well
    findings: tuple[Finding, ...]
    reason: Reason  # for the column
    ready: bool
    stalled: bool
    recheck_after: float | None  # seconds until a crash is no longer recent


def judge(situation: Situation) -> Judgement:
    """Judge from nothing but the situation: the same one gives the same judgement."""
    counts = count(situation)
    findings = gather(situation, counts)
    finding = worst(findings)
    stalled = finding is not None and finding.blocks
    crashing = any(found.crashed for found in findings)
    ready = not situation.suspended and not stalled and not crashing and is_satisfied(situation, counts)
    degraded = counts.ready > 0 and not ready and (stalled or crashing or _lacks_room(situation, counts, findings))
    reason = _reason(situation, finding, ready=ready)
    text = _text(situation, counts, findings, finding)
    main = (
        Condition(ConditionType.READY, ready, reason, _ready_text(situation, counts) if ready else text),
        _reconciling(situation, counts, finding, reason, text),
        Condition(ConditionType.STALLED, stalled, reason, text),
        _available(counts, reason, text),
        Condition(ConditionType.DEGRADED, degraded, reason, text),
    )
    return Judgement(
        conditions=(*main, *feature_conditions.of(situation, findings)),
        phase=_phase(situation, counts, finding, ready=ready, stalled=stalled, degraded=degraded),
        counts=counts,
        finding=finding,
        findings=findings,
        reason=reason,
        ready=ready,
        stalled=stalled,
        recheck_after=_recheck_after(situation.target_pods(), situation.now),
    )


def _reason(situation: Situation, finding: Finding | None, *, ready: bool) -> Reason:
    if situation.suspended and (finding is None or not finding.blocks):
        return Reason.SUSPENDED
    if ready or finding is None:
        return Reason.SERVING if situation.desired else Reason.SCALED_TO_ZERO
    return finding.reason


def _reconciling(situation: Situation, counts: Counts, finding: Finding | None, reason: Reason, text: str) -> Condition:
    """A ready resource may still finish something: then the finding, not the reason of the column, says what."""
    if situation.suspended:
        return Condition(ConditionType.RECONCILING, counts.replicas > 0 and finding is None, reason, text)
    goes_on = finding is not None and not finding.blocks
    return Condition(ConditionType.RECONCILING, goes_on, finding.reason if finding is not None else reason, text)


def _lacks_room(situation: Situation, counts: Counts, findings: Iterable[Finding]) -> bool:
    """Fewer than wanted serve, and not only because pods are starting. What has never served in full yet lost nothing by
    waiting for room: that is a step of its start, until the progress deadline makes it Stalled.
    """
    lacking = _NO_ROOM | {Reason.NODE_LOST} if situation.stable else {Reason.NODE_LOST}
    return counts.ready < situation.desired and any(found.reason in lacking for found in findings)


def _available(counts: Counts, reason: Reason, text: str) -> Condition:
    if counts.ready == 0:
        return Condition(ConditionType.AVAILABLE, False, reason, text)
    message = f"{_pods(counts.ready)} answer{'s' if counts.ready == 1 else ''} requests."
    return Condition(ConditionType.AVAILABLE, True, Reason.SERVING, message)


def _ready_text(situation: Situation, counts: Counts) -> str:
    if not situation.desired:
        return EXPLANATIONS[Reason.SCALED_TO_ZERO].meaning
    return f"{counts.updated_ready} of {situation.desired} replicas serve revision {situation.target}."


def _text(situation: Situation, counts: Counts, findings: Iterable[Finding], finding: Finding | None) -> str:
    """The worst finding, how many other pods share it, and what to do."""
    if finding is None or (situation.suspended and not finding.blocks):
        return EXPLANATIONS[Reason.SUSPENDED].meaning if situation.suspended else _ready_text(situation, counts)
    others = sum(found.reason is finding.reason and bool(found.pod) for found in findings) - 1
    shared = f" ({_pods(others)} more like it.)" if finding.pod and others > 0 else ""
    return with_remedy(f"{finding.sentence}{shared}", finding.remedy)


def _pods(number: int) -> str:
    return f"{number} pod" if number == 1 else f"{number} pods"


def _phase(
    situation: Situation, counts: Counts, finding: Finding | None, *, ready: bool, stalled: bool, degraded: bool
) -> Phase:
    if situation.suspended and not stalled:
        return Phase.SUSPENDED
    if ready or finding is None:
        return Phase.READY
    return phase_of(
        _step(situation, finding),
        available=counts.ready > 0,
        degraded=degraded,
        rolling=counts.old > 0 or _was_rolling(situation),
        scaling=_is_scaling(situation, counts),
        blocked=stalled,
    )


def _was_rolling(situation: Situation) -> bool:
    """Whether the status says so of this target. Once the last old pod is gone the pods alone no longer tell; and if the
    status is lost, so is only a word. A rollout may be Degraded for a while, as when the room of the last old pod is awaited.
    """
    before = situation.before
    target = ((before.get("revisions") or {}).get("target") or {}).get("hash")
    if not target or target != situation.target:
        return False
    took_over = bool(situation.stable) and situation.stable != target
    return before.get("phase") == Phase.ROLLING or (took_over and before.get("phase") == Phase.DEGRADED)


def _is_scaling(situation: Situation, counts: Counts) -> bool:
    """The revision has served in full, or does so with more pods than are wanted: only their number changes."""
    in_full = situation.stable == situation.target or counts.updated_ready >= situation.desired
    return in_full and is_rolled(situation, counts) and counts.updated_ready != situation.desired


def _step(situation: Situation, finding: Finding) -> Reason:
    """What the phase goes by. While no revision may have pods there is a look-up or a download, whatever the
    downloader's own pod waits for: its phases would come again when the revision's pods go through them.
    """
    job = situation.download
    if situation.target and not (job and finding.pod in {pod.name for pod in job.pods}):
        return finding.reason
    return Reason.DOWNLOADING if situation.is_resolved else Reason.RESOLVING_MODEL


def _recheck_after(pods: Iterable[PodView], now: float) -> float | None:
    """When a pod that is ready again after a crash may count as ready."""
    recent = [pod.container.finished_at for pod in pods if pod.is_active and pod.ready and is_recent(pod, now)]
    ages = [RECENT_SECONDS - (now - ended) for ended in recent if ended is not None]
    return max(ages, default=None)
