"""Which pod a ReplicaSet deletes when its `replicas` goes down: the order of its controller, as far as we steer it.

A pod that is deleted by hand is replaced at once, so a pod goes by lowering `replicas`, and only when this order says
that the ReplicaSet will take the right one. A pod without the mark never is: it may be loading now and ready in a moment.
"""

from collections.abc import Collection, Iterable
from itertools import takewhile

from octavo_operator.observed import PodView

STUCK_SECONDS = 30.0  # a pod that no node takes for so long is not just waiting for the scheduler
MARKED_COST = -1000  # controller.kubernetes.io/pod-deletion-cost of a pod with the drain mark
RELEASED_COST = -2000  # of a marked pod that may go before others with the mark

_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}

Rank = tuple[bool, int, bool, int]


def is_stuck(pod: PodView, now: float) -> bool:
    """No node takes it, and not just since a moment ago."""
    return not pod.node and pod.scheduled_reason == "Unschedulable" and now - pod.created_at >= STUCK_SECONDS


def is_marked(pod: PodView) -> bool:
    """Whether the pod carries the drain mark."""
    return pod.drain_started_at is not None


def rank(pod: PodView, released: Collection[str] = ()) -> Rank:
    """Lower goes first. Equal ranks are told apart by age and neighbours, which we do not rely on."""
    cost = RELEASED_COST if pod.name in released else MARKED_COST if is_marked(pod) else 0
    return bool(pod.node), _PHASES.get(pod.phase, 1), pod.ready, cost


def deletion_order(pods: Iterable[PodView], released: Collection[str] = ()) -> list[PodView]:
    """Active pods, first to go first; equal ones by name."""
    return sorted((pod for pod in pods if pod.is_active), key=lambda pod: (rank(pod, released), pod.name))


def safe_prefix(pods: Iterable[PodView], may_go: Collection[str], released: Collection[str] = ()) -> list[PodView]:
    """The pods that go for certain when `replicas` is lowered by their number, each of them in `may_go` (names).

    Of equal rank a pod that must stay comes first: the ReplicaSet could take it.
    """
    active = [pod for pod in pods if pod.is_active]
    ordered = sorted(active, key=lambda pod: (rank(pod, released), pod.name in may_go, pod.name))
    return list(takewhile(lambda pod: pod.name in may_go, ordered))
