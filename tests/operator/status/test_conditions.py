"""metav1.Condition as Kubernetes means it."""

from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.reasons import Reason
from octavo_operator.status.conditions import Condition, ConditionType, clipped, set_conditions, with_remedy

READY = Condition(ConditionType.READY, True, Reason.SERVING, "2 of 2 replicas serve.")
BROKEN = Condition(ConditionType.READY, False, Reason.CRASH_LOOP, "It ended.")
STALLED = Condition(ConditionType.STALLED, False, Reason.SERVING, "")


def test_a_new_condition_begins_now() -> None:
    [condition] = set_conditions([], [READY], 3, 1_800_000_000.9)
    assert condition == {
        "type": "Ready",
        "status": "True",
        "reason": "Serving",
        "message": "2 of 2 replicas serve.",
        "observedGeneration": 3,
        "lastTransitionTime": "2027-01-15T08:00:00Z",
    }


def test_transition_time_moves_only_with_the_status() -> None:
    first = set_conditions([], [READY], 1, 1000.0)
    same = set_conditions(
        first, [Condition(ConditionType.READY, True, Reason.SCALED_TO_ZERO, "None wanted.")], 2, 2000.0
    )
    changed = set_conditions(same, [BROKEN], 2, 3000.0)
    assert same[0]["lastTransitionTime"] == first[0]["lastTransitionTime"]
    assert same[0]["reason"] == "ScaledToZero"
    assert changed[0]["lastTransitionTime"] != same[0]["lastTransitionTime"]


def test_every_condition_carries_the_generation_it_was_judged_for() -> None:
    before = set_conditions([], [READY, STALLED], 1, 1000.0)
    assert {each["observedGeneration"] for each in set_conditions(before, [READY, STALLED], 9, 2000.0)} == {9}


def test_a_condition_that_no_longer_applies_goes() -> None:
    before = set_conditions([], [READY, Condition(ConditionType.SUSPENDED, True, Reason.SUSPENDED, "")], 1, 1000.0)
    assert [each["type"] for each in set_conditions(before, [READY], 1, 1000.0)] == ["Ready"]


def test_order_is_fixed() -> None:
    assert [each["type"] for each in set_conditions([], [STALLED, READY], 1, 0.0)] == ["Ready", "Stalled"]


def test_setting_the_same_again_changes_nothing() -> None:
    before = set_conditions([], [READY, STALLED], 1, 1000.0)
    assert set_conditions(before, [READY, STALLED], 1, 5000.0) == before


def test_damaged_old_conditions_do_no_harm() -> None:
    assert set_conditions([{"type": "Ready"}, {}], [READY], 1, 1000.0)[0]["status"] == "True"


@given(st.text(max_size=3000))
def test_messages_are_one_paragraph_of_a_readable_length(text: str) -> None:
    told = clipped(text)
    assert "\n" not in told
    assert len(told) <= 1000


@given(st.text(max_size=3000), st.text(st.characters(categories=("L", "Z")), max_size=300))
def test_a_long_message_loses_none_of_its_remedy(text: str, remedy: str) -> None:
    told = with_remedy(text, remedy)
    assert len(told) <= 1000
    assert clipped(told) == told
    assert told.endswith(" ".join(remedy.split()))
