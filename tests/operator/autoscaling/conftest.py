"""Samples of serving pods, made short."""

from collections.abc import Callable

import pytest

from octavo_operator.autoscaling.metrics_text import Sample
from octavo_operator.autoscaling.samples import PodSample, TimedSample

NOW = 1000.0


@pytest.fixture
def loads() -> Callable[..., tuple[PodSample, ...]]:
    """Pods with (waiting, KV use) each; None for one that does not answer."""

    def loads(
        *values: tuple[float | None, float | None] | None, at: float = NOW, running: float = 0
    ) -> tuple[PodSample, ...]:
        return tuple(
            PodSample(f"p{number}", value and TimedSample(at, Sample(value[0], running, value[1])))
            for number, value in enumerate(values)
        )

    return loads
