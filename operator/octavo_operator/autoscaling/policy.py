"""`decide`: how many replicas, from what the serving pods carry and what was decided before. Pure.

The largest wanted count wins. Three brakes: pods that start count as capacity and their backlog asks for no more of
them; each direction has its window (up takes the least wanted in it, down the most) and its step per period; without
metrics the number stays, or goes to the maximum, as the spec says.
"""

from dataclasses import dataclass, replace

from octavo_operator.autoscaling.auto_settings import AutoSettings, OnMetricsLost, StepSettings
from octavo_operator.autoscaling.demand import Demand, read_demand
from octavo_operator.autoscaling.history import AutoState, restore
from octavo_operator.autoscaling.samples import PodSample, count_starting, pod_samples

__all__ = [
    "AutoInput",
    "AutoSettings",
    "AutoState",
    "Decision",
    "count_starting",
    "decide",
    "pod_samples",
    "restore",
]

CREATION_SECONDS = 30.0  # until a pod that was asked for can be seen starting


@dataclass(frozen=True, slots=True)
class AutoInput:
    """What one decision is made on."""

    now: float
    settings: AutoSettings
    state: AutoState
    ready: tuple[PodSample, ...]
    starting: int


@dataclass(frozen=True, slots=True)
class Decision:
    """The number, why, and the state for the next decision."""

    desired: int
    reason: str
    state: AutoState
    metrics_lost: bool = False
    metrics_age: float | None = None  # of the oldest sample that was used
    recheck_seconds: float | None = None  # when the clock alone may change it


def decide(given: AutoInput) -> Decision:
    """The next number."""
    settings, now = given.settings, given.now
    allowed = _clamp(given.state.desired, settings)
    if allowed != given.state.desired:
        bounds = f"minReplicas {settings.min_replicas}, maxReplicas {settings.max_replicas}"
        return _decision(given, allowed, bounds, replace(given.state, sought=allowed))
    if not given.ready:
        state = given.state.wish(allowed, now, _window(settings))
        return _decision(given, allowed, "no replica serves yet", state)
    present = len(given.ready) + given.starting
    demand = read_demand(given.ready, present, settings, now, given.state.full)
    if demand is None:
        return _without_metrics(given)
    return _with_metrics(given, demand)


def _with_metrics(given: AutoInput, demand: Demand) -> Decision:
    settings, now, desired = given.settings, given.now, given.state.desired
    wanted = desired
    if demand.low > desired:
        wanted = demand.low
    elif demand.high < desired:
        wanted = demand.high
    wanted = _clamp(wanted, settings)
    pending = _is_pending(given)
    sought = given.state.sought if pending else max(wanted, desired)
    if pending:
        wanted = min(max(wanted, desired), max(sought, desired))
    state = replace(given.state, sought=sought, full=demand.full)
    state = state.wish(wanted, now, _window(settings))
    least = min(one.wanted for one in state.wished_since(now - settings.up.stabilization_seconds))
    most = max(one.wanted for one in state.wished_since(now - settings.down.stabilization_seconds))
    settled = desired
    if least > desired:
        settled = least
    elif most < desired:
        settled = most
    new = _stepped(state, settled, settings, now)
    decision = _decision(given, new, f"{demand.reason}: {wanted} wanted", state)
    waits = [_step_wait(state, settled, new, settings, now), _window_wait(state, wanted, new, settings, now)]
    return replace(
        decision,
        metrics_age=now - demand.sampled_at,
        recheck_seconds=min((wait for wait in waits if wait is not None), default=None),
    )


def _without_metrics(given: AutoInput) -> Decision:
    """Held, the present number counts as wanted: after the gap a whole window must pass before it shrinks."""
    settings, now, desired = given.settings, given.now, given.state.desired
    state = given.state.wish(desired, now, _window(settings))
    new, reason = desired, "metrics lost: holding"
    if settings.on_metrics_lost is OnMetricsLost.SCALE_TO_MAX:
        new = _stepped(state, settings.max_replicas, settings, now)
        reason = "metrics lost: scaling to maxReplicas"
    wait = _step_wait(state, settings.max_replicas, new, settings, now) if new > desired else None
    return replace(_decision(given, new, reason, state), metrics_lost=True, recheck_seconds=wait)


def _is_pending(given: AutoInput) -> bool:
    """Whether pods are starting, or were asked for a moment ago."""
    if given.starting:
        return True
    if len(given.ready) >= given.state.desired:
        return False
    return bool(given.state.moved(given.now - CREATION_SECONDS, 1))


def _stepped(state: AutoState, settled: int, settings: AutoSettings, now: float) -> int:
    """As far towards `settled` as the step per period allows."""
    if settled > state.desired:
        return min(settled, state.desired + _step_left(state, settings.up, 1, now))
    if settled < state.desired:
        return max(settled, state.desired - _step_left(state, settings.down, -1, now))
    return settled


def _step_left(state: AutoState, step: StepSettings, direction: int, now: float) -> int:
    moved = sum(size for _, size in state.moved(now - step.period_seconds, direction))
    return max(0, step.max_pods - moved)


def _step_wait(state: AutoState, settled: int, new: int, settings: AutoSettings, now: float) -> float | None:
    """Until the next step is allowed, if there is a way to go."""
    if settled == new:
        return None
    direction = 1 if settled > new else -1
    step = settings.up if direction > 0 else settings.down
    moved = state.moved(now - step.period_seconds, direction)
    return min((at + step.period_seconds - now for at, _ in moved), default=float(step.period_seconds))


def _window_wait(state: AutoState, wanted: int, new: int, settings: AutoSettings, now: float) -> float | None:
    """Until the last wish that keeps the number where it is leaves its window."""
    if wanted == new:
        return None
    up = wanted > new
    seconds = settings.up.stabilization_seconds if up else settings.down.stabilization_seconds
    past = state.wished_since(now - seconds)[:-1]
    against = [one.until for one in past if (one.wanted <= new if up else one.wanted >= new)]
    return max(against) + seconds - now if against else None


def _decision(given: AutoInput, desired: int, reason: str, state: AutoState) -> Decision:
    period = max(given.settings.up.period_seconds, given.settings.down.period_seconds, CREATION_SECONDS)
    return Decision(desired, reason, state.move(desired, given.now, period))


def _clamp(wanted: int, settings: AutoSettings) -> int:
    return max(settings.min_replicas, min(wanted, settings.max_replicas))


def _window(settings: AutoSettings) -> float:
    return float(max(settings.up.stabilization_seconds, settings.down.stabilization_seconds))
