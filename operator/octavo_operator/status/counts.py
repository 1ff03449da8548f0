"""`Counts`: how many pods there are, serve, and are of the revision that is rolled to."""

from dataclasses import dataclass

from octavo_operator.status.situation import Situation, serves


@dataclass(frozen=True, slots=True)
class Counts:
    """Pods by state. Ended pods count nowhere; terminating ones only as `old`, since they still hold their devices."""

    replicas: int
    ready: int
    updated: int
    updated_ready: int
    draining: int
    old: int  # of other revisions: what the target takes over from


def count(situation: Situation) -> Counts:
    """Of all revisions."""
    pods = situation.pods()
    live = [pod for pod in pods if pod.is_active]
    updated = [pod for pod in live if pod.revision == situation.target]
    return Counts(
        replicas=len(live),
        ready=sum(serves(pod) for pod in live),
        updated=len(updated),
        updated_ready=sum(serves(pod) for pod in updated),
        draining=sum(pod.drain_started_at is not None for pod in live),
        old=len(situation.observed.beside(situation.target)),
    )
