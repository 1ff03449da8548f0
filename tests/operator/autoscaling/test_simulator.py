"""The policy over traffic: what it does in an hour, in milliseconds."""

import math
import random

from octavo_operator.autoscaling.auto_settings import AutoSettings, StepSettings
from octavo_operator.autoscaling.simulator import Replica, per_second, simulate

SETTINGS = AutoSettings(max_replicas=10, up=StepSettings(0, max_pods=1, period_seconds=60))
ONE = 1.0  # requests per second that one replica of the default kind serves: 8 seats, 8 seconds each


def steady(rate: float, seconds: int) -> list[float]:
    return [rate] * seconds


def test_no_traffic_no_change() -> None:
    run = simulate(SETTINGS, steady(0, 2000))
    assert (run.peak, run.flaps) == (1, 0)


def test_a_step_grows_the_number_and_never_past_what_was_sought_while_pods_start() -> None:
    run = simulate(SETTINGS, steady(0.2, 300) + steady(2.5 * ONE, 3600))
    for before, after in zip(run.points, run.points[1:], strict=False):
        if after.desired > before.desired:
            assert after.ready == before.desired, "one more was asked for while another started"
    assert run.points[-1].waiting < 5
    assert run.flaps <= 1


def test_a_burst_is_followed_by_the_way_back_to_the_minimum() -> None:
    run = simulate(SETTINGS, steady(0.2, 200) + steady(3 * ONE, 300) + steady(0.2, 2400))
    assert run.peak >= 3
    assert run.desired_at(2800) == 1
    assert run.flaps == 1


def test_what_the_load_needed_stays_for_a_whole_window_after_it() -> None:
    run = simulate(SETTINGS, steady(3 * ONE, 1200) + steady(0, 1800))
    needed = 3
    assert min(point.desired for point in run.points if 900 <= point.at <= 1495) >= needed
    assert run.desired_at(2999) == 1


def test_a_ramp_is_followed() -> None:
    run = simulate(SETTINGS, [second / 3600 * 4 * ONE for second in range(3600)])
    assert 4 <= run.peak <= 6
    assert run.flaps == 0


def test_a_day_is_followed_up_and_down() -> None:
    day = [2 * ONE * (1 - math.cos(2 * math.pi * second / 7200)) for second in range(7200)]
    run = simulate(SETTINGS, day)
    assert run.peak >= 4
    assert run.desired_at(7199) <= 3
    assert run.flaps <= 2
    assert run.replica_seconds < 7200 * run.peak * 0.8


def test_noise_around_a_steady_load_does_not_make_it_flap() -> None:
    dice = random.Random(7)
    trace = per_second((dice.uniform(0, 3600) for _ in range(int(1.5 * ONE * 3600))), 3600)
    run = simulate(SETTINGS, trace)
    assert run.flaps <= 1
    assert 2 <= run.desired_at(3500) <= 4


def test_a_cache_that_fills_before_any_request_waits_scales_too() -> None:
    greedy = Replica(seats=64, kv_per_request=0.1, request_seconds=8)
    run = simulate(SETTINGS, steady(1.2, 1800), greedy)
    assert run.peak >= 2
    assert all(point.waiting < 1 for point in run.points)


def test_load_that_fills_seats_but_neither_queue_nor_cache_keeps_its_replicas() -> None:
    light = Replica(kv_per_request=0.01)
    load = steady(2.6 * ONE, 1200) + steady(1.8 * ONE, 2400)
    for seats in (8, 256, None):
        kept = simulate(AutoSettings(max_replicas=10, seats=seats), load, light)
        assert kept.flaps <= 1
        assert kept.desired_at(3599) >= 2


def test_without_metrics_the_number_holds_and_comes_back_after_a_whole_window() -> None:
    load = steady(3 * ONE, 400) + steady(0, 1600)
    run = simulate(SETTINGS, load, blind=[range(390, 1000)])
    assert run.desired_at(430) == run.desired_at(1000) > 1
    assert run.desired_at(1250) == run.desired_at(1000)
    assert run.desired_at(1999) == 1


def test_a_recorded_trace_is_counted_by_the_second() -> None:
    assert per_second([0.1, 0.9, 2.0, 7.5, -1.0], 3) == [2, 0, 1]
