from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.autoscaling.auto_settings import AutoSettings
from octavo_operator.autoscaling.demand import FRESH_SECONDS, Demand, read_demand
from octavo_operator.autoscaling.metrics_text import Sample
from octavo_operator.autoscaling.samples import PodSample, TimedSample

NOW = 1000.0
SETTINGS = AutoSettings(max_replicas=10, waiting_requests=5, kv_cache_usage=0.8)
Loads = Callable[..., tuple[PodSample, ...]]


def bounds(
    pods: tuple[PodSample, ...], present: int | None = None, settings: AutoSettings = SETTINGS
) -> tuple[int, int] | None:
    demand = read_demand(pods, len(pods) if present is None else present, settings, NOW)
    return demand and (demand.low, demand.high)


def test_waiting_requests_are_shared_by_as_many_as_the_target_says(loads: Loads) -> None:
    assert bounds(loads((12, 0.1))) == (3, 3)
    assert bounds(loads((6, 0.1), (6, 0.1))) == (3, 3)


def test_a_full_cache_alone_wants_more(loads: Loads) -> None:
    assert bounds(loads((0, 1.0))) == (2, 2)
    assert bounds(loads((0, 0.9), (0, 1.0))) == (3, 3)


def test_the_largest_count_wins(loads: Loads) -> None:
    assert bounds(loads((12, 1.0))) == (3, 3)
    assert bounds(loads((1, 1.0))) == (2, 2)


def test_starting_pods_count_as_capacity(loads: Loads) -> None:
    assert bounds(loads((10, 0.1)), present=2) == (2, 2)
    assert bounds(loads((0, 1.0)), present=2) == (2, 2)


@pytest.mark.parametrize(("usage", "wanted"), [(0.80, 2), (0.88, 2), (0.72, 2), (0.89, 3), (0.39, 1)])
def test_close_to_the_target_nothing_changes(loads: Loads, usage: float, wanted: int) -> None:
    assert bounds(loads((0, usage), (0, usage))) == (wanted, wanted)


def test_an_idle_resource_wants_none(loads: Loads) -> None:
    assert bounds(loads((0, 0.0), (0, 0.0))) == (0, 0)


def test_an_unknown_pod_counts_as_idle_upwards_and_as_full_downwards(loads: Loads) -> None:
    assert bounds(loads((5, 0.1), (5, 0.1), None)) == (2, 3)
    assert bounds(loads((0, 0.1), None)) == (1, 2)


def test_metrics_are_lost_when_less_than_half_of_the_pods_are_known(loads: Loads) -> None:
    assert bounds(loads((5, 0.1), None, None)) is None
    assert bounds(loads((5, 0.1), None)) is not None
    assert bounds(loads(None)) is None
    assert bounds(loads((None, None))) is None


def test_old_samples_are_no_samples(loads: Loads) -> None:
    assert bounds(loads((5, 0.1), at=NOW - FRESH_SECONDS)) is not None
    assert bounds(loads((5, 0.1), at=NOW - FRESH_SECONDS - 1)) is None


def test_one_signal_suffices(loads: Loads) -> None:
    assert bounds(loads((None, 1.0))) == (2, 2)
    assert bounds(loads((12, None))) == (3, 3)


def test_what_runs_keeps_replicas_but_does_not_ask_for_more(loads: Loads) -> None:
    settings = AutoSettings(max_replicas=10, waiting_requests=5, kv_cache_usage=0.8, seats=8)
    assert bounds(loads((0, 0.1), (0, 0.1), (0, 0.1), running=6), settings=settings) == (1, 3)


def test_what_fills_a_replica_is_learnt_while_its_queue_is_full(loads: Loads) -> None:
    def learnt(full: float | None, *values: tuple[float, float], running: float) -> float | None:
        demand = read_demand(loads(*values, running=running), len(values), SETTINGS, NOW, full)
        assert demand is not None
        return demand.full

    assert learnt(None, (4, 0.2), running=3) is None
    assert learnt(None, (5, 0.2), running=3) == 3
    assert learnt(3, (5, 0.2), running=8) == 8
    assert learnt(8, (9, 0.2), running=3) == 7
    assert learnt(8, (0, 0.2), running=3) == 8


def test_fewer_replicas_must_be_able_to_run_what_runs(loads: Loads) -> None:
    demand = read_demand(loads((0, 0.1), (0, 0.1), (0, 0.1), running=6), 3, SETTINGS, NOW, full=8)
    assert demand is not None
    assert (demand.low, demand.high) == (1, 3)
    assert demand.reason == "18 running requests (about 8 fill a replica)"


def test_the_reason_names_the_strongest_signal(loads: Loads) -> None:
    def reason(*values: tuple[float, float]) -> str:
        demand = read_demand(loads(*values), len(values), SETTINGS, NOW)
        assert isinstance(demand, Demand)
        return demand.reason

    assert reason((12, 0.2)) == "12 waiting requests (target 5 per replica)"
    assert reason((0, 0.9), (0, 0.7)) == "KV cache use is 80% (target 80% per replica)"


@given(st.lists(st.none() | st.tuples(st.integers(0, 50), st.floats(0, 1)), min_size=1, max_size=6))
def test_what_is_not_known_never_moves_the_number_alone(values: list[tuple[int, float] | None]) -> None:
    pods = tuple(
        PodSample(str(number), value and TimedSample(NOW, Sample(value[0], 0, value[1])))
        for number, value in enumerate(values)
    )
    demand = read_demand(pods, len(pods), SETTINGS, NOW)
    if demand is not None:
        assert demand.low <= demand.high
        assert demand.sampled_at == NOW
