"""`gather`: every finding of a situation, from what reconcile met down to each pod."""

from collections.abc import Iterator

from octavo_operator.api import LLMDeployment
from octavo_operator.observed import PodView, RevisionView
from octavo_operator.reasons import Reason
from octavo_operator.status.counts import Counts
from octavo_operator.status.creation import diagnose_create
from octavo_operator.status.finding import Finding
from octavo_operator.status.signals import diagnose
from octavo_operator.status.situation import Situation
from octavo_operator.status.storage import diagnose_claim, diagnose_job
from octavo_operator.timestamp import parse_time


def gather(situation: Situation, counts: Counts) -> tuple[Finding, ...]:
    """Once the wanted replicas serve, only what reconcile met and what happens to these pods still matters."""
    if situation.suspended:
        return tuple(finding for finding in situation.findings if finding.reason is Reason.SPEC_INVALID)
    found = [*situation.findings, *_pods(situation)]
    if not is_satisfied(situation, counts):
        found += [
            *_failure(situation),
            *_missing(situation),
            *_refusals(situation),
            *_storage(situation),
            *_progress(situation, counts),
        ]
    elif counts.draining:
        found.append(_draining(counts))
    return tuple(found)


def is_satisfied(situation: Situation, counts: Counts) -> bool:
    """The wanted number of pods of the spec's own revision serve, and no other revision has any."""
    return is_rolled(situation, counts) and counts.updated_ready == situation.desired


def is_rolled(situation: Situation, counts: Counts) -> bool:
    """The spec's own revision is the target, and no other has pods."""
    return bool(situation.wanted) and situation.wanted == situation.target and counts.old == 0


def most_replicas(deployment: LLMDeployment) -> int:
    """The most that the spec may come to want."""
    auto = deployment.spec.scaling.auto
    return (
        auto.max_replicas if auto is not None else (1 if deployment.spec.replicas is None else deployment.spec.replicas)
    )


def _failure(situation: Situation) -> Iterator[Finding]:
    """The spec's own revision was given up: rolled back, or held where it is."""
    view = situation.revision(situation.wanted)
    if view is None or view.failure is None:
        return
    reason, message = _known(str(view.failure.get("reason", ""))), str(view.failure.get("message", ""))
    told = f"Revision {view.hash} was given up. {message}".strip()
    # Even a cause that heals by itself is final here: nobody tries this revision again.
    yield Finding(reason, told, stalled=True, since=_at(view.failure.get("at")))


def _at(moment: object) -> float | None:
    """Seconds as this pass wrote them, or the text of the annotation."""
    return moment if isinstance(moment, float) else parse_time(str(moment))


def _known(reason: str) -> Reason:
    """Annotations may be edited by anybody, or written by a newer operator."""
    try:
        return Reason(reason)
    except ValueError:
        return Reason.PROGRESS_DEADLINE_EXCEEDED


def _pods(situation: Situation) -> Iterator[Finding]:
    """Of the target only: older pods are on their way out. An ended pod is history once a later one serves."""
    pods = situation.target_pods()
    last_ready = max((pod.created_at for pod in pods if pod.ready), default=0.0)
    lost = situation.observed.lost_nodes
    for pod in pods:
        if pod.is_active or pod.created_at > last_ready:
            finding = _node_lost(pod, lost) or diagnose(pod, situation.now)
            if finding is not None:
                yield finding


def _node_lost(pod: PodView, lost_nodes: frozenset[str]) -> Finding | None:
    """Nobody reports from a dead node: the pod itself looks as it did, only no longer ready."""
    if pod.ready or not pod.is_active or pod.node not in lost_nodes:
        return None
    return Finding(Reason.NODE_LOST, f"Its node {pod.node} is gone or does not report.", pod=pod.name)


def _missing(situation: Situation) -> Iterator[Finding]:
    missing = situation.observed.missing_references
    if missing:
        verb = "does" if len(missing) == 1 else "do"
        yield Finding(Reason.REFERENCE_MISSING, f"{', '.join(missing)} {verb} not exist.")


def _refusals(situation: Situation) -> Iterator[Finding]:
    view = situation.revision(situation.target)
    finding = diagnose_create(view.create_error) if view is not None and _wants_pods(view) else None
    if finding is not None:
        yield finding


def _wants_pods(view: RevisionView) -> bool:
    """A refusal of long ago says nothing once the pods are there."""
    return sum(pod.is_active for pod in view.pods) < (view.replicas or 0)


def _storage(situation: Situation) -> Iterator[Finding]:
    observed = situation.observed
    claim = diagnose_claim(
        observed.claim,
        observed.cluster,
        observed.deployment,
        max(situation.desired, most_replicas(observed.deployment)),
    )
    job = diagnose_job(situation.download, situation.now) if situation.download is not None else None
    yield from (finding for finding in (claim, job) if finding is not None)


def _progress(situation: Situation, counts: Counts) -> Iterator[Finding]:
    """What goes on when nothing is wrong."""
    rollout = situation.rollout
    if not situation.target:
        if not situation.findings:
            yield _before_pods(situation)
    elif rollout.paused and (counts.old or counts.updated < situation.desired):  # else the pause holds nothing
        yield Finding(Reason.PAUSED, rollout.text or "The rollout is paused.")
    elif counts.old:  # a start takes over from nobody: the first, or one after spec.suspend
        text = rollout.text or f"{counts.updated_ready} of {situation.desired} replicas have the new revision."
        yield Finding(Reason.ROLLING_OUT, text, since=rollout.started_at)
    elif counts.updated_ready > situation.desired:
        yield Finding(Reason.SCALING, f"{counts.updated_ready} replicas serve, {situation.desired} are wanted.")
    elif situation.stable != situation.target and counts.updated < situation.desired:
        yield Finding(Reason.STARTING, f"{counts.updated} of {situation.desired} pods are made.")
    else:
        yield Finding(Reason.SCALING, f"{counts.updated_ready} of {situation.desired} replicas are ready.")


def _before_pods(situation: Situation) -> Finding:
    if situation.is_resolved:
        return Finding(Reason.DOWNLOADING, "The weights are not on the claim yet.")
    return Finding(Reason.RESOLVING_MODEL, "The model is being resolved.")


def _draining(counts: Counts) -> Finding:
    return Finding(Reason.DRAINING, f"{counts.draining} pods more than wanted finish their streams.")
