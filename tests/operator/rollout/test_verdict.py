from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.observed import PodView, RevisionView
from octavo_operator.reasons import Reason
from octavo_operator.rollout.verdict import Blocking, Verdict, VerdictInput, verdict

START = 1000.0
Make = Callable[..., RevisionView]


@pytest.fixture
def ask(revision: Make, pod: Callable[..., PodView]) -> Callable[..., Verdict]:
    def ask(after: float, blocking: Blocking | None, *pods: PodView, **fields: Any) -> Verdict:
        paused, desired, alone = fields.pop("paused", False), fields.pop("desired", 1), fields.pop("alone", False)
        if not fields.pop("held", False):
            pods = pods or (pod(ready=False, created_at=START),)
        target = revision("b", 1, *pods, **({"started_at": START} | fields))
        given = VerdictInput(START + after, target, blocking, 900, paused=paused, desired=desired, alone=alone)
        return verdict(given)

    return ask


def blocked(reason: Reason, stalled: bool = True, restarts: int = 0) -> Blocking:
    return Blocking(reason, "It is so.", START, stalled, restarts)


Ask = Callable[..., Verdict]


def test_a_rollout_that_goes_on_has_not_failed(ask: Ask) -> None:
    assert ask(10, None) == Verdict(False, recheck_seconds=890)


def test_a_state_that_needs_a_person_fails_after_a_moment(ask: Ask) -> None:
    assert ask(10, blocked(Reason.IMAGE_PULL_FAILED)) == Verdict(False, recheck_seconds=20)
    assert ask(30, blocked(Reason.IMAGE_PULL_FAILED)) == Verdict(True, Reason.IMAGE_PULL_FAILED, "It is so.")


@pytest.mark.parametrize("reason", [Reason.CRASH_LOOP, Reason.OUT_OF_MEMORY, Reason.ENGINE_STALLED])
def test_a_crash_must_repeat(ask: Ask, reason: Reason) -> None:
    assert not ask(60, blocked(reason, restarts=2)).failed
    assert ask(60, blocked(reason, restarts=3)).failed


@pytest.mark.parametrize("reason", [Reason.WAITING_FOR_GPU, Reason.WAITING_FOR_QUOTA, Reason.WAITING_FOR_NODE])
def test_waiting_for_room_has_until_the_deadline(ask: Ask, reason: Reason) -> None:
    assert not ask(899, blocked(reason, stalled=False)).failed
    late = ask(900, blocked(reason, stalled=False))
    assert late.reason is Reason.ROLLOUT_BLOCKED_NO_CAPACITY
    assert late.message == "No further pod became ready within 900 seconds: It is so."


@pytest.mark.parametrize("reason", [Reason.WAITING_FOR_GPU, Reason.WAITING_FOR_QUOTA, Reason.WAITING_FOR_NODE])
def test_a_first_start_without_room_fails_by_what_is_short_and_not_by_the_rollout(ask: Ask, reason: Reason) -> None:
    late = ask(900, blocked(reason, stalled=False), alone=True)
    assert (late.failed, late.reason) == (True, reason)


def test_the_deadline_fails_what_is_only_slow(ask: Ask) -> None:
    assert ask(900, None).reason is Reason.PROGRESS_DEADLINE_EXCEEDED
    assert ask(900, blocked(Reason.LOADING, stalled=False)).reason is Reason.PROGRESS_DEADLINE_EXCEEDED
    assert ask(900, blocked(Reason.CRASH_LOOP, restarts=1)).reason is Reason.PROGRESS_DEADLINE_EXCEEDED


def test_each_pod_that_becomes_ready_is_progress(ask: Ask, pod: Callable[..., PodView]) -> None:
    assert not ask(1000, None, pod(ready_at=START + 200)).failed
    assert ask(1100, None, pod(ready_at=START + 200)).failed
    assert ask(1000, None, pod(ready_at=START + 200, ready=False, created_at=START)).failed


def test_a_revision_that_has_served_is_not_judged_again(ask: Ask) -> None:
    assert not ask(5000, blocked(Reason.CRASH_LOOP, restarts=9), succeeded_at=START + 60).failed


def test_a_revision_that_is_the_target_again_is_judged_again(ask: Ask) -> None:
    assert ask(60, blocked(Reason.CRASH_LOOP, restarts=9), succeeded_at=START - 60).failed


def test_while_paused_no_time_passes(ask: Ask) -> None:
    assert ask(5000, None, paused=True) == Verdict(False)


def test_a_revision_without_a_pod_has_not_been_tried(ask: Ask) -> None:
    """Paused a while ago, held by a download, or behind an old pod that still drains."""
    assert not ask(5000, None, held=True).failed
    assert ask(5000, None, held=True, create_error="exceeded quota").failed


def test_at_zero_replicas_nothing_can_fail(ask: Ask) -> None:
    assert not ask(5000, blocked(Reason.IMAGE_PULL_FAILED), desired=0).failed


def test_the_deadline_counts_from_the_pod_that_waits(ask: Ask, pod: Callable[..., PodView]) -> None:
    late = pod(ready=False, created_at=START + 3000)
    assert not ask(3500, None, late).failed
    assert ask(3900, None, late).failed


def test_a_revision_that_is_not_being_rolled_out_is_not_judged(ask: Ask) -> None:
    assert not ask(5000, None, started_at=None).failed
