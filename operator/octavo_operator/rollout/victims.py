"""`choose_victims`: the pods that shall go, few enough at a time that the others serve what was promised.

Derived afresh in each pass. Draining pods come first, so they stay chosen; when the promise no longer holds (another
pod died, the number went up), the last ones chosen are no longer in the set, and so are taken back.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from octavo_operator.observed import PodView
from octavo_operator.rollout.census import Crew
from octavo_operator.rollout.drain import DrainRules
from octavo_operator.rollout.replica_set import is_marked, rank
from octavo_operator.rollout.strategy import StrategyDecision


@dataclass(frozen=True, slots=True)
class Goal:
    """Where the rollout shall get to, and by which rules."""

    target: str
    stable: str | None
    desired: int
    strategy: StrategyDecision
    paused: bool
    requested: frozenset[str]  # names of pods to replace
    wanted: Mapping[str, int]  # replicas that each revision shall end with in this pass
    released: frozenset[str] = frozenset()  # names of pods whose second mark was seen

    @property
    def max_pods(self) -> int:
        """Pods that may exist, terminating ones included."""
        return self.desired + self.strategy.max_surge if self.desired else 0


def choose_victims(crews: tuple[Crew, ...], goal: Goal, rules: DrainRules) -> tuple[str, ...]:
    """Names, the first to go first."""
    budget = _Budget.of(crews, goal, rules)
    candidates = [*_replaced(crews, goal, rules), *_surplus(crews, goal, rules)]
    return tuple(pod.name for pod in candidates if budget.take(pod))


def _replaced(crews: tuple[Crew, ...], goal: Goal, rules: DrainRules) -> list[PodView]:
    """Pods of other revisions, and pods that somebody wants replaced: unavailable ones first, the stable revision last."""
    found: list[tuple[tuple[object, ...], PodView]] = []
    for crew in crews:
        is_old = not goal.paused and goal.wanted.get(crew.hash, 0) == 0
        for pod in crew.active:
            if is_old or pod.name in goal.requested:
                key = (
                    not rules.serves_nothing(pod),
                    not is_marked(pod),
                    rules.is_serving(pod),
                    pod.name not in goal.requested,
                    crew.hash == goal.stable,
                    rules.preference(pod),
                )
                found.append((key, pod))
    return [pod for _, pod in sorted(found, key=lambda item: item[0])]


def _surplus(crews: tuple[Crew, ...], goal: Goal, rules: DrainRules) -> list[PodView]:
    """Pods beyond the wanted number of their revision, in the order in which its ReplicaSet would take them."""
    found = []
    for crew in crews:
        wanted = goal.wanted.get(crew.hash, 0)
        if wanted == 0 and not goal.paused:
            continue  # all of it is replaced
        kept = sorted(
            (pod for pod in crew.active if pod.name not in goal.requested),
            key=lambda pod: (rank(pod), pod.routed, rules.preference(pod)),
        )
        requested = len(crew.active) - len(kept)
        found += kept[: max(0, len(kept) - (wanted - requested))]
    return found


@dataclass(slots=True)
class _Budget:
    """How many pods may still be taken out of service."""

    rules: DrainRules
    alive: int  # pods that may go of those that serve or could
    serving: int  # pods that may go of those that requests reach

    @classmethod
    def of(cls, crews: tuple[Crew, ...], goal: Goal, rules: DrainRules) -> "_Budget":
        active = [pod for crew in crews for pod in crew.active]
        promised = _promised(crews, goal)
        return cls(
            rules=rules,
            alive=sum(rules.is_alive(pod) for pod in active) - promised,
            serving=sum(rules.is_serving(pod) for pod in active) - promised,
        )

    def take(self, pod: PodView) -> bool:
        """Whether the pod may go too."""
        rules = self.rules
        if rules.serves_nothing(pod) or not rules.is_alive(pod):
            return True
        serving = rules.is_serving(pod)
        if self.alive < 1 or (serving and self.serving < 1):
            return False
        self.alive -= 1
        self.serving -= serving
        return True


def _promised(crews: tuple[Crew, ...], goal: Goal) -> int:
    """Pods that must go on serving.

    maxUnavailable is used only to make room for pods that have none yet: once all new pods have their place, the old
    ones serve until the new ones do. Pods that no node takes are not counted on: a full cluster may still roll.
    """
    makes_room = any(
        crew.size < goal.wanted.get(crew.hash, 0) or any(not pod.node for pod in crew.active)
        for crew in crews
        if goal.wanted.get(crew.hash, 0)
    )
    if not makes_room:
        return goal.desired
    surplus = max(0, sum(crew.size for crew in crews) - goal.desired)
    reachable = goal.desired - max(0, sum(crew.stuck for crew in crews) - surplus)
    return max(0, reachable - goal.strategy.max_unavailable)
