"""Whole situations, as a platform meets them, and what status must say of them."""

import json
from typing import Any

import pytest

from octavo_operator.observed import ClusterView, JobView, NodeView
from octavo_operator.reasons import Reason
from octavo_operator.status.conditions import ConditionType
from octavo_operator.status.finding import Finding
from octavo_operator.status.judge import Judgement, judge
from octavo_operator.status.phases import Phase
from octavo_operator.status.situation import RolloutFacts, Situation


def said(situation: Situation) -> tuple[Judgement, dict[str, bool]]:
    judgement = judge(situation)
    return judgement, {condition.type.value: condition.status for condition in judgement.conditions}


def message(judgement: Judgement, kind: ConditionType = ConditionType.READY) -> str:
    return next(condition.message for condition in judgement.conditions if condition.type is kind)


def test_the_wanted_replicas_serve_the_current_spec(build: Any) -> None:
    judgement, conditions = said(build.situation())
    assert conditions["Ready"]
    assert conditions["Available"]
    assert not conditions["Reconciling"]
    assert not conditions["Stalled"]
    assert not conditions["Degraded"]
    assert (judgement.phase, judgement.reason) == (Phase.READY, Reason.SERVING)
    assert message(judgement) == f"1 of 1 replicas serve revision {build.new}."


def test_loading_pods_are_progress(build: Any) -> None:
    runtime = build.runtime("Loading", progress={"done_bytes": 1, "total_bytes": 2})
    judgement, conditions = said(build.situation(build.revision(build.new, build.pod(ready=False, runtime=runtime))))
    assert not conditions["Ready"]
    assert conditions["Reconciling"]
    assert not conditions["Stalled"]
    assert not conditions["Available"]
    assert (judgement.phase, judgement.reason) == (Phase.LOADING, Reason.LOADING)
    assert message(judgement) == "Pod smollm-1: Loading the weights: 50 % of 2 bytes."


def test_ready_is_never_true_while_pods_crash(build: Any) -> None:
    looping = said(build.situation(build.revision(build.new, build.pod("a"), build.crashed(name="b")), desired=2))[1]
    container = build.container(running_since=build.now - 20, exit_code=1, finished_at=build.now - 21, restarts=1)
    back_again, conditions = said(build.situation(build.revision(build.new, build.pod(container=container))))
    assert not looping["Ready"]
    assert not conditions["Ready"]
    assert conditions["Available"]
    assert conditions["Degraded"]
    assert not conditions["Stalled"]
    assert back_again.recheck_after == pytest.approx(39.0)


def test_a_crash_of_a_minute_ago_is_forgiven(build: Any) -> None:
    container = build.container(running_since=build.now - 70, exit_code=1, finished_at=build.now - 71, restarts=1)
    judgement, conditions = said(build.situation(build.revision(build.new, build.pod(container=container))))
    assert conditions["Ready"]
    assert judgement.recheck_after is None


def test_old_pods_that_still_serve_do_not_make_it_ready(build: Any) -> None:
    old, new = build.pod("old", build.old), build.pod("new")
    situation = build.situation(
        build.revision(build.old, old, number=1),
        build.revision(build.new, new),
        rollout=RolloutFacts(done=False, text="One old pod is left."),
    )
    judgement, conditions = said(situation)
    assert not conditions["Ready"]
    assert conditions["Reconciling"]
    assert not conditions["Degraded"]
    assert (judgement.phase, judgement.reason) == (Phase.ROLLING, Reason.ROLLING_OUT)
    assert message(judgement) == "One old pod is left."


def test_a_bad_upgrade_leaves_the_stable_revision_available(build: Any) -> None:
    refused = Finding(Reason.REVISION_NOT_FOUND, "org/smollm has no revision v9.")
    serving = build.revision(build.old, build.pod(revision=build.old), number=1)
    judgement, conditions = said(build.situation(serving, target=build.old, stable=build.old, findings=(refused,)))
    assert not conditions["Ready"]
    assert conditions["Stalled"]
    assert not conditions["Reconciling"]
    assert conditions["Available"]
    assert conditions["Degraded"]
    assert (judgement.phase, judgement.reason) == (Phase.DEGRADED, Reason.REVISION_NOT_FOUND)
    assert message(judgement).startswith("org/smollm has no revision v9. Set model.revision")


def test_what_never_served_and_cannot_has_failed(build: Any) -> None:
    words = json.dumps({"cause": "KVCacheTooSmall", "message": "2048 tokens are the most that fit."})
    pods = [build.crashed(words, name=f"smollm-{number}") for number in range(3)]
    judgement, conditions = said(build.situation(build.revision(build.new, *pods), desired=3))
    assert conditions["Stalled"]
    assert not conditions["Available"]
    assert not conditions["MemoryFits"]
    assert (judgement.phase, judgement.reason) == (Phase.FAILED, Reason.KV_CACHE_TOO_SMALL)
    assert message(judgement).startswith("Pod smollm-0: 2048 tokens are the most that fit.")
    assert "(2 pods more like it.)" in message(judgement)


