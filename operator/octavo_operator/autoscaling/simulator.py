"""`simulate`: plays the policy against a trace of arrivals and replicas that take time to start. Pure.

A fluid model: requests fill seats, each seat holds a share of the KV cache, what finds no seat waits. Enough to see
whether a setting overshoots, flaps or never comes back down, before a cluster does.
"""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import floor

from octavo_operator.autoscaling.auto_settings import AutoSettings
from octavo_operator.autoscaling.history import AutoState
from octavo_operator.autoscaling.metrics_text import Sample
from octavo_operator.autoscaling.policy import AutoInput, decide
from octavo_operator.autoscaling.samples import PodSample, TimedSample


@dataclass(frozen=True, slots=True)
class Replica:
    """What one replica can do."""

    seats: int = 8  # requests that run at once
    request_seconds: float = 8.0  # that one takes
    kv_per_request: float = 0.05  # share of the KV cache that one holds
    start_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Point:
    """One second of a run."""

    at: float
    desired: int
    ready: int
    waiting: float
    running: float
    reason: str


@dataclass(frozen=True, slots=True)
class Run:
    """How the number of replicas went."""

    points: tuple[Point, ...]

    @property
    def peak(self) -> int:
        """The most that was ever wanted."""
        return max(point.desired for point in self.points)

    @property
    def flaps(self) -> int:
        """How often the direction turned."""
        steps = [b.desired - a.desired for a, b in itertools.pairwise(self.points)]
        moves = [step for step in steps if step]
        return sum(a * b < 0 for a, b in itertools.pairwise(moves))

    @property
    def replica_seconds(self) -> int:
        """What it cost."""
        return sum(point.desired for point in self.points)

    def desired_at(self, at: float) -> int:
        """The number wanted at a time."""
        return next(point.desired for point in reversed(self.points) if point.at <= at)


@dataclass(slots=True)
class _World:
    """The mutable part of a run."""

    replica: Replica
    ready: int
    starting: list[float] = field(default_factory=list)  # when each will be ready
    waiting: float = 0.0
    running: float = 0.0

    def resize(self, desired: int, now: float) -> None:
        """Pods that start go first, as they serve nothing."""
        while self.ready + len(self.starting) < desired:
            self.starting.append(now + self.replica.start_seconds)
        while self.ready + len(self.starting) > desired:
            if self.starting:
                self.starting.pop()
            else:
                self.ready -= 1

    def step(self, arrivals: float, now: float) -> None:
        """One second."""
        self.ready += sum(at <= now for at in self.starting)
        self.starting = [at for at in self.starting if at > now]
        self.running -= self.running / self.replica.request_seconds
        seats = self.ready * self.replica.seats
        load = self.waiting + self.running + arrivals
        self.running = max(self.running, min(load, seats))  # a replica that goes finishes what it has
        self.waiting = load - self.running

    def samples(self, now: float) -> tuple[PodSample, ...]:
        """The load, spread evenly."""
        ready = max(1, self.ready)
        running = min(self.running / ready, self.replica.seats)
        usage = min(1.0, running * self.replica.kv_per_request)
        sample = Sample(waiting=floor(self.waiting) / ready, running=running, kv_usage=usage)
        return tuple(PodSample(f"pod-{number}", TimedSample(now, sample)) for number in range(self.ready))


def simulate(
    settings: AutoSettings,
    arrivals: Sequence[float],
    replica: Replica = Replica(),
    decide_every: int = 2,
    blind: Iterable[range] = (),
) -> Run:
    """`arrivals`: requests in each second. `blind`: seconds in which no metrics come."""
    start = settings.min_replicas
    world = _World(replica, start)
    state = AutoState.start(start, 0.0)
    dark = [*blind]
    points = []
    seen: tuple[PodSample, ...] = ()
    reason = ""
    for second, arriving in enumerate(arrivals):
        now = float(second)
        world.step(arriving, now)
        if second % decide_every == 0:
            if not any(second in one for one in dark):
                seen = world.samples(now)
            given = AutoInput(now, settings, state, seen[: world.ready], len(world.starting))
            decision = decide(given)
            state, reason = decision.state, decision.reason
            world.resize(decision.desired, now)
        points.append(Point(now, state.desired, world.ready, world.waiting, world.running, reason))
    return Run(tuple(points))


def per_second(times: Iterable[float], seconds: int) -> list[float]:
    """A recorded trace (times of arrival from its begin) as arrivals in each second."""
    counts = [0.0] * seconds
    for at in times:
        if 0 <= at < seconds:
            counts[int(at)] += 1
    return counts
