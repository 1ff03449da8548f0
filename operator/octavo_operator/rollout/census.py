"""The pods of each revision, counted as their ReplicaSet counts them: what is there, what is about to come and to go.

Given the revisions as they were seen; gives frozen facts that victims and replicas are chosen from.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from octavo_operator.observed import PodView, RevisionView
from octavo_operator.rollout.drain import DrainRules
from octavo_operator.rollout.replica_set import deletion_order, is_stuck


@dataclass(frozen=True, slots=True)
class Crew:
    """One revision's pods."""

    hash: str
    setpoint: int  # the Deployment's replicas; 0 without Deployment
    has_deployment: bool
    active: tuple[PodView, ...]  # in the ReplicaSet's order of deletion, without those that it is about to delete
    leaving: tuple[PodView, ...]  # terminating, or about to be: lost, but they still hold their room
    missing: int  # pods that quota or admission do not let come into being
    stuck: int  # those, and pods that no node takes

    @property
    def size(self) -> int:
        """Pods that are there or about to come, without those that terminate."""
        return max(self.setpoint, len(self.active))

    @property
    def is_gone(self) -> bool:
        """Neither pods nor the wish for any."""
        return self.size == 0 and not self.leaving


def take_census(
    revisions: Iterable[RevisionView], rules: DrainRules, released: frozenset[str] = frozenset()
) -> tuple[Crew, ...]:
    """By rising number, as the revisions came."""
    return tuple(_crew(revision, rules, released) for revision in revisions)


def in_all(crews: Sequence[Crew]) -> int:
    """Pods that hold room or have been asked for."""
    return sum(crew.size + len(crew.leaving) for crew in crews)


def _crew(revision: RevisionView, rules: DrainRules, released: frozenset[str]) -> Crew:
    replicas = revision.replicas or 0
    counted = deletion_order(revision.pods, released)
    surplus = max(0, len(counted) - replicas)  # the ReplicaSet takes them at any moment: too late to want them back
    active = counted[surplus:]
    terminating = [pod for pod in revision.pods if pod.terminating and pod.node not in rules.lost_nodes]
    missing = max(0, replicas - len(active)) if revision.create_error else 0
    return Crew(
        hash=revision.hash,
        setpoint=replicas,
        has_deployment=revision.replicas is not None,
        active=tuple(active),
        leaving=(*counted[:surplus], *terminating),
        missing=missing,
        stuck=missing + sum(is_stuck(pod, rules.now) for pod in active),
    )