def test_a_rollback_is_over_when_the_old_revision_serves_but_stays_stalled(build: Any) -> None:
    failure = {"reason": "CrashLoop", "message": "Its pods crash.", "at": "2027-01-15T07:00:00Z"}
    serving = build.revision(build.old, build.pod(revision=build.old), number=1)
    situation = build.situation(serving, build.revision(build.new, failure=failure), target=build.old, stable=build.old)
    judgement, conditions = said(situation)
    assert conditions["Stalled"]
    assert not conditions["Ready"]
    assert judgement.reason is Reason.CRASH_LOOP


def test_waiting_for_a_gpu_is_degraded_only_when_fewer_serve_than_wanted(build: Any) -> None:
    pending = build.starting("b", node="", scheduled_message="0/1 nodes are available: 1 Insufficient nvidia.com/gpu.")
    fewer = said(build.situation(build.revision(build.new, build.pod("a"), pending), desired=2))
    old = build.revision(build.old, build.pod("old", build.old), number=1)
    surging = said(build.situation(old, build.revision(build.new, pending), rollout=RolloutFacts(done=False)))
    assert fewer[1]["Degraded"]
    assert not surging[1]["Degraded"]
    assert surging[0].phase is Phase.ROLLING


@pytest.mark.parametrize("stable", ["", "bbbbbbbbbb"])
def test_room_is_missed_once_all_have_served_and_a_lost_node_always(build: Any, stable: str) -> None:
    pending = build.starting("b", node="", scheduled_message="0/1 nodes are available: 1 Insufficient cpu.")
    cluster = ClusterView(nodes=(NodeView("octavo-1", True, {}, (), {}, {}),))
    for other, degraded in ((pending, bool(stable)), (build.pod("b", ready=False, node="gone"), True)):
        revision = build.revision(build.new, build.pod("a"), other)
        judgement, conditions = said(build.situation(revision, desired=2, stable=stable, seen={"cluster": cluster}))
        assert conditions["Degraded"] is degraded
        assert judgement.phase is (Phase.DEGRADED if degraded else Phase.SCHEDULING)


@pytest.mark.parametrize("wanted", ["cccccccccc", "bbbbbbbbbb"])
def test_what_befalls_an_older_target_is_its_phase_while_another_is_looked_up(build: Any, wanted: str) -> None:
    looked_up = Finding(Reason.RESOLVING_MODEL, "It is being looked up.")
    lost = build.revision(build.old, build.pod("a", build.old, ready=False), number=1)
    cluster = ClusterView(nodes=(NodeView("octavo-2", True, {}, (), {}, {}),))
    given = {"wanted": wanted, "target": build.old, "stable": build.old, "seen": {"cluster": cluster}}
    judgement = judge(build.situation(lost, build.revision(build.new), findings=(looked_up,), **given))
    assert (judgement.phase, judgement.reason) == (Phase.SCHEDULING, Reason.NODE_LOST)


def test_a_download_beside_an_older_target_is_downloading_whatever_its_pod_waits_for(build: Any) -> None:
    serving = build.revision(build.old, build.pod("a", build.old), number=1)
    for waiting in (build.starting("dl", ""), build.starting("dl", "", node="", scheduled_message="no nodes")):
        job = JobView("smollm-dl-1", 1, 0, 0, complete=False, gave_up=False, pods=(waiting,))
        given = {"target": build.old, "stable": build.old, "download": job}
        assert judge(build.situation(serving, build.revision(build.new), **given)).phase is Phase.DOWNLOADING


@pytest.mark.parametrize("desired", [0, 1, 2, 4, 5])
def test_more_or_fewer_than_are_wanted_serve_and_scale(build: Any, desired: int) -> None:
    pods = [build.pod(name) for name in "abc"]
    judgement, conditions = said(build.situation(build.revision(build.new, *pods), desired=desired))
    assert (judgement.phase, judgement.reason) == (Phase.SCALING, Reason.SCALING)
    assert (conditions["Ready"], conditions["Reconciling"], conditions["Degraded"]) == (False, True, False)
    broken = build.revision(build.new, *pods, build.crashed(name="d"))
    assert judge(build.situation(broken, desired=desired)).phase is Phase.DEGRADED


