"""A small cluster in memory: ReplicaSets, a scheduler, nodes with few GPUs, pods that load, serve, crash and drain.

What `planner.plan` is tested against: it is given what is seen here, and its plan is carried out here. ReplicaSets
choose by the real order, equal pods at random. Time moves in whole seconds. Everything that must never happen is
written down in `violations`.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from octavo_operator.observed import ContainerView, PodView, RevisionView, RuntimeView
from octavo_operator.rollout.drain import DrainSettings
from octavo_operator.rollout.planner import RolloutPlan
from octavo_operator.rollout.replica_set import MARKED_COST, RELEASED_COST

BACKOFF_SECONDS = 5
GRACE_MARGIN_SECONDS = 15
EVICTION_SECONDS = 10
_REQUEST_SECONDS = (1, 12)


@dataclass(frozen=True, slots=True)
class Physics:
    """How this cluster behaves."""

    gpus: Mapping[str, int]  # by node
    load_seconds: int = 3
    stop_seconds: int = 2  # from the last request until the pod object is gone
    propagation_seconds: int = 1  # until an unrouted pod gets no more requests
    request_rate: float = 2.0  # new requests per second over all pods
    drain: DrainSettings = field(default_factory=lambda: DrainSettings(unroute_seconds=2, timeout_seconds=20))
    drain_works: bool = True  # POST /drain reaches the pods: they leave readiness
    answers: bool = True  # /status can be read


@dataclass(slots=True, eq=False)
class SimPod:
    """One pod."""

    name: str
    revision: str
    created: int
    node: str = ""
    loads_until: int = 0
    crashed_at: int | None = None
    restarts: int = 0
    marked_at: int | None = None
    is_released: bool = False
    unrouted_at: int | None = None
    deleted_at: int | None = None
    streams: list[int] = field(default_factory=list)  # seconds left of each request

    def is_up(self, now: int) -> bool:
        """Loaded, and not crashed."""
        return bool(self.node) and self.crashed_at is None and now >= self.loads_until


class World:
    """The cluster. `revisions[hash]` is the Deployment's replicas, or None without Deployment."""

    def __init__(self, physics: Physics, seed: int) -> None:
        self.physics = physics
        self.now = 1000
        self.revisions: dict[str, int | None] = {}
        self.broken: set[str] = set()  # revisions whose pods crash instead of serving
        self.lost: set[str] = set()  # nodes
        self.pods: list[SimPod] = []
        self.violations: list[str] = []
        self.served = 0
        self._random = random.Random(seed)
        self._names = iter(range(10**6))
        self._lost_at: dict[str, int] = {}

    # what the operator does

    def add_revision(self, revision: str) -> None:
        """Its ControllerRevision."""
        self.revisions.setdefault(revision, None)

    def apply(self, plan: RolloutPlan) -> None:
        """Carry a plan out, in the worst order: replicas first."""
        for revision, replicas in plan.replicas.items():
            self.revisions[revision] = replicas
        for pod in self.pods:
            if pod.name in plan.drain:
                pod.marked_at, pod.unrouted_at = self.now, self.now
            if pod.name in plan.undrain:
                pod.marked_at = pod.unrouted_at = None
                pod.is_released = False
            pod.is_released |= pod.name in plan.release
            if pod.name in plan.delete and pod.deleted_at is None:
                self._delete(pod)
        for revision in plan.obsolete:
            self.revisions[revision] = None

    def observe(self) -> tuple[RevisionView, ...]:
        """All of it, as it is now."""
        return tuple(
            RevisionView(
                hash=revision,
                number=number,
                data={},
                replicas=replicas,
                pods=tuple(self._view(pod) for pod in self.pods if pod.revision == revision),
            )
            for number, (revision, replicas) in enumerate(self.revisions.items(), start=1)
        )

    # what befalls it

    def crash(self, pod: SimPod) -> None:
        """The container ends; its requests are lost, which nobody could prevent."""
        pod.crashed_at = self.now
        pod.streams.clear()

    def lose(self, node: str) -> None:
        """The node no longer answers."""
        self.lost.add(node)
        self._lost_at[node] = self.now
        for pod in self._on(node):
            pod.streams.clear()

    def evict(self, pod: SimPod) -> None:
        """Somebody deletes the pod."""
        if pod.deleted_at is None:
            pod.deleted_at = self.now

    def tick(self) -> None:
        """One second."""
        self.now += 1
        for revision, replicas in self.revisions.items():
            self._replica_set(revision, replicas or 0)
        self._evict_lost()
        self._schedule()
        self._restart()
        self._serve()
        self._reap()

    # what can be asked of it

    @property
    def gpus(self) -> int:
        """On nodes that answer."""
        return sum(gpus for node, gpus in self.physics.gpus.items() if node not in self.lost)

    def active(self, revision: str | None = None) -> list[SimPod]:
        """Pods that are not terminating."""
        return [pod for pod in self.pods if pod.deleted_at is None and revision in (None, pod.revision)]

    def serving(self, revision: str | None = None) -> list[SimPod]:
        """Pods that new requests reach."""
        return [pod for pod in self.active(revision) if self._is_ready(pod) and pod.unrouted_at is None]

    def total(self) -> int:
        """Pods that hold room or are asked for, without those on lost nodes that terminate."""
        asked = sum(max(replicas or 0, len(self.active(one))) for one, replicas in self.revisions.items())
        return asked + sum(pod.deleted_at is not None and pod.node not in self.lost for pod in self.pods)

    # the cluster's own parts

    def _replica_set(self, revision: str, replicas: int) -> None:
        active = self.active(revision)
        for _ in range(replicas - len(active)):
            self.pods.append(SimPod(f"{revision}-{next(self._names)}", revision, self.now))
        active.sort(key=lambda pod: (*self._rank(pod), self._random.random()))
        for pod in active[: max(0, len(active) - replicas)]:
            self._delete(pod)

    def _rank(self, pod: SimPod) -> tuple[bool, bool, bool, int]:
        cost = RELEASED_COST if pod.is_released else 0 if pod.marked_at is None else MARKED_COST
        return bool(pod.node), self._is_running(pod), self._is_ready(pod), cost

    def _delete(self, pod: SimPod) -> None:
        pod.deleted_at = self.now
        if not pod.streams:
            return
        drain = self.physics.drain
        allowed = None if pod.marked_at is None else pod.marked_at + drain.unroute_seconds + drain.timeout_seconds
        if allowed is None or self.now < allowed:
            self.violations.append(f"{self.now}: {pod.name} deleted with {len(pod.streams)} requests")

    def _evict_lost(self) -> None:
        for pod in self.active():
            if pod.node in self.lost and self.now - self._lost_at[pod.node] >= EVICTION_SECONDS:
                pod.deleted_at = self.now

    def _schedule(self) -> None:
        for pod in self.active():
            free = [node for node, gpus in self.physics.gpus.items() if len(self._on(node)) < gpus]
            free = [node for node in free if node not in self.lost]
            if not pod.node and free:
                pod.node = self._random.choice(free)
                pod.loads_until = self.now + 1 + self.physics.load_seconds

    def _restart(self) -> None:
        for pod in self.active():
            if pod.revision in self.broken and pod.is_up(self.now) and pod.node not in self.lost:
                self.crash(pod)
            elif pod.crashed_at is not None and self.now - pod.crashed_at >= BACKOFF_SECONDS:
                pod.crashed_at = None
                pod.restarts += 1
                pod.loads_until = self.now + self.physics.load_seconds

    def _serve(self) -> None:
        for pod in self.pods:
            pod.streams = [left - 1 for left in pod.streams if left > 1]
        reached = list(self._reached())
        number = int(self.physics.request_rate)
        number += self._random.random() < self.physics.request_rate - number
        for _ in range(number if reached else 0):
            self._random.choice(reached).streams.append(self._random.randint(*_REQUEST_SECONDS))
            self.served += 1

    def _reached(self) -> Iterator[SimPod]:
        """Routed pods, and those of which the proxies have not heard yet that they are not."""
        for pod in self.active():
            routed = pod.unrouted_at is None or self.now - pod.unrouted_at < self.physics.propagation_seconds
            if routed and pod.is_up(self.now) and pod.node not in self.lost:
                yield pod

    def _reap(self) -> None:
        """Terminating pods go when their requests are done, or their grace is over."""
        drain = self.physics.drain
        grace = drain.unroute_seconds + drain.timeout_seconds + GRACE_MARGIN_SECONDS
        for pod in [pod for pod in self.pods if pod.deleted_at is not None and pod.node not in self.lost]:
            waited = self.now - (pod.deleted_at or 0)
            if waited >= grace and pod.streams:
                self.violations.append(f"{self.now}: {pod.name} cut {len(pod.streams)} requests")
            if not pod.node or waited >= grace or (not pod.streams and waited >= self.physics.stop_seconds):
                self.pods.remove(pod)

    def _on(self, node: str) -> list[SimPod]:
        return [pod for pod in self.pods if pod.node == node]

    def _is_running(self, pod: SimPod) -> bool:
        """The pod's phase: its container has started once."""
        return bool(pod.node) and (self.now >= pod.loads_until - self.physics.load_seconds or pod.restarts > 0)

    def _is_ready(self, pod: SimPod) -> bool:
        drains = pod.marked_at is not None and self.physics.drain_works
        return pod.is_up(self.now) and pod.node not in self.lost and not drains

    def _view(self, pod: SimPod) -> PodView:
        running = self._is_running(pod)
        up = pod.is_up(self.now)
        is_old = self.now - pod.created > 1
        return PodView(
            name=pod.name,
            uid=pod.name,
            revision=pod.revision,
            created_at=pod.created,
            phase="Running" if running else "Pending",
            ready=self._is_ready(pod),
            routed=pod.unrouted_at is None,
            drain_started_at=pod.marked_at,
            terminating=pod.deleted_at is not None,
            node=pod.node,
            scheduled_reason="Unschedulable" if not pod.node and is_old else "",
            container=ContainerView(
                running_since=pod.loads_until - self.physics.load_seconds
                if running and pod.crashed_at is None
                else None,
                restarts=pod.restarts,
            ),
            runtime=self._runtime(pod, up) if running and pod.crashed_at is None else None,
        )

    def _runtime(self, pod: SimPod, up: bool) -> RuntimeView | None:
        if not self.physics.answers or pod.node in self.lost:
            return None
        drains = pod.marked_at is not None and self.physics.drain_works
        phase = "Loading" if not up else "Draining" if drains else "Ready"
        return RuntimeView(at=self.now, phase=phase, in_flight=len(pod.streams))
