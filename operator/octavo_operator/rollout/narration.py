"""What the rollout does right now, in one or two sentences for status and `kubectl octavo why`.

Says nothing that changes with the clock alone, so that a status that is written again is equal.
"""

from collections.abc import Sequence

from octavo_operator.observed import PodView
from octavo_operator.rollout.drain import DrainRules
from octavo_operator.rollout.progress import Progress
from octavo_operator.rollout.replica_set import is_marked
from octavo_operator.rollout.strategy import Strategy
from octavo_operator.rollout.victims import Goal

_LISTED = 3  # pods named in a sentence

_HOW = {
    Strategy.SURGE: "New pods first",
    Strategy.IN_PLACE: "One pod after the other in place",
    Strategy.RECREATE: "All pods at once",
}


def narrate(goal: Goal, progress: Progress, victims: Sequence[PodView], rules: DrainRules, blocked: bool) -> str:
    """Sentences, the state first."""
    parts = [_state(goal, progress)]
    draining = [pod for pod in victims if is_marked(pod)]
    if draining:
        parts.append(_draining(draining))
    elif blocked:
        parts.append("Nothing moves until there is room for a new pod.")
    elif any(rules.serves_nothing(pod) for pod in victims):
        parts.append("Pods that serve nothing go first.")
    elif progress.terminating:
        parts.append(
            f"Waiting until {_pods(progress.terminating)} that {_are(progress.terminating)} terminating "
            f"{_are(progress.terminating)} gone."
        )
    return " ".join(parts)


def _state(goal: Goal, progress: Progress) -> str:
    if goal.desired == 0:
        left = progress.pods + progress.terminating
        return f"No replica is wanted; {_pods(left)} left." if left else "No replica is wanted."
    if goal.paused and progress.old:
        return f"Paused: {progress.updated} of {goal.desired} wanted pods are of the new revision."
    if progress.old:
        how = _HOW[goal.strategy.strategy]
        return (
            f"{how}: {progress.updated_ready} of {goal.desired} wanted pods serve the new revision, "
            f"{_pods(progress.old)} of other revisions left."
        )
    if progress.is_complete:
        return f"All {goal.desired} wanted pods serve." if goal.desired > 1 else "The wanted pod serves."
    return f"{progress.updated_ready} of {goal.desired} wanted pods serve, {progress.updated} exist."


def _draining(pods: Sequence[PodView]) -> str:
    named = ", ".join(f"{pod.name}{_load(pod)}" for pod in pods[:_LISTED])
    more = f" and {len(pods) - _LISTED} more" if len(pods) > _LISTED else ""
    return f"Draining {named}{more}."


def _load(pod: PodView) -> str:
    if pod.runtime is None:
        return ""
    requests = pod.runtime.in_flight + pod.runtime.waiting
    return f" ({requests} {'request' if requests == 1 else 'requests'})"


def _pods(number: int) -> str:
    return f"{number} {'pod' if number == 1 else 'pods'}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"
