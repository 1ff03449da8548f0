"""Of several findings the one that matters is told, and always the same one."""

import itertools

import pytest

from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding
from octavo_operator.status.severity import SEVERITY, worst


def test_every_reason_has_its_place() -> None:
    assert sorted(SEVERITY) == sorted(Reason)


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (Reason.MODEL_ACCESS_DENIED, Reason.CRASH_LOOP),
        (Reason.OUT_OF_MEMORY, Reason.WAITING_FOR_GPU),
        (Reason.WAITING_FOR_QUOTA, Reason.LOADING),
        (Reason.LOADING, Reason.WARMING_UP),
        (Reason.LOADING, Reason.ROLLING_OUT),
    ],
)
def test_the_worse_one_is_told(worse: Reason, better: Reason) -> None:
    assert worst([Finding(better, ""), Finding(worse, "")]) == Finding(worse, "")


def test_what_blocks_comes_before_anything_that_heals() -> None:
    heals, blocks = Finding(Reason.OUT_OF_MEMORY, "", stalled=False), Finding(Reason.WAITING_FOR_GPU, "", stalled=True)
    assert worst([heals, blocks]) is blocks


def test_order_of_the_pods_does_not_matter() -> None:
    findings = [Finding(Reason.CRASH_LOOP, "", pod=f"smollm-{number}") for number in range(3)]
    assert {worst(order) for order in itertools.permutations(findings)} == {findings[0]}


def test_nothing_found_is_nothing_told() -> None:
    assert worst([]) is None
