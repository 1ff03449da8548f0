"""What a pod would take with it: whether it serves, could serve, or has nothing left to lose.

Three answers, never two: a pod with requests, a pod without, and a pod of which nothing is known, which gets the
benefit of the doubt until the deadline. Crashed, pending and loading pods protect nothing.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from octavo_operator.observed import PodView, RuntimeView
from octavo_operator.rollout.replica_set import is_marked

FRESH_SECONDS = 15.0  # a loading pod is asked every second; older than this, the answer says nothing
ROUNDING_SECONDS = 1.0  # the annotation drops parts of a second
ANSWER_SECONDS = 1.0  # between two looks for an answer that is new enough: one that says the same again wakes nobody
SILENT_SECONDS = 5.0  # between two looks at a pod that does not answer: others may tell of it, or of its node

_NOT_YET_SERVING = frozenset({"Resolving", "Downloading", "Loading", "WarmingUp", "Failed"})
_SERVING = frozenset({"Ready", "Draining"})


class Victim(StrEnum):
    """Which of several equal pods goes first."""

    LEAST_IN_FLIGHT = "LeastInFlight"
    OLDEST = "Oldest"


@dataclass(frozen=True, slots=True)
class DrainSettings:
    """`spec.rollout.drain`, with its defaults."""

    unroute_seconds: float = 10  # until every proxy has heard that the pod is off
    timeout_seconds: float = 300  # for requests to finish after that
    victim: Victim = Victim.LEAST_IN_FLIGHT


@dataclass(frozen=True, slots=True)
class DrainRules:
    """The settings, applied at one moment."""

    now: float
    settings: DrainSettings = DrainSettings()
    lost_nodes: frozenset[str] = field(default_factory=frozenset)  # gone, or not ready

    def serves_nothing(self, pod: PodView) -> bool:
        """Nothing is lost with this pod: it has not started, crashed, loads, or its node is gone."""
        if not pod.node or pod.phase == "Pending" or pod.node in self.lost_nodes:
            return True
        if pod.ready:
            return False
        if pod.container.running_since is None:
            return True
        runtime = self._fresh(pod)
        return runtime is not None and runtime.phase in _NOT_YET_SERVING

    def is_serving(self, pod: PodView) -> bool:
        """Requests reach it. Stricter than what the status counts: a lost node takes its pods with it before they say so."""
        return pod.is_active and pod.ready and pod.routed and pod.node not in self.lost_nodes

    def is_alive(self, pod: PodView) -> bool:
        """It serves, or would if it were left alone: draining, or out of the Service for a moment."""
        if not pod.is_active or self.serves_nothing(pod):
            return False
        if pod.ready or is_marked(pod):
            return True
        runtime = self._fresh(pod)
        return runtime is not None and runtime.phase in _SERVING

    def is_drained(self, pod: PodView) -> bool:
        """It may go: it is marked, and nothing is lost with it, or its requests are done, or its time is over.

        A pod that serves nothing needs no wait but still the mark: it would begin to serve in the meantime.
        """
        if pod.drain_started_at is None or pod.routed:
            return False
        if self.serves_nothing(pod) or self.now >= self.deadline(pod):
            return True
        runtime = self._last_word(pod)
        return runtime is not None and runtime.in_flight == 0 and runtime.waiting == 0

    def stays_unready(self, pod: PodView) -> bool:
        """It will not become ready in a moment: it drains, and so does not pass others in the ReplicaSet's order."""
        runtime = self._fresh(pod)
        return not pod.ready and is_marked(pod) and runtime is not None and runtime.phase == "Draining"

    def is_overdue(self, pod: PodView) -> bool:
        """It was marked, and its deadline is over."""
        return is_marked(pod) and self.now >= self.deadline(pod)

    def unrouted_at(self, pod: PodView) -> float:
        """From when on no new request reaches the marked pod."""
        return (pod.drain_started_at or self.now) + ROUNDING_SECONDS + self.settings.unroute_seconds

    def deadline(self, pod: PodView) -> float:
        """When the marked pod goes with whatever it still does."""
        return self.unrouted_at(pod) + self.settings.timeout_seconds

    def next_change(self, pod: PodView) -> float | None:
        """Seconds until a marked pod may be drained though nothing that is told of has changed."""
        if pod.drain_started_at is None:
            return None
        left = [moment - self.now for moment in (self.unrouted_at(pod), self.deadline(pod)) if moment > self.now]
        waited = self.now - self.unrouted_at(pod)
        if left and waited >= 0 and (self._last_word(pod) is None or self._fresh(pod) is None):
            left.append(ANSWER_SECONDS if waited < FRESH_SECONDS else SILENT_SECONDS)
        return min(left, default=None)

    def preference(self, pod: PodView) -> tuple[float, float, str]:
        """Sorts pods that are equal otherwise; lower goes first. A pod of unknown load goes last."""
        oldest = (pod.created_at, pod.name)
        if self.settings.victim is Victim.OLDEST:
            return (0.0, *oldest)
        runtime = pod.runtime
        return (float("inf") if runtime is None else float(runtime.in_flight + runtime.waiting), *oldest)

    def _last_word(self, pod: PodView) -> RuntimeView | None:
        """What a marked pod said since no new request reaches it; None before."""
        runtime = pod.runtime
        return runtime if runtime is not None and runtime.at >= self.unrouted_at(pod) else None

    def _fresh(self, pod: PodView) -> RuntimeView | None:
        """The runtime's answer, if it is recent and of the container that runs now."""
        runtime = pod.runtime
        if runtime is None or self.now - runtime.at > FRESH_SECONDS:
            return None
        return None if runtime.at < (pod.container.running_since or 0.0) else runtime
