"""`report`: the whole `.status` of a situation and its judgement. Equal input gives an equal status.

Nothing in it moves with the clock alone: a status that changed by itself would wake its own reconcile for ever. The
fields are those of `crds/llmdeployments.yaml`; another one would be pruned by the server and written again each time.
"""

from collections.abc import Mapping
from typing import Any

from octavo_operator import names
from octavo_operator.observed import RevisionView
from octavo_operator.reasons import Reason
from octavo_operator.status import measurements
from octavo_operator.status.conditions import Condition, ConditionType, clipped, set_conditions, with_remedy
from octavo_operator.status.finding import Finding
from octavo_operator.status.judge import Judgement
from octavo_operator.status.phases import Phase
from octavo_operator.status.redaction import redact_all
from octavo_operator.status.severity import worst
from octavo_operator.status.situation import Situation
from octavo_operator.timestamp import format_time


def report(situation: Situation, judgement: Judgement) -> dict[str, Any]:
    """Complete: what is not in it is to be removed from the resource."""
    generation = situation.observed.deployment.generation
    before = situation.before
    status = {
        "observedGeneration": generation,
        "phase": judgement.phase.value,
        "reason": judgement.reason.value,
        **_counts(situation, judgement),
        "selector": situation.selector,
        "url": situation.url,
        "model": _model(situation),
        "effective": measurements.effective(situation),
        "memoryPlan": situation.memory_plan,
        "capacity": measurements.capacity(situation),
        "startupTimings": measurements.timings(situation),
        "revisions": _revisions(situation),
        "rollout": _rollout(situation),
        "scaling": _scaling(situation),
        "lastFailure": _last_failure(judgement, before, situation.now),
        "conditions": set_conditions(before.get("conditions", ()), judgement.conditions, generation, situation.now),
    }
    return _clean(status, before)


def spec_invalid(status: Mapping[str, Any], generation: int, message: str, now: float) -> dict[str, Any]:
    """The status when the spec cannot even be read: what runs goes on, and the rest of the status stays as it was."""
    finding = Finding(Reason.SPEC_INVALID, message)
    text = with_remedy(message, finding.remedy)
    new = {
        ConditionType.READY: Condition(ConditionType.READY, False, finding.reason, text),
        ConditionType.RECONCILING: Condition(ConditionType.RECONCILING, False, finding.reason, text),
        ConditionType.STALLED: Condition(ConditionType.STALLED, True, finding.reason, text),
    }
    before = status.get("conditions", ())
    rest = [condition for condition in before if condition.get("type") not in {kind.value for kind in new}]
    return _clean(
        {
            **status,
            "observedGeneration": generation,
            "phase": (Phase.DEGRADED if status.get("readyReplicas") else Phase.FAILED).value,
            "reason": finding.reason.value,
            "conditions": set_conditions(before, new.values(), generation, now) + rest,
        },
        status,
    )


def _counts(situation: Situation, judgement: Judgement) -> dict[str, Any]:
    counts = judgement.counts
    return {
        "ready": f"{counts.ready}/{situation.desired}",
        "replicas": counts.replicas,
        "readyReplicas": counts.ready,
        "updatedReplicas": counts.updated,
        "updatedReadyReplicas": counts.updated_ready,
        "drainingReplicas": counts.draining,
    }


def _model(situation: Situation) -> dict[str, Any]:
    cached = [situation.cached_on] if situation.cached_on else []
    return {**situation.model, "cachedOn": cached, "download": measurements.download(situation)}


def _revisions(situation: Situation) -> dict[str, Any]:
    newest_first = sorted(situation.observed.revisions, key=lambda view: -view.number)
    return {
        "stable": _revision(situation.revision(situation.stable)),
        "target": _revision(situation.revision(situation.target)),
        "history": [_revision(view) for view in newest_first],
    }


def _revision(view: RevisionView | None) -> dict[str, Any]:
    if view is None:
        return {}
    containers = view.data.get("template", {}).get("spec", {}).get("containers", [])
    image = next((each.get("image", "") for each in containers if each.get("name") == names.CONTAINER), "")
    commit = view.data.get("model", {}).get("resolvedRevision") or ""
    entry: dict[str, Any] = _without_empty({"hash": view.hash, "modelRevision": commit, "image": image})
    return entry


def _rollout(situation: Situation) -> dict[str, Any]:
    facts, before = situation.rollout, situation.before.get("rollout", {})
    started = format_time(facts.started_at) if facts.started_at is not None else ""
    told = {"strategy": facts.strategy, "reason": facts.reason}
    if facts.done and before.get("strategy") and before.get("startedAt") == started:
        # How the last rollout went; what would be decided now changes with every other pod of the cluster.
        told = {name: before.get(name, "") for name in told}
    last = facts.last_rollback if facts.last_rollback is not None else before.get("lastRollback")
    return {**told, "startedAt": started, "lastRollback": _dated(last or {})}


def _dated(rollback: Mapping[str, Any]) -> dict[str, Any]:
    """With its time as text."""
    at = rollback.get("at")
    return {**rollback, "at": format_time(at)} if isinstance(at, (int, float)) else dict(rollback)


def _scaling(situation: Situation) -> dict[str, Any]:
    facts = situation.scaling
    if facts is None:
        return {}
    scaling: dict[str, Any] = {"desired": facts.desired, "decisions": [dict(each) for each in facts.decisions]}
    if not facts.fresh and facts.metrics_at is not None:
        scaling["metricsAge"] = int(situation.now - facts.metrics_at) // 60 * 60  # seconds, in whole minutes
    return scaling


def _last_failure(judgement: Judgement, before: Mapping[str, Any], now: float) -> dict[str, Any]:
    """The present failure; without one, that of the past stays to be read."""
    last: dict[str, Any] = dict(before.get("lastFailure") or {})
    finding = worst(found for found in judgement.findings if found.crashed or found.blocks)
    if finding is None:
        return last
    told: dict[str, Any] = _without_empty(
        {
            "pod": finding.pod,
            "container": finding.container,
            "reason": finding.reason.value,
            "exitCode": finding.exit_code,
            "message": clipped(finding.message),
            "remedy": finding.remedy,
        }
    )
    if finding.since is not None:
        return {**told, "at": format_time(finding.since)}
    same = redact_all(told) == {key: value for key, value in last.items() if key != "at"}
    return {**told, "at": last["at"] if same and "at" in last else format_time(now)}


def _clean(status: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """No secrets, no empty fields. What equals the status as it was written is clean already."""
    full: dict[str, Any] = _without_empty(status)
    cleaned: dict[str, Any] = full if full == before else redact_all(full)
    return cleaned


def _without_empty(value: Any) -> Any:
    """Without empty strings, lists and objects, at any depth: 0 and False stay."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        inner = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item is not None and item not in ("", [], {})}
    if isinstance(value, (list, tuple)):
        return [_without_empty(item) for item in value]
    return value
