"""What a pod counts as."""

import pytest

from octavo_operator.observed import PodView


def pod(phase: str = "Running", terminating: bool = False) -> PodView:
    return PodView("p", "u", "a", 0.0, phase, False, False, None, terminating)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_a_pod_is_a_replica_until_it_ends_or_is_deleted(phase: str) -> None:
    assert pod(phase).is_active
    assert not pod(phase).has_ended
    assert not pod(phase, terminating=True).is_active
    assert not pod(phase, terminating=True).has_ended


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_an_ended_pod_is_no_replica(phase: str) -> None:
    assert pod(phase).has_ended
    assert not pod(phase).is_active
