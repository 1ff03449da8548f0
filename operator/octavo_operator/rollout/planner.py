"""`plan`: replicas of each revision and pods to drain, so that the wanted number serves the target revision.

Pure and level-triggered: everything is derived from what is seen now, so a plan that was half carried out, a spec that
flipped back or a pod that died leads to the next right step. Three bounds hold in every step: pods that serve
(wanted minus maxUnavailable), pods that exist (wanted plus maxSurge, terminating ones included), and no pod goes that
still answers requests before its deadline. `replicas` goes down only for pods whose mark was seen and which the
ReplicaSet is certain to take (`replica_set`), so effects may be applied in any order.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from octavo_operator.observed import PodView, RevisionView
from octavo_operator.rollout import replicas
from octavo_operator.rollout.census import Crew, take_census
from octavo_operator.rollout.drain import DrainRules, DrainSettings
from octavo_operator.rollout.narration import narrate
from octavo_operator.rollout.progress import Progress, count
from octavo_operator.rollout.replica_set import STUCK_SECONDS, is_marked
from octavo_operator.rollout.strategy import StrategyDecision
from octavo_operator.rollout.victims import Goal, choose_victims


@dataclass(frozen=True, slots=True)
class RolloutInput:
    """What one pass decides on."""

    now: float
    target: str  # hash of the revision to move to; its ControllerRevision exists
    stable: str | None  # hash of the revision to fall back to: the last to go
    desired: int  # 0 while suspended
    revisions: tuple[RevisionView, ...]
    strategy: StrategyDecision
    drain: DrainSettings = field(default_factory=DrainSettings)
    paused: bool = False  # or held after a failure: scale, but move no revision
    requested: frozenset[str] = field(
        default_factory=frozenset
    )  # pods that somebody wants replaced (octavo.dev/drain-requested)
    lost_nodes: frozenset[str] = field(default_factory=frozenset)  # gone or not ready: what terminates there is gone
    released: frozenset[str] = field(default_factory=frozenset)  # pods whose deletion cost is RELEASED_COST or less


@dataclass(frozen=True, slots=True)
class RolloutPlan:
    """What to do now, and how far it is."""

    replicas: Mapping[str, int]  # spec.replicas of each revision's Deployment that exists or shall exist
    drain: tuple[str, ...]  # pods that get the drain mark
    undrain: tuple[str, ...]  # pods that lose it
    release: tuple[str, ...]  # marked pods that get the deletion cost RELEASED_COST: they may go before others
    delete: tuple[str, ...]  # pods to delete by hand, as the ReplicaSet would choose another (rare; it replaces them)
    obsolete: tuple[str, ...]  # revisions whose Deployment has no more use
    progress: Progress
    done: bool  # exactly the wanted pods of the target serve, and there are no others
    blocked: bool  # nothing can move until there is room
    text: str  # one or two sentences for status
    recheck_seconds: float | None  # when the clock alone changes the plan


def plan(given: RolloutInput) -> RolloutPlan:
    """The next step. Planning twice on the same input gives equal plans."""
    rules = DrainRules(given.now, given.drain, given.lost_nodes)
    crews = take_census(given.revisions, rules, given.released)
    goal = Goal(
        target=given.target,
        stable=given.stable,
        desired=given.desired,
        strategy=given.strategy,
        paused=given.paused,
        requested=given.requested if given.desired else frozenset(),
        released=given.released,
        wanted=replicas.wanted(crews, given.target, given.stable, given.desired, given.paused, given.requested),
    )
    victims = choose_victims(crews, goal, rules)
    setpoints = replicas.setpoints(crews, goal, victims, rules)
    progress = count(crews, goal, rules)
    by_name = {pod.name: pod for crew in crews for pod in crew.active}
    done = progress.is_complete and not victims and setpoints.replicas.get(given.target, 0) == given.desired
    blocked = not done and not victims and _is_blocked(crews, goal)
    return RolloutPlan(
        replicas=setpoints.replicas,
        drain=tuple(name for name in victims if _needs_mark(by_name[name])),
        undrain=_to_undrain(crews, victims),
        release=setpoints.release,
        delete=setpoints.unreachable,
        obsolete=_obsolete(crews, goal),
        progress=progress,
        done=done,
        blocked=blocked,
        text=narrate(goal, progress, [by_name[name] for name in victims], rules, blocked),
        recheck_seconds=_recheck(crews, victims, rules),
    )


def _needs_mark(pod: PodView) -> bool:
    return pod.routed or not is_marked(pod)


def _to_undrain(crews: tuple[Crew, ...], victims: tuple[str, ...]) -> tuple[str, ...]:
    """Not those that the ReplicaSet is about to delete: without the mark it would take others in their place."""
    kept = [pod for crew in crews for pod in crew.active if pod.name not in victims]
    return tuple(pod.name for pod in kept if is_marked(pod) or not pod.routed)


def _obsolete(crews: tuple[Crew, ...], goal: Goal) -> tuple[str, ...]:
    kept = (goal.target, goal.stable)
    return tuple(
        crew.hash
        for crew in crews
        if crew.has_deployment and crew.hash not in kept and crew.size == 0 and not crew.leaving
    )


def _is_blocked(crews: tuple[Crew, ...], goal: Goal) -> bool:
    """Pods of the target find no room, nothing makes way for them, and no other pod of it is starting."""
    if any(crew.leaving for crew in crews):
        return False
    target = next((crew for crew in crews if crew.hash == goal.target), None)
    if target is None or target.stuck == 0:
        return False
    return all(pod.ready or not pod.node for pod in target.active)


def _recheck(crews: tuple[Crew, ...], victims: tuple[str, ...], rules: DrainRules) -> float | None:
    moments = []
    for crew in crews:
        for pod in crew.active:
            left = rules.next_change(pod) if pod.name in victims else None
            if left is not None:
                moments.append(left)
            waited = rules.now - pod.created_at
            if not pod.node and waited < STUCK_SECONDS:
                moments.append(STUCK_SECONDS - waited)
    return min(moments, default=None)
