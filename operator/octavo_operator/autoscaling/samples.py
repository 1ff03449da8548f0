"""What the policy is given: the pods that serve, each with its last sample, and the pods that are starting."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from octavo_operator.autoscaling.metrics_text import Sample
from octavo_operator.observed import PodView


@dataclass(frozen=True, slots=True)
class TimedSample:
    """A sample and when it was read."""

    at: float
    sample: Sample


@dataclass(frozen=True, slots=True)
class PodSample:
    """A pod that requests reach."""

    name: str
    last: TimedSample | None


def pod_samples(pods: Iterable[PodView], sample: Callable[[str], TimedSample | None]) -> tuple[PodSample, ...]:
    """Of all revisions; `sample` finds one by the pod's uid. Draining pods serve no new requests and do not count."""
    serving = (pod for pod in pods if pod.ready and pod.routed and not pod.terminating)
    return tuple(PodSample(pod.name, sample(pod.uid)) for pod in serving)


def count_starting(pods: Iterable[PodView], now: float, startup_seconds: float) -> int:
    """Pods that will serve soon. One that takes longer than a start may take is not waited for."""
    return sum(
        not pod.ready
        and pod.routed
        and not pod.terminating
        and not pod.has_ended
        and now - pod.created_at <= startup_seconds
        for pod in pods
    )
