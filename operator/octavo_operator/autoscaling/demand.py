"""`read_demand`: what the pods' samples ask for, in replicas, as two bounds.

A pod without a fresh sample could be idle or full. For scaling up it counts as idle, for scaling down as full, so what
is not known never moves anything. When less than half of the pods are known, nothing is: the metrics are lost.

When enough replicas run, nothing waits; that alone is no reason to take one away. So it is remembered how many requests
a replica ran when its queue was full, and fewer replicas must be able to run what runs now.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil

from octavo_operator.autoscaling.auto_settings import AutoSettings
from octavo_operator.autoscaling.metrics_text import Sample
from octavo_operator.autoscaling.samples import PodSample

FRESH_SECONDS = 30.0  # some ten scrapes of a busy pod
TOLERANCE = 0.1  # of the load that the present replicas are meant for: so much more or less changes nothing
ROOM_LEFT = 0.8  # of what fills a replica may run on each after a scale-down
LEARNING = 0.2  # how fast the estimate of what fills a replica falls; it rises at once

_EPSILON = 1e-9  # 0.8 + 0.8 over 0.8 is two, not three


@dataclass(frozen=True, slots=True)
class Demand:
    """Wanted replicas: at least, at most, and the facts behind them."""

    low: int  # if unknown pods are idle
    high: int  # if unknown pods are full
    reason: str  # what they come from
    sampled_at: float  # of the oldest sample that was used
    full: float | None  # requests that fill a replica, as far as was seen


@dataclass(frozen=True, slots=True)
class _Signal:
    """One kind of load, summed over the serving pods."""

    name: str
    target: float  # per replica
    values: tuple[float, ...]  # of the pods that tell it
    pods: int  # that serve

    @property
    def low(self) -> float:
        return sum(self.values) / self.target

    @property
    def high(self) -> float:
        return self.low + self.pods - len(self.values)

    @property
    def reason(self) -> str:
        """For people."""
        total = sum(self.values)
        if self.target < 1:
            return f"{self.name} is {total / len(self.values):.0%} (target {self.target:.0%} per replica)"
        return f"{total:.0f} {self.name} (target {self.target:.0f} per replica)"

    def wanted(self, load: float, present: int) -> int:
        """`load` in replicas; close to the present number it is the present number."""
        if present and abs(load / present - 1) <= TOLERANCE + _EPSILON:
            return present
        return ceil(load - _EPSILON)


def read_demand(
    ready: tuple[PodSample, ...], present: int, settings: AutoSettings, now: float, full: float | None = None
) -> Demand | None:
    """None: the metrics are lost. `present`: replicas that serve or are starting; `full`: of the last demand."""
    fresh = [pod.last for pod in ready if pod.last is not None and now - pod.last.at <= FRESH_SECONDS]
    if not fresh or 2 * len(fresh) < len(ready):
        return None
    samples = [one.sample for one in fresh]
    signals = [
        _Signal("waiting requests", settings.waiting_requests, _known(one.waiting for one in samples), len(ready)),
        _Signal("KV cache use", settings.kv_cache_usage, _known(one.kv_usage for one in samples), len(ready)),
    ]
    told = [signal for signal in signals if signal.values]
    if not told:
        return None
    strongest = max(told, key=lambda signal: signal.low)
    low = max(signal.wanted(signal.low, present) for signal in told)
    high = max(signal.wanted(signal.high, present) for signal in told)
    reason = strongest.reason
    full = _learnt(settings.seats if full is None else full, samples, settings)
    running = sum(_known(one.running for one in samples))
    needed = ceil(running / (full * ROOM_LEFT) - _EPSILON) if full else 0
    if needed > high:
        high, reason = needed, f"{running:.0f} running requests (about {full:.0f} fill a replica)"
    return Demand(low, high, reason, min(one.at for one in fresh), full)


def _learnt(full: float | None, samples: Sequence[Sample], settings: AutoSettings) -> float | None:
    """With what runs now, if the queues are full. One sample may catch a burst before any of it runs."""
    waiting = _known(one.waiting for one in samples)
    running = _known(one.running for one in samples)
    if not running or sum(waiting) < settings.waiting_requests * len(samples):
        return full
    seen = max(1.0, sum(running) / len(running))
    return seen if full is None or seen > full else full + LEARNING * (seen - full)


def _known(values: Iterable[float | None]) -> tuple[float, ...]:
    return tuple(value for value in values if value is not None)
