"""`replicas` of each revision's Deployment: what each shall end with, and how far it may move now.

Up by as many pods as there is room for, terminating ones counted; down by as many as have nothing left to lose and are
the very ones that the ReplicaSet takes.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from octavo_operator.rollout.census import Crew, in_all
from octavo_operator.rollout.drain import DrainRules
from octavo_operator.rollout.replica_set import is_marked, safe_prefix
from octavo_operator.rollout.strategy import Strategy
from octavo_operator.rollout.victims import Goal


@dataclass(frozen=True, slots=True)
class Setpoints:
    """New replicas, and what they cannot reach."""

    replicas: Mapping[str, int]
    unreachable: tuple[str, ...]  # names of pods that are over time, but the ReplicaSet would take others
    release: tuple[str, ...]  # names of pods that may go, if only they were marked apart from others


def wanted(
    crews: tuple[Crew, ...],
    target: str,
    stable: str | None,
    desired: int,
    paused: bool,
    requested: frozenset[str],
) -> dict[str, int]:
    """Replicas that each revision shall end with: all of the target, or the present mix while paused.

    A pod to be replaced gets one more beside it, if there is room.
    """
    if desired == 0:
        return {}
    shares = _mix(crews, stable, desired) if paused else {target: desired}
    for crew in crews:
        if shares.get(crew.hash):
            shares[crew.hash] += sum(pod.name in requested for pod in crew.active)
    return shares


def setpoints(crews: tuple[Crew, ...], goal: Goal, victims: tuple[str, ...], rules: DrainRules) -> Setpoints:
    """What to write into the Deployments now."""
    room = max(0, goal.max_pods - in_all(crews)) if _may_rise(crews, goal) else 0
    new: dict[str, int] = {}
    unreachable: list[str] = []
    release: list[str] = []
    for crew in crews:
        share = goal.wanted.get(crew.hash, 0)
        leaving = _leaving(crew, victims, rules, goal.released)
        release += _to_release(crew, victims, rules, goal.released)
        base = _settled(crew, share)
        by_hand = _unreachable(crew, victims, leaving, rules)
        rise = 0 if leaving or by_hand else min(room, max(0, share - base))
        room -= rise
        unreachable += by_hand
        if crew.has_deployment or rise:
            new[crew.hash] = base - len(leaving) - len(by_hand) + rise
    return Setpoints(new, tuple(unreachable), tuple(release))


def _settled(crew: Crew, share: int) -> int:
    """Replicas to go on from. Those on their way are waited for, or the ReplicaSet would take others in their place;
    only what quota or admission refuses is given up when it is not wanted.
    """
    return max(len(crew.active), min(crew.setpoint, share)) if crew.missing else crew.size


def _mix(crews: tuple[Crew, ...], stable: str | None, desired: int) -> dict[str, int]:
    """What there is now, grown on the stable revision and shrunk where there is most, old ones first."""
    shares = {crew.hash: crew.setpoint for crew in crews if crew.setpoint}
    more = desired - sum(shares.values())
    if more > 0:
        known = {crew.hash for crew in crews}
        holder = stable if stable in known else max(shares, key=lambda one: shares[one], default=None)
        if holder is not None:
            shares[holder] = shares.get(holder, 0) + more
    for _ in range(-more):
        largest = max(shares, key=lambda one: shares[one])
        shares[largest] -= 1
    return shares


def _may_rise(crews: tuple[Crew, ...], goal: Goal) -> bool:
    """Recreate: nothing new before all that is old is gone."""
    if goal.strategy.strategy is not Strategy.RECREATE or goal.paused:
        return True
    return all(crew.is_gone for crew in crews if crew.hash != goal.target)


def _leaving(crew: Crew, victims: tuple[str, ...], rules: DrainRules, released: Collection[str]) -> frozenset[str]:
    """While others with the mark must stay, only what is marked apart from them and cannot pass them in rank."""
    may_go = {pod.name for pod in crew.active if pod.name in victims and rules.is_drained(pod)}
    if _must_stay(crew, may_go):
        may_go = {
            pod.name for pod in crew.active if pod.name in may_go and pod.name in released and rules.stays_unready(pod)
        }
    return frozenset(pod.name for pod in safe_prefix(crew.active, may_go, released))


def _to_release(crew: Crew, victims: tuple[str, ...], rules: DrainRules, released: Collection[str]) -> list[str]:
    """Pods that are done before others with the same mark."""
    may_go = {pod.name for pod in crew.active if pod.name in victims and rules.is_drained(pod)}
    if not _must_stay(crew, may_go):
        return []
    return [
        pod.name for pod in crew.active if pod.name in may_go and pod.name not in released and rules.stays_unready(pod)
    ]


def _must_stay(crew: Crew, may_go: Collection[str]) -> bool:
    """Whether a marked pod is not to go: its mark makes it as cheap to delete as those that are."""
    return any(is_marked(pod) and pod.name not in may_go for pod in crew.active)


def _unreachable(crew: Crew, victims: tuple[str, ...], leaving: frozenset[str], rules: DrainRules) -> list[str]:
    """What the ReplicaSet would choose in their place serves nothing, or has not for a whole deadline.

    Replicas goes down with them: it deletes that, and makes it again when there is room.
    """
    left = [pod for pod in crew.active if pod.name in victims and pod.name not in leaving and is_marked(pod)]
    return [pod.name for pod in left] if all(rules.is_overdue(pod) for pod in left) else []
