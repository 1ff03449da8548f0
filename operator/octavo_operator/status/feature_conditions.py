"""Conditions of single features. One that is not in use gives none."""

from collections.abc import Iterable, Iterator

from octavo_operator.explanations import EXPLANATIONS
from octavo_operator.quantity import format_bytes
from octavo_operator.reasons import Reason
from octavo_operator.status.conditions import Condition, ConditionType, with_remedy
from octavo_operator.status.finding import Finding
from octavo_operator.status.severity import worst
from octavo_operator.status.situation import Situation

_ABOUT_MODEL = frozenset(
    {Reason.RESOLVING_MODEL, Reason.MODEL_NOT_FOUND, Reason.REVISION_NOT_FOUND, Reason.MODEL_ACCESS_DENIED}
    | {Reason.MODEL_RATE_LIMITED, Reason.HUB_UNREACHABLE, Reason.DIGEST_MISMATCH, Reason.MODEL_UNSUPPORTED}
    | {Reason.MODEL_CORRUPT}
)
_ABOUT_CACHE = frozenset(
    {Reason.DOWNLOADING, Reason.DOWNLOAD_FAILED, Reason.DISK_FULL, Reason.STORAGE_CLASS_MISSING}
    | {Reason.WAITING_FOR_VOLUME, Reason.VOLUME_MULTI_ATTACH, Reason.REFERENCE_MISSING}
)
_ABOUT_MEMORY = frozenset(
    {Reason.WEIGHTS_TOO_LARGE, Reason.KV_CACHE_TOO_SMALL, Reason.CONTEXT_TOO_LARGE, Reason.PARALLELISM_MISMATCH}
    | {Reason.OUT_OF_MEMORY, Reason.DEVICE_MEMORY_BUSY}
)
_ABOUT_CAPACITY = frozenset(
    {Reason.WAITING_FOR_GPU, Reason.WAITING_FOR_QUOTA, Reason.WAITING_FOR_NODE, Reason.WAITING_FOR_VOLUME}
    | {Reason.ROLLOUT_BLOCKED_NO_CAPACITY, Reason.IMPOSSIBLE_REQUEST, Reason.VOLUME_MULTI_ATTACH}
)


def of(situation: Situation, findings: tuple[Finding, ...]) -> Iterator[Condition]:
    """Those that apply."""
    model = (_model_resolved, _model_cached, _memory_fits)
    for check in (*model, _capacity_available, _scaling_active, _unmet, _upgrade, _suspended):
        condition = check(situation, findings)
        if condition is not None:
            yield condition


def _model_resolved(situation: Situation, findings: tuple[Finding, ...]) -> Condition | None:
    against = _against(findings, _ABOUT_MODEL)
    if against is not None:
        return _no(ConditionType.MODEL_RESOLVED, against)
    if situation.revision(situation.wanted) is None and not situation.model:
        return None  # something else came first
    commit = situation.model.get("resolvedRevision")
    message = f"Revision {commit}." if commit else "The model is not fetched from a hub."
    return Condition(ConditionType.MODEL_RESOLVED, True, Reason.MODEL_RESOLVED, message)


def _model_cached(situation: Situation, findings: tuple[Finding, ...]) -> Condition | None:
    if situation.observed.deployment.spec.cache.mode != "SharedPVC":
        return None
    if situation.cached_on:
        message = f"The weights lie complete on claim {situation.cached_on}."
        return Condition(ConditionType.MODEL_CACHED, True, Reason.MODEL_CACHED, message)
    against = _against(findings, _ABOUT_CACHE)
    if against is not None:
        return _no(ConditionType.MODEL_CACHED, against)
    return Condition(ConditionType.MODEL_CACHED, False, Reason.DOWNLOADING, "The weights are not on the claim yet.")


def _memory_fits(situation: Situation, findings: tuple[Finding, ...]) -> Condition | None:
    against = _against(findings, _ABOUT_MEMORY)
    if against is not None:
        return _no(ConditionType.MEMORY_FITS, against)
    plan = situation.memory_plan
    if not plan:
        return None  # nobody knows the sizes before a pod has run
    parts = [f"{name} {format_bytes(plan[key])}" for key, name in _PLAN_PARTS if isinstance(plan.get(key), int)]
    message = f"{plan.get('source', 'Estimated')}: {', '.join(parts)}."
    return Condition(ConditionType.MEMORY_FITS, True, Reason.MEMORY_FITS, message)


_PLAN_PARTS = (("weights", "weights"), ("kvCache", "KV cache"), ("activations", "activations"))


def _capacity_available(situation: Situation, findings: tuple[Finding, ...]) -> Condition | None:
    against = _against(findings, _ABOUT_CAPACITY)
    if against is not None:
        return _no(ConditionType.CAPACITY_AVAILABLE, against)
    pods = [pod for pod in situation.target_pods() if pod.is_active]
    if not pods or not all(pod.node for pod in pods):
        return None
    return Condition(ConditionType.CAPACITY_AVAILABLE, True, Reason.SCHEDULED, "Every pod has a node.")


def _scaling_active(situation: Situation, _: tuple[Finding, ...]) -> Condition | None:
    scaling = situation.scaling
    if scaling is None:
        return None
    reason = Reason.METRICS_FRESH if scaling.fresh else Reason.METRICS_LOST
    # While metrics come, the message must not carry their figures: each reading would be another status.
    text = f"{scaling.desired} replicas are wanted." if scaling.fresh else scaling.message
    return Condition(ConditionType.SCALING_ACTIVE, scaling.fresh, reason, text or EXPLANATIONS[reason].meaning)


def _unmet(situation: Situation, _: tuple[Finding, ...]) -> Condition | None:
    """No finding: the model serves, only something beside it is missing."""
    if not situation.unmet:
        return None
    return Condition(ConditionType.FEATURE_UNAVAILABLE, True, Reason.FEATURE_UNAVAILABLE, " ".join(situation.unmet))


def _upgrade(situation: Situation, _: tuple[Finding, ...]) -> Condition | None:
    if not situation.upgrade:
        return None
    return Condition(ConditionType.UPGRADE_AVAILABLE, True, Reason.UPGRADE_AVAILABLE, situation.upgrade)


def _suspended(situation: Situation, _: tuple[Finding, ...]) -> Condition | None:
    if not situation.suspended:
        return None
    return Condition(ConditionType.SUSPENDED, True, Reason.SUSPENDED, "spec.suspend is true.")


def _against(findings: Iterable[Finding], reasons: frozenset[Reason]) -> Finding | None:
    return worst(finding for finding in findings if finding.reason in reasons)


def _no(kind: ConditionType, finding: Finding) -> Condition:
    return Condition(kind, False, finding.reason, with_remedy(finding.sentence, finding.remedy))
