from typing import Any

import pytest

from octavo_operator.autoscaling.metrics_text import Sample
from octavo_operator.autoscaling.samples import PodSample, TimedSample, count_starting, pod_samples
from octavo_operator.observed import PodView


def pod(name: str, **fields: Any) -> PodView:
    defaults: dict[str, Any] = {
        "uid": f"uid-{name}",
        "revision": "a",
        "created_at": 900.0,
        "phase": "Running",
        "ready": True,
        "routed": True,
        "drain_started_at": None,
        "terminating": False,
    }
    return PodView(name=name, **(defaults | fields))


def test_pods_that_requests_reach_are_sampled() -> None:
    samples = {"uid-a": TimedSample(1.0, Sample(1, 2, 0.5))}
    pods = [pod("a"), pod("b"), pod("c", ready=False), pod("d", routed=False), pod("e", terminating=True)]
    assert pod_samples(pods, samples.get) == (PodSample("a", samples["uid-a"]), PodSample("b", None))


@pytest.mark.parametrize(
    ("fields", "starts"),
    [
        ({"ready": False}, True),
        ({"ready": False, "phase": "Pending"}, True),
        ({"ready": False, "created_at": 399.0}, False),
        ({"ready": False, "routed": False}, False),
        ({"ready": False, "terminating": True}, False),
        ({"ready": False, "phase": "Failed"}, False),
        ({}, False),
    ],
)
def test_pods_that_will_serve_soon_are_starting(fields: dict[str, Any], starts: bool) -> None:
    assert count_starting([pod("a", **fields)], now=1000.0, startup_seconds=600) == starts
