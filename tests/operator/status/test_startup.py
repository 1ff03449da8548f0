"""A starting pod says how far it is; a ready one says nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.observed import RuntimeView
from octavo_operator.reasons import Reason
from octavo_operator.status.startup import Progress, answer, starting


def loading(build: Any, phase: str, **status: Any) -> Any:
    return build.pod(ready=False, runtime=build.runtime(phase, **status))


@pytest.mark.parametrize(
    ("phase", "reason"),
    [
        ("Resolving", Reason.STARTING),
        ("Downloading", Reason.DOWNLOADING),
        ("Loading", Reason.LOADING),
        ("WarmingUp", Reason.WARMING_UP),
        ("OfANewerRuntime", Reason.STARTING),
        ("Failed", Reason.ENGINE_FAILED),
        ("Ready", Reason.WARMING_UP),
    ],
)
def test_phase_of_the_runtime_is_the_reason(build: Any, phase: str, reason: Reason) -> None:
    finding = starting(loading(build, phase))
    assert finding is not None
    assert finding.reason is reason


def test_progress_is_told_in_percent_and_size(build: Any) -> None:
    finding = starting(loading(build, "Loading", progress={"done_bytes": 1_200 << 20, "total_bytes": 2_800 << 20}))
    assert finding is not None
    assert finding.message == "Loading the weights: 42 % of 2.7 GiB."


@pytest.mark.parametrize(
    "progress", [None, {}, {"done_bytes": None, "total_bytes": None}, {"done_bytes": 1, "total_bytes": 0}]
)
def test_unknown_progress_is_left_out(build: Any, progress: Any) -> None:
    finding = starting(loading(build, "Downloading", progress=progress))
    assert finding is not None
    assert finding.message == "Downloading the weights."


def test_a_ready_pod_has_nothing_to_tell(build: Any) -> None:
    assert starting(build.pod()) is None


def test_an_answer_from_before_the_restart_does_not_count(build: Any) -> None:
    stale = RuntimeView(at=build.now - 400, phase="Loading")
    pod = build.pod(ready=False, runtime=stale)
    assert answer(pod) is None
    finding = starting(pod)
    assert finding is not None
    assert finding.reason is Reason.STARTING


@given(st.integers(0, 10**13), st.integers(1, 10**12))
def test_percent_is_never_more_than_a_hundred(done: int, total: int) -> None:
    assert 0 <= Progress(done, total).percent <= 100
