"""`decide`: surge, in place or all at once, by what fits now.

Auto surges when one more pod fits than the wanted ones. What our own pods hold counts as room, so the answer does not
change when the surge pod takes the room that was found for it. Pods and nodes are seen by different watches, one a
moment after the other, so while pods come and go the strategy stays until the change is certain.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from octavo_operator.api import Rollout
from octavo_operator.observed import PodView
from octavo_operator.rollout.capacity import Headroom
from octavo_operator.rollout.replica_set import is_stuck


class Strategy(StrEnum):
    """How old pods make way."""

    SURGE = "Surge"  # new ones first
    IN_PLACE = "InPlace"  # an old one goes, then a new one comes into its place
    RECREATE = "Recreate"  # all old ones go, then the new ones come


@dataclass(frozen=True, slots=True)
class StrategyDecision:
    """The strategy, its two numbers, and why."""

    strategy: Strategy
    max_surge: int  # pods beyond the wanted number, terminating ones included
    max_unavailable: int  # wanted pods that may be missing
    reason: str

    @property
    def is_held(self) -> bool:
        """No pod may come, and none may go."""
        return self.max_surge == 0 and self.max_unavailable == 0


@dataclass(frozen=True, slots=True)
class Ongoing:
    """What the last pass chose, and what it asked for."""

    strategy: Strategy
    now: float  # of this pass
    replicas: Collection[int]  # spec.replicas of each revision's Deployment


def decide(
    rollout: Rollout,
    headroom: Headroom,
    desired: int,
    pods: Iterable[PodView],
    lost_nodes: Collection[str] = (),
    ongoing: Ongoing | None = None,
) -> StrategyDecision:
    """`pods`: all serving pods of the resource, of every revision; those on lost nodes hold no room.

    `ongoing`: what the last pass chose; None after a restart.
    """
    present = [pod for pod in pods if pod.node not in lost_nodes and not pod.has_ended]
    spare = _spare(headroom, desired, present)
    match rollout.strategy:
        case "Recreate":
            return StrategyDecision(Strategy.RECREATE, 0, max(1, desired), "spec.rollout.strategy is Recreate")
        case "InPlace":
            return _in_place(rollout, "spec.rollout.strategy is InPlace", headroom)
        case "Surge":
            surge = 1 if rollout.max_surge is None else rollout.max_surge
            return _surge(rollout, surge, _asked(surge, spare, headroom))
        case _:  # Auto, the default
            is_certain = bool(headroom.impossible)  # by the size of the nodes, whoever is on them
            in_place = (
                ongoing is not None and ongoing.strategy is Strategy.IN_PLACE and _moves(desired, present, ongoing)
            )
            if in_place and not headroom.instead:  # a node was cordoned in the middle: a surge would only ask for more
                return _in_place(rollout, "replicas are being replaced in place", headroom)
            return _auto(rollout, headroom, spare if is_certain else _steady(spare, desired, present, ongoing))


def _auto(rollout: Rollout, headroom: Headroom, spare: int) -> StrategyDecision:
    wanted = 1 if rollout.max_surge is None else rollout.max_surge
    if wanted == 0:
        return _in_place(rollout, "spec.rollout.maxSurge is 0", headroom)
    if spare >= 1:
        fits = min(wanted, spare)
        return _surge(rollout, fits, f"room for {fits} more {'replica' if fits == 1 else 'replicas'}")
    if rollout.max_unavailable == 0:
        reason = f"no room for one more replica ({headroom.reason}), and spec.rollout.maxUnavailable is 0"
        return StrategyDecision(Strategy.SURGE, wanted, 0, reason)
    if not headroom.instead:
        reason = f"no room for a new replica, not even in the place of the present ones: {headroom.reason}"
        return StrategyDecision(Strategy.SURGE, wanted, 0, reason)
    return _in_place(rollout, f"no room for one more replica: {headroom.reason}", headroom)


def _surge(rollout: Rollout, surge: int, reason: str) -> StrategyDecision:
    unavailable = 0 if rollout.max_unavailable is None else rollout.max_unavailable
    if surge == 0 and unavailable == 0:
        unavailable = 1  # with both at zero nothing could ever move
    return StrategyDecision(Strategy.SURGE, surge, unavailable, reason)


def _in_place(rollout: Rollout, reason: str, headroom: Headroom) -> StrategyDecision:
    """Nothing is taken away for a pod that would find no room all the same."""
    if not headroom.instead:
        held = f"{reason}, but a new replica has no room even in the place of the present ones: {headroom.reason}"
        return StrategyDecision(Strategy.IN_PLACE, 0, 0, held)
    return StrategyDecision(Strategy.IN_PLACE, 0, max(1, rollout.max_unavailable or 1), reason)


def _asked(surge: int, spare: int, headroom: Headroom) -> str:
    reason = "spec.rollout.strategy is Surge"
    if surge > 0 and spare < 1:
        reason += f", but there is no room for one more replica: {headroom.reason}"
    return reason


def _spare(headroom: Headroom, desired: int, pods: list[PodView]) -> int:
    """Pods that fit beyond the wanted ones: free room, and what ours hold already.

    On nodes a pod holds room once it is scheduled and until its object is gone; in a quota from the moment it exists.
    """
    spare = headroom.on_nodes + sum(bool(pod.node) for pod in pods) - desired
    if headroom.in_quota is not None:
        spare = min(spare, headroom.in_quota + len(pods) - desired)
    return spare


def _steady(spare: int, desired: int, pods: list[PodView], ongoing: Ongoing | None) -> int:
    """The spare room to go by: a surge under way ends only when a pod finds no node, and begins when nothing moves."""
    if ongoing is None:
        return spare
    moving = _moves(desired, pods, ongoing)
    rolling = moving or sum(count > 0 for count in ongoing.replicas) > 1
    if ongoing.strategy is Strategy.SURGE and rolling and not any(is_stuck(pod, ongoing.now) for pod in pods):
        return max(1, spare)
    if ongoing.strategy is Strategy.IN_PLACE and moving:
        return min(0, spare)
    return spare


def _moves(desired: int, pods: list[PodView], ongoing: Ongoing) -> bool:
    """Whether pods are on their way, in or out."""
    counts = {desired, len(pods), sum(ongoing.replicas)}
    return len(counts) > 1 or any(pod.terminating or not pod.node for pod in pods)
