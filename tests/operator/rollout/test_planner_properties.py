"""Random worlds, random spec flips, faults and late observations: what must hold in every step, and at the end."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from octavo_operator.api import Rollout
from octavo_operator.observed import RevisionView
from octavo_operator.rollout.capacity import Headroom
from octavo_operator.rollout.drain import DrainSettings, Victim
from octavo_operator.rollout.planner import RolloutInput, RolloutPlan, plan
from octavo_operator.rollout.replica_set import STUCK_SECONDS
from octavo_operator.rollout.simulation import Physics, SimPod, World
from octavo_operator.rollout.strategy import Ongoing, Strategy, StrategyDecision, decide

SETTLE_SECONDS = 500
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)


@dataclass
class Driver:
    """Stands for reconcile: sees, decides, applies."""

    world: World
    rollout: Rollout
    target: str = "a"
    desired: int = 1
    paused: bool = False
    requested: frozenset[str] = frozenset()
    seen: list[tuple[RevisionView, ...]] = field(default_factory=list)
    last: Strategy | None = None

    def decision(self, revisions: tuple[RevisionView, ...]) -> StrategyDecision:
        held = sum(bool(pod.node) and pod.node not in self.world.lost for pod in self.world.pods)
        pods = [pod for revision in revisions for pod in revision.pods]
        room = Headroom(self.world.gpus - held, None, "no GPU is free")
        asked = [revision.replicas or 0 for revision in revisions]
        ongoing = Ongoing(self.last, self.world.now, asked) if self.last else None
        decision = decide(self.rollout, room, self.desired, pods, self.world.lost, ongoing)
        self.last = decision.strategy
        return decision

    def see(self, late: bool = False) -> RolloutInput:
        self.world.add_revision(self.target)
        self.seen.append(self.world.observe())
        revisions = self.late() if late and len(self.seen) > 1 else self.seen[-1]
        return RolloutInput(
            now=self.world.now,
            target=self.target,
            stable="a",
            desired=self.desired,
            revisions=revisions,
            strategy=self.decision(revisions),
            drain=self.world.physics.drain,
            paused=self.paused,
            requested=self.requested,
            lost_nodes=frozenset(self.world.lost),
            released=frozenset(pod.name for pod in self.world.pods if pod.is_released),
        )

    def late(self) -> tuple[RevisionView, ...]:
        """One look behind, but for what we wrote ourselves: replicas and marks."""
        before = {revision.hash: revision.pods for revision in self.seen[-2]}
        marks = {pod.name: pod for revision in self.seen[-1] for pod in revision.pods}
        return tuple(
            replace(
                revision,
                pods=tuple(
                    replace(pod, routed=marks[pod.name].routed, drain_started_at=marks[pod.name].drain_started_at)
                    if pod.name in marks
                    else pod
                    for pod in before.get(revision.hash, ())
                ),
            )
            for revision in self.seen[-1]
        )

    def act(self, late: bool = False) -> RolloutPlan:
        given = self.see(late)
        planned = plan(given)
        assert planned == plan(given), "planning twice is the same"
        before, total = len(self.world.serving()), self.world.total()
        self.world.apply(planned)
        most = given.desired + given.strategy.max_surge + self.unseen(given)
        assert self.world.total() <= max(total, most), "more pods than there is room for"
        if not late:
            assert len(self.world.serving()) >= min(before, self.promised(given)), "fewer pods serve than promised"
        return planned

    def unseen(self, given: RolloutInput) -> int:
        """Pods that somebody deleted and that we still took for good."""
        active = [pod.name for revision in given.revisions for pod in revision.pods if not pod.terminating]
        return sum(pod.deleted_at is not None and pod.name in active for pod in self.world.pods)

    def promised(self, given: RolloutInput) -> int:
        """Wanted minus maxUnavailable, without what no node takes for a long time."""
        pods = self.world.active()
        stuck = sum(not pod.node and self.world.now - pod.created >= STUCK_SECONDS for pod in pods)
        reachable = given.desired - max(0, stuck - max(0, len(pods) - given.desired))
        return reachable - given.strategy.max_unavailable

    def settle(self, seconds: int = SETTLE_SECONDS) -> RolloutPlan:
        for _ in range(seconds):
            planned = self.act()
            if planned.done:
                return planned
            self.world.tick()
        return planned

    def run(self, seconds: int) -> None:
        for _ in range(seconds):
            self.act()
            self.world.tick()


worlds = st.builds(
    Physics,
    gpus=st.dictionaries(st.sampled_from(["n1", "n2", "n3"]), st.integers(1, 3), min_size=1),
    load_seconds=st.integers(1, 6),
    stop_seconds=st.integers(1, 8),
    request_rate=st.sampled_from([0.0, 0.7, 3.0]),
    drain=st.builds(
        DrainSettings,
        unroute_seconds=st.integers(2, 4),
        timeout_seconds=st.sampled_from([5, 20]),
        victim=st.sampled_from(Victim),
    ),
    drain_works=st.booleans(),
    answers=st.booleans(),
)
rollouts = st.builds(Rollout, strategy=st.sampled_from([None, "Auto", "InPlace", "Recreate"]))
flips = st.tuples(st.just("target"), st.sampled_from("abc"))
scales = st.tuples(st.just("desired"), st.integers(0, 5))
pauses = st.tuples(st.just("paused"), st.booleans())
faults = st.tuples(st.sampled_from(["crash", "evict", "request", "lose", "break", "mend"]), st.integers(0, 9))
events = st.tuples(st.one_of(flips, scales, pauses, faults), st.integers(0, 15), st.booleans())


def befall(driver: Driver, name: str, value: Any) -> None:
    world = driver.world
    active = world.active()
    if name in ("target", "desired", "paused"):
        setattr(driver, name, value)
    elif name == "lose":
        others = [node for node in world.physics.gpus if node not in world.lost]
        if len(others) > 1:
            world.lose(others[value % len(others)])
    elif name == "break" and driver.target != "a":
        world.broken.add(driver.target)
    elif name == "mend":
        world.broken.clear()
    elif active and name in ("crash", "evict", "request"):
        pod: SimPod = active[value % len(active)]
        if name == "request":
            driver.requested |= {pod.name}
        elif name == "evict":
            world.evict(pod)
        elif pod.is_up(world.now):
            world.crash(pod)


def play(physics: Physics, rollout: Rollout, script: list[Any], seed: int) -> None:
    driver = Driver(World(physics, seed), rollout)
    driver.run(12)
    for (name, value), seconds, late in script:
        befall(driver, name, value)
        for _ in range(seconds):
            driver.act(late)
            driver.world.tick()
    driver.paused, driver.world.broken = False, set()
    driver.settle()
    planned = driver.act()
    world = driver.world
    serving = len(world.serving(driver.target))
    if driver.desired <= world.gpus:
        assert planned.done, planned
        assert len(world.active()) == serving == driver.desired
    else:
        assert serving == world.gpus, planned
    assert len(world.active(driver.target)) == len(world.active())
    assert not lost_requests(world)


def lost_requests(world: World) -> list[str]:
    """A pod that takes no drain stays ready; others that become ready beside it may then be as cheap to delete as it is.

    It still finishes its requests in its grace period: none is cut.
    """
    return [one for one in world.violations if world.physics.drain_works or "cut" in one]


@given(worlds, rollouts, st.lists(events, max_size=8), st.integers(0, 99))
@settings(max_examples=30, deadline=None, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens_the_bounds_hold_and_the_wanted_pods_come(
    physics: Physics, rollout: Rollout, script: list[Any], seed: int
) -> None:
    play(physics, rollout, script, seed)


@pytest.mark.slow
@given(worlds, rollouts, st.lists(events, max_size=15), st.integers(0, 10**6))
@settings(max_examples=1000, deadline=None, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens_the_bounds_hold_long(
    physics: Physics, rollout: Rollout, script: list[Any], seed: int
) -> None:
    play(physics, rollout, script, seed)


@given(
    physics=worlds,
    desired=st.integers(1, 4),
    spare=st.integers(0, 2),
    script=st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 25), st.booleans()), min_size=1, max_size=8),
    seed=st.integers(0, 99),
)
@settings(max_examples=40, deadline=None, phases=PHASES, suppress_health_check=[HealthCheck.too_slow])
def test_without_faults_upgrades_back_and_forth_cut_no_request_and_keep_the_promise_in_every_second(
    physics: Physics, desired: int, spare: int, script: list[tuple[str, int, bool]], seed: int
) -> None:
    physics = replace(physics, gpus={"n1": desired + spare}, answers=True)
    driver = Driver(World(physics, seed), Rollout(), desired=desired)
    driver.settle()
    promised = desired if spare else desired - 1
    for target, seconds, late in script:
        driver.target = target
        for _ in range(seconds):
            driver.act(late)
            assert len(driver.world.serving()) >= promised
            driver.world.tick()
            assert len(driver.world.serving()) >= promised
            assert driver.world.total() <= desired + min(1, spare)
    assert driver.settle().done
    assert not lost_requests(driver.world)


def test_scale_down_and_up_again_at_every_second_brings_the_draining_pods_back() -> None:
    for seconds in range(25):
        physics = Physics(gpus={"n1": 4}, request_rate=3.0)
        driver = Driver(World(physics, seed=seconds), Rollout(), desired=4)
        driver.settle()
        driver.desired = 1
        driver.run(seconds)
        driver.desired = 4
        driver.settle()
        driver.act()
        assert len(driver.world.serving()) == 4
        assert not driver.world.violations


@pytest.mark.parametrize("kind", ["Auto", "InPlace", "Recreate"])
def test_one_replica_on_one_gpu_is_upgraded(kind: Any) -> None:
    driver = Driver(World(Physics(gpus={"n1": 1}), seed=1), Rollout(strategy=kind))
    driver.settle()
    driver.target = "b"
    assert driver.settle().done
    assert not driver.world.violations


def test_a_broken_upgrade_leaves_the_old_pods_serving_until_the_target_is_taken_back() -> None:
    driver = Driver(World(Physics(gpus={"n1": 3}), seed=2), Rollout(), desired=2)
    driver.settle()
    driver.target = "b"
    driver.world.broken.add("b")
    for _ in range(200):
        driver.act()
        driver.world.tick()
        assert len(driver.world.serving("a")) == 2
    driver.target = "a"
    assert driver.settle().done
    assert not driver.world.violations
