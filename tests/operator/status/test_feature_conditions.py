"""Conditions of features: there when the feature is in use, absent when it is not."""

from collections.abc import Mapping
from typing import Any

from octavo_operator.reasons import Reason
from octavo_operator.status import feature_conditions
from octavo_operator.status.conditions import Condition, ConditionType
from octavo_operator.status.finding import Finding
from octavo_operator.status.judge import judge
from octavo_operator.status.situation import ScalingFacts, Situation


def conditions(situation: Situation, *findings: Finding) -> Mapping[ConditionType, Condition]:
    return {condition.type: condition for condition in feature_conditions.of(situation, findings)}


def test_features_that_are_not_in_use_have_no_condition(build: Any) -> None:
    assert set(conditions(build.situation())) == {
        ConditionType.MODEL_RESOLVED,
        ConditionType.MEMORY_FITS,
        ConditionType.CAPACITY_AVAILABLE,
    }


def test_a_resolved_model_names_its_commit(build: Any) -> None:
    condition = conditions(build.situation())[ConditionType.MODEL_RESOLVED]
    assert condition.status
    assert build.commit in condition.message


def test_a_hub_that_refuses_is_told_with_the_way_out(build: Any) -> None:
    refused = Finding(Reason.MODEL_ACCESS_DENIED, "The hub says 403.")
    condition = conditions(build.situation(), refused)[ConditionType.MODEL_RESOLVED]
    assert not condition.status
    assert condition.reason is Reason.MODEL_ACCESS_DENIED
    assert "model.credentials" in condition.message


def test_a_model_nobody_looked_at_yet_has_no_condition(build: Any) -> None:
    situation = build.situation(build.revision(build.old), wanted=build.new, model={})
    assert ConditionType.MODEL_RESOLVED not in conditions(situation)


def test_a_shared_cache_is_waited_for_and_then_named(build: Any) -> None:
    deployment = build.deployment(cache={"mode": "SharedPVC", "sharedPVC": {"claimName": "weights"}})
    loading = Finding(Reason.DOWNLOADING, "Downloading the weights: 10 % of 2.0 GiB.")
    waiting = conditions(build.situation(deployment=deployment), loading)[ConditionType.MODEL_CACHED]
    quiet = conditions(build.situation(deployment=deployment))[ConditionType.MODEL_CACHED]
    there = conditions(build.situation(deployment=deployment, cached_on="weights"))[ConditionType.MODEL_CACHED]
    assert (waiting.status, waiting.message) == (False, "Downloading the weights: 10 % of 2.0 GiB.")
    assert (quiet.status, quiet.reason) == (False, Reason.DOWNLOADING)
    assert (there.status, there.message) == (True, "The weights lie complete on claim weights.")


def test_memory_is_judged_by_the_plan_or_by_what_happened(build: Any) -> None:
    fits = conditions(build.situation())[ConditionType.MEMORY_FITS]
    killed = conditions(build.situation(), Finding(Reason.OUT_OF_MEMORY, "Killed."))[ConditionType.MEMORY_FITS]
    assert (fits.status, fits.message) == (True, "Estimated: weights 257.5 MiB, KV cache 3.7 GiB.")
    assert not killed.status
    assert ConditionType.MEMORY_FITS not in conditions(build.situation(memory_plan={}))


def test_capacity_is_there_when_every_pod_has_a_node(build: Any) -> None:
    unplaced = build.situation(build.revision(build.new, build.pod("a"), build.starting("b", node="")))
    waiting = Finding(Reason.WAITING_FOR_GPU, "2 Insufficient nvidia.com/gpu.")
    assert conditions(build.situation())[ConditionType.CAPACITY_AVAILABLE].status
    assert ConditionType.CAPACITY_AVAILABLE not in conditions(unplaced)
    assert not conditions(unplaced, waiting)[ConditionType.CAPACITY_AVAILABLE].status


def test_scaling_is_active_while_metrics_are_fresh(build: Any) -> None:
    fresh = conditions(build.situation(scaling=ScalingFacts(desired=2, message="9 waiting.")))[
        ConditionType.SCALING_ACTIVE
    ]
    lost = ScalingFacts(desired=2, fresh=False, message="No metrics for 40 s; holding 2.")
    blind = conditions(build.situation(scaling=lost))[ConditionType.SCALING_ACTIVE]
    assert (fresh.status, fresh.reason, fresh.message) == (True, Reason.METRICS_FRESH, "2 replicas are wanted.")
    assert (blind.status, blind.reason, blind.message) == (False, Reason.METRICS_LOST, lost.message)


def test_what_the_cluster_lacks_is_told_and_the_resource_is_ready_all_the_same(build: Any) -> None:
    situation = build.situation(unmet=("spec.x is Enabled, but this cluster has no kind X; write Auto.",))
    condition = conditions(situation)[ConditionType.FEATURE_UNAVAILABLE]
    assert (condition.status, condition.reason) == (True, Reason.FEATURE_UNAVAILABLE)
    assert condition.message == "spec.x is Enabled, but this cluster has no kind X; write Auto."
    judgement = judge(situation)
    assert condition in judgement.conditions
    assert (judgement.ready, judgement.reason) == (True, Reason.SERVING)


def test_a_newer_render_and_suspension_are_only_told_when_true(build: Any) -> None:
    upgrade = conditions(build.situation(upgrade="Operator 0.2 would change the probes."))[
        ConditionType.UPGRADE_AVAILABLE
    ]
    suspended = conditions(build.situation(deployment=build.deployment(suspend=True)))[ConditionType.SUSPENDED]
    assert (upgrade.status, upgrade.message) == (True, "Operator 0.2 would change the probes.")
    assert suspended.status
