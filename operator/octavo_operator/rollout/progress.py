"""How far a rollout is: counts for status, and the question whether anything is left to do."""

from dataclasses import dataclass

from octavo_operator.rollout.census import Crew
from octavo_operator.rollout.drain import DrainRules
from octavo_operator.rollout.replica_set import is_marked
from octavo_operator.rollout.victims import Goal


@dataclass(frozen=True, slots=True)
class Progress:
    """Pods by what they are."""

    desired: int
    pods: int  # active, of every revision
    ready: int  # ready and routed, of every revision
    updated: int  # active, of the target
    updated_ready: int  # ready and routed, of the target
    old: int  # of other revisions, terminating ones included
    draining: int  # marked
    terminating: int

    @property
    def is_complete(self) -> bool:
        """The wanted pods serve the target, and there are no others."""
        others = self.old or self.draining or self.terminating
        return not others and self.updated == self.updated_ready == self.desired


def count(crews: tuple[Crew, ...], goal: Goal, rules: DrainRules) -> Progress:
    """Pods that terminate on a lost node are not counted."""
    active = [pod for crew in crews for pod in crew.active]
    target = [pod for crew in crews if crew.hash == goal.target for pod in crew.active]
    old = [pod for crew in crews if crew.hash != goal.target for pod in (*crew.active, *crew.leaving)]
    return Progress(
        desired=goal.desired,
        pods=len(active),
        ready=sum(rules.is_serving(pod) for pod in active),
        updated=len(target),
        updated_ready=sum(rules.is_serving(pod) for pod in target),
        old=len(old),
        draining=sum(is_marked(pod) for pod in active),
        terminating=sum(len(crew.leaving) for crew in crews),
    )
