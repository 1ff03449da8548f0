"""The one word in the column."""

import pytest

from octavo_operator.reasons import Reason
from octavo_operator.status.phases import Phase, phase_of


def phase(reason: Reason, **changes: bool) -> Phase:
    nothing = dict.fromkeys(("available", "degraded", "rolling", "scaling", "blocked"), False)
    return phase_of(reason, **{**nothing, **changes})


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (Reason.RESOLVING_MODEL, Phase.RESOLVING),
        (Reason.MODEL_RATE_LIMITED, Phase.RESOLVING),
        (Reason.DOWNLOADING, Phase.DOWNLOADING),
        (Reason.WAITING_FOR_GPU, Phase.SCHEDULING),
        (Reason.IMAGE_PULLING, Phase.SCHEDULING),
        (Reason.LOADING, Phase.LOADING),
        (Reason.WARMING_UP, Phase.LOADING),
        (Reason.SCALING, Phase.SCHEDULING),
        (Reason.IMAGE_PULL_FAILED, Phase.SCHEDULING),
        (Reason.RECONCILE_FAILED, Phase.RESOLVING),
        (Reason.ROLLING_OUT, Phase.SCHEDULING),
        (Reason.PAUSED, Phase.SCHEDULING),
        (Reason.DRAINING, Phase.PENDING),
    ],
)
def test_a_start_walks_through_its_phases(reason: Reason, expected: Phase) -> None:
    assert phase(reason) is expected


def test_what_is_stuck_has_failed_unless_something_serves() -> None:
    assert phase(Reason.CRASH_LOOP, blocked=True) is Phase.FAILED
    assert phase(Reason.CRASH_LOOP, blocked=True, available=True) is Phase.DEGRADED


def test_a_rollout_under_way_is_rolling_while_something_serves() -> None:
    assert phase(Reason.LOADING, rolling=True, available=True) is Phase.ROLLING
    assert phase(Reason.LOADING, rolling=True) is Phase.LOADING


@pytest.mark.parametrize("reason", [Reason.SCALING, Reason.STARTING, Reason.DOWNLOADING, Reason.LOADING])
def test_replicas_that_come_or_go_beside_one_that_serves_are_scaling(reason: Reason) -> None:
    assert phase(reason, scaling=True, available=True) is Phase.SCALING
    assert phase(reason, scaling=True) is phase(reason)
    assert phase(reason, scaling=True, rolling=True, available=True) is Phase.ROLLING
    assert phase(reason, scaling=True, available=True, degraded=True) is Phase.DEGRADED