@pytest.mark.parametrize(
    ("others", "changes", "expected"),
    [
        ((), {}, Phase.SCALING),
        (("starting",), {}, Phase.SCALING),
        ((), {"stable": ""}, Phase.SCHEDULING),  # a first start: it has not served in full yet
        ((), {"stable": "aaaaaaaaaa"}, Phase.SCHEDULING),  # neither has this revision
        ((), {"desired": 1}, Phase.READY),
        (("crashed",), {}, Phase.DEGRADED),
        (("old",), {}, Phase.ROLLING),
    ],
)
def test_scaling_is_of_a_revision_that_has_served_in_full_alone_and_well(
    build: Any, others: tuple[str, ...], changes: dict[str, Any], expected: Phase
) -> None:
    made = {"starting": build.starting("b"), "crashed": build.crashed(name="b")}
    new = build.revision(build.new, build.pod("a"), *(made[other] for other in others if other in made))
    old = [build.revision(build.old, build.pod("old", build.old), number=1)] if "old" in others else []
    assert judge(build.situation(*old, new, **{"desired": 2, **changes})).phase is expected


@pytest.mark.parametrize(
    ("phase", "target", "serves", "expected"),
    [
        ("Rolling", "bbbbbbbbbb", True, Phase.ROLLING),
        ("Rolling", "bbbbbbbbbb", False, Phase.LOADING),  # nothing serves: the step is what matters
        ("Rolling", "cccccccccc", True, Phase.LOADING),  # of another rollout
        ("Degraded", "bbbbbbbbbb", True, Phase.ROLLING),  # it waited for the last old pod's room
        ("Degraded", "bbbbbbbbbb", False, Phase.LOADING),
        ("Degraded", "cccccccccc", True, Phase.LOADING),
        ("Loading", "bbbbbbbbbb", True, Phase.LOADING),
        ("Rolling", None, True, Phase.LOADING),
    ],
)
def test_a_rollout_is_rolling_to_its_end_also_when_the_last_old_pod_is_gone(
    build: Any, phase: str, target: str | None, serves: bool, expected: Phase
) -> None:
    before = {"phase": phase, "revisions": {"target": {"hash": target}} if target else {}}
    loading = build.pod("b", ready=False, runtime=build.runtime("Loading"))
    new = build.revision(build.new, build.pod("a", ready=serves, runtime=build.runtime("Loading")), loading)
    given = {"desired": 2, "stable": build.old, "deployment": build.deployment(before)}
    assert judge(build.situation(new, **given)).phase is expected
    assert judge(build.situation(build.revision(build.new, build.pod("a"), build.pod("b")), **given)).ready


def test_what_is_marked_to_go_is_no_longer_counted_so_the_rest_is_ready_while_its_streams_finish(build: Any) -> None:
    leaving = build.pod("b", routed=False, drain_started_at=build.now - 5)
    judgement, conditions = said(build.situation(build.revision(build.new, build.pod("a"), leaving)))
    assert conditions["Ready"]
    assert conditions["Reconciling"]
    assert judgement.phase is Phase.READY


def test_scaling_up_is_progress(build: Any) -> None:
    judgement, conditions = said(build.situation(desired=3))
    assert not conditions["Ready"]
    assert conditions["Available"]
    assert not conditions["Degraded"]
    assert (judgement.phase, judgement.reason) == (Phase.SCALING, Reason.SCALING)


def test_suspended_is_neither_stalled_nor_ready(build: Any) -> None:
    deployment = build.deployment(suspend=True)
    judgement, conditions = said(build.situation(build.revision(build.new), deployment=deployment, desired=0))
    assert conditions["Suspended"]
    assert not conditions["Ready"]
    assert not conditions["Stalled"]
    assert not conditions["Reconciling"]
    assert (judgement.phase, judgement.reason) == (Phase.SUSPENDED, Reason.SUSPENDED)


def test_suspending_is_in_progress_until_the_pods_are_gone(build: Any) -> None:
    deployment = build.deployment(suspend=True)
    assert said(build.situation(deployment=deployment, desired=0))[1]["Reconciling"]


def test_zero_wanted_replicas_are_ready_but_not_available(build: Any) -> None:
    judgement, conditions = said(build.situation(build.revision(build.new), desired=0))
    assert conditions["Ready"]
    assert not conditions["Available"]
    assert judgement.reason is Reason.SCALED_TO_ZERO


def test_a_stalled_resource_is_not_also_reconciling(build: Any) -> None:
    pods = (build.crashed(name="a"), build.pod("b", ready=False, runtime=build.runtime("Loading")))
    conditions = said(build.situation(build.revision(build.new, *pods), desired=2))[1]
    assert (conditions["Stalled"], conditions["Reconciling"]) == (True, False)


def test_judging_twice_gives_the_same(build: Any) -> None:
    assert judge(build.situation()) == judge(build.situation())
