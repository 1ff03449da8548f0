from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.autoscaling.auto_settings import AutoSettings, OnMetricsLost, StepSettings
from octavo_operator.autoscaling.metrics_text import Sample
from octavo_operator.autoscaling.policy import AutoInput, AutoState, Decision, decide
from octavo_operator.autoscaling.samples import PodSample, TimedSample

NOW = 1000.0
FREE = StepSettings(0, max_pods=100)
SETTINGS = AutoSettings(max_replicas=10, up=FREE, down=StepSettings(300, max_pods=100))
Loads = Callable[..., tuple[PodSample, ...]]


def ask(
    state: AutoState,
    ready: tuple[PodSample, ...],
    settings: AutoSettings = SETTINGS,
    starting: int = 0,
    now: float = NOW,
) -> Decision:
    return decide(AutoInput(now, settings, state, ready, starting))


def settled(desired: int, since: float = NOW) -> AutoState:
    return AutoState.start(desired, since)


def test_waiting_requests_scale_up_at_once(loads: Loads) -> None:
    decision = ask(settled(1), loads((12, 0.1)))
    assert decision.desired == 3
    assert decision.reason == "12 waiting requests (target 5 per replica): 3 wanted"
    assert decision.metrics_age == 0


def test_a_full_cache_scales_up(loads: Loads) -> None:
    assert ask(settled(1), loads((0, 0.95))).desired == 2


def test_the_number_stays_within_its_bounds(loads: Loads) -> None:
    assert ask(settled(1), loads((999, 1.0))).desired == 10
    low = replace(SETTINGS, min_replicas=2, down=FREE)
    assert ask(settled(2), loads((0, 0.0), (0, 0.0)), low).desired == 2


def test_new_bounds_take_effect_at_once_even_while_pods_start(loads: Loads) -> None:
    assert ask(settled(5), loads((0, 0.1)), replace(SETTINGS, max_replicas=3), starting=4).desired == 3
    assert ask(settled(1), (), replace(SETTINGS, min_replicas=2), starting=1).desired == 2


def test_the_step_per_period_is_kept(loads: Loads) -> None:
    slow = replace(SETTINGS, up=StepSettings(0, max_pods=1, period_seconds=60))
    first = ask(settled(1), loads((20, 0.1)), slow)
    assert (first.desired, first.recheck_seconds) == (2, 60)
    second = ask(first.state, loads((20, 0.1), at=NOW + 59), slow, starting=1, now=NOW + 59)
    assert (second.desired, second.recheck_seconds) == (2, 1)
    third = ask(second.state, loads((20, 0.1), at=NOW + 60), slow, starting=1, now=NOW + 60)
    assert third.desired == 3


def test_while_pods_start_a_growing_backlog_asks_for_no_more_of_them(loads: Loads) -> None:
    first = ask(settled(1), loads((9, 0.1)))
    assert first.desired == 2
    unseen = ask(first.state, loads((30, 1.0), at=NOW + 2), now=NOW + 2)
    assert unseen.desired == 2
    starting = ask(unseen.state, loads((99, 1.0), at=NOW + 40), starting=1, now=NOW + 40)
    assert starting.desired == 2
    both = ask(starting.state, loads((20, 1.0), (20, 1.0), at=NOW + 50), now=NOW + 50)
    assert both.desired == 8


def test_while_pods_start_nothing_shrinks(loads: Loads) -> None:
    quick = replace(SETTINGS, down=FREE)
    assert ask(settled(3), loads((0, 0.0), (0, 0.0)), quick, starting=1).desired == 3
    assert ask(settled(3), loads((0, 0.0), (0, 0.0), (0, 0.0)), quick).desired == 1


def test_a_pod_that_never_comes_does_not_hold_the_number_for_ever(loads: Loads) -> None:
    quick = replace(SETTINGS, down=FREE)
    assert ask(settled(3), loads((0, 0.0), (0, 0.0)), quick, starting=0).desired == 1


def test_shrinking_takes_the_most_that_was_wanted_in_the_window(loads: Loads) -> None:
    busy = ask(settled(3), loads((0, 0.8), (0, 0.8), (0, 0.8)))
    idle = loads((0, 0.1), (0, 0.1), (0, 0.1), at=NOW + 100)
    early = ask(busy.state, idle, now=NOW + 100)
    assert (early.desired, early.recheck_seconds) == (3, 300)
    late = ask(early.state, loads((0, 0.1), (0, 0.1), (0, 0.1), at=NOW + 401), now=NOW + 401)
    assert late.desired == 1


def test_growing_takes_the_least_that_was_wanted_in_its_window(loads: Loads) -> None:
    patient = replace(SETTINGS, up=StepSettings(30, max_pods=100))
    first = ask(settled(1), loads((20, 0.1)), patient)
    assert (first.desired, first.recheck_seconds) == (1, 30)
    again = ask(first.state, loads((20, 0.1), at=NOW + 31), patient, now=NOW + 31)
    assert again.desired == 4


def test_lost_metrics_hold_the_number_and_the_window_starts_anew(loads: Loads) -> None:
    lost = ask(settled(3, since=NOW - 1000), loads(None, None, None))
    assert (lost.desired, lost.metrics_lost, lost.reason) == (3, True, "metrics lost: holding")
    back = ask(lost.state, loads((0, 0.0), (0, 0.0), (0, 0.0), at=NOW + 10), now=NOW + 10)
    assert (back.desired, back.metrics_lost) == (3, False)


def test_lost_metrics_scale_to_the_maximum_if_asked_by_the_usual_steps(loads: Loads) -> None:
    settings = replace(SETTINGS, on_metrics_lost=OnMetricsLost.SCALE_TO_MAX, up=StepSettings(0, max_pods=2))
    lost = ask(settled(3), loads(None, None, None), settings)
    assert (lost.desired, lost.metrics_lost) == (5, True)
    assert lost.recheck_seconds == 60


def test_before_any_pod_serves_the_number_stays() -> None:
    decision = ask(settled(2), (), starting=2)
    assert (decision.desired, decision.metrics_lost) == (2, False)


def test_one_silent_pod_of_three_moves_nothing_by_itself(loads: Loads) -> None:
    quick = replace(SETTINGS, down=FREE)
    assert ask(settled(3), loads((0, 0.7), (0, 0.7), None), quick).desired == 3


samples = st.none() | st.tuples(st.integers(0, 40), st.floats(0, 1))
moments = st.tuples(st.lists(samples, max_size=6), st.integers(0, 3), st.integers(1, 200))


@pytest.mark.parametrize("step", [1, 3])
@given(script=st.lists(moments, max_size=12))
def test_the_bounds_and_steps_hold_whatever_comes(
    step: int, script: list[tuple[list[tuple[int, float] | None], int, int]]
) -> None:
    settings = AutoSettings(max_replicas=6, up=StepSettings(0, step, 60), down=StepSettings(120, step, 60))
    state, now, moves = settled(2), NOW, []
    for values, starting, seconds in script:
        now += seconds
        ready = tuple(
            PodSample(str(number), value and TimedSample(now, Sample(value[0], 0, value[1])))
            for number, value in enumerate(values)
        )
        given_ = AutoInput(now, settings, state, ready, starting)
        decision = decide(given_)
        assert decision == decide(given_)
        assert 1 <= decision.desired <= 6
        moves.append((now, decision.desired - state.desired))
        for direction in (1, -1):
            recent = [by * direction for at, by in moves if at > now - 60 and by * direction > 0]
            assert sum(recent) <= step
        if starting:
            assert decision.desired >= state.desired
        state = decision.state
