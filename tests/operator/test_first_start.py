"""A start goes forward: nothing in what a person watches comes twice, and nothing speaks of a rollout.

Walks the pure functions of a pass over the states that a cluster is seen in, one after the other.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace as replaced

from octavo_operator.api import LLMDeployment, parse
from octavo_operator.desired.downloader_job import downloader_name
from octavo_operator.effective import RenderDefaults
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.resolved import ResolvedModel
from octavo_operator.observed import (
    ClusterView,
    ContainerView,
    EventView,
    JobView,
    NodeView,
    Observed,
    PodView,
    RevisionView,
    RuntimeView,
)
from octavo_operator.preparing import prepare
from octavo_operator.reasons import Reason
from octavo_operator.replica_count import Wanted
from octavo_operator.rolling import roll
from octavo_operator.situations import situation_of
from octavo_operator.status.judge import judge
from octavo_operator.status.report import report
from octavo_operator.testing import llm_deployment
from octavo_operator.weights import Weights

DEFAULTS = RenderDefaults(image="octavo/runtime:1", operator_version="1.0")
START = 1_800_000_000.0
NODE = NodeView("node-1", True, {}, (), {"cpu": 16000, "memory": 64 << 30, "pods": 110}, {})
MODEL = ResolvedModel(kind="hf", name="org/smollm", commit="0" * 40)
SHARED = {"mode": "SharedPVC", "sharedPVC": {"size": "10Gi"}}
BUSY_NODE = "0/1 nodes are available: 1 Insufficient memory."
RUNNING = ContainerView(running_since=START)
PULLING = EventView("Pulling", 'Pulling image "octavo/runtime:1"', START + 1)
MENDED = {"engine": {"device": "cpu", "maxNumSeqs": 16}}
TIMED_OUT = ContainerView("ErrImagePull", "dial tcp 10.0.0.9:443: i/o timeout")


def pod(number: int, **changes: Any) -> PodView:
    """Made a moment ago; nobody has looked at it."""
    view = PodView(f"smollm-{number}", f"uid-{number}", "", START, "Pending", False, True, None, False)
    return replace(view, **changes)


def answering(number: int, phase: str, done: int | None = None, *, ready: bool = False) -> PodView:
    progress = None if done is None else {"done_bytes": done, "total_bytes": 100}
    runtime = RuntimeView(START + 9, phase, status={"progress": progress})
    ready_at = START + 9 if ready else None
    return replace(running(number), runtime=runtime, ready=ready, ready_at=ready_at)


def running(number: int) -> PodView:
    return pod(number, phase="Running", node="node-1", scheduled_at=START, container=RUNNING)


def life(number: int, *, downloads: bool) -> list[PodView]:
    """A pod at each step of its start."""
    placed = pod(number, node="node-1", scheduled_at=START, container=ContainerView("ContainerCreating"))
    fetching = [answering(number, "Downloading", done) for done in (0, 50)] if downloads else []
    return [
        pod(number),
        pod(number, scheduled_message=BUSY_NODE),
        placed,
        replace(placed, events=(PULLING,)),
        replace(placed, container=TIMED_OUT),
        replace(placed, events=(PULLING, EventView("Pulled", "Pulled", START + 2))),
        running(number),
        answering(number, "Resolving"),
        *fetching,
        *(answering(number, "Loading", done) for done in (None, 10, 90)),
        answering(number, "WarmingUp"),
        answering(number, "Ready"),
        answering(number, "Ready", ready=True),
    ]


@dataclass
class Walk:
    """Passes over one resource: what a pass stores, the next one sees."""

    deployment: LLMDeployment
    now: float = START
    revisions: tuple[RevisionView, ...] = ()

    def change(self, **spec: Any) -> None:
        """Another spec; its status stays."""
        self.deployment = replaced(deployment(**spec), status=self.deployment.status)

    def see(
        self, *crews: Iterable[PodView], job: JobView | None = None, resolution: Any = MODEL, lag: bool = False
    ) -> dict[str, Any]:
        """One pass -> the status that it writes. `crews`: the pods of each revision, the oldest revision first.
        `lag`: what the pass stores is not in the cache for the next one.
        """
        self.now += 1
        observed = Observed(
            now=self.now,
            deployment=self.deployment,
            cluster=ClusterView(nodes=(NODE,)),
            revisions=tuple(manned(*each) for each in zip_longest(self.revisions, crews)),
            downloads=(job,) if job is not None else (),
        )
        spec = self.deployment.spec
        desired = 0 if spec.suspend else 1 if spec.replicas is None else spec.replicas
        prepared = prepare(observed, resolution, DEFAULTS)
        rolling = roll(observed, prepared, desired)
        situation = situation_of(rolling, prepared, Wanted(desired), ())
        status = report(situation, judge(situation))
        self.deployment = replaced(self.deployment, status=json.loads(json.dumps(status)))
        if not lag:
            asked, stored = rolling.plan.replicas if rolling.plan else {}, rolling.observed.revisions
            self.revisions = tuple(replace(view, replicas=asked.get(view.hash, view.replicas)) for view in stored)
        return status


def serving(number: int) -> PodView:
    return answering(number, "Ready", ready=True)


def manned(view: RevisionView, pods: Iterable[PodView] | None) -> RevisionView:
    return replace(view, pods=tuple(replace(pod, revision=view.hash) for pod in pods or ()))


def deployment(**spec: Any) -> LLMDeployment:
    return parse(llm_deployment(**{"model": {"uri": "hf://org/smollm"}, "engine": {"device": "cpu"}, **spec}))


def walk(**spec: Any) -> Walk:
    return Walk(deployment(**spec))


def phases(statuses: Iterable[dict[str, Any]]) -> list[str]:
    """As `kubectl get llmd -w` shows them: each once, until it changes."""
    return [phase for phase, _ in groupby(status["phase"] for status in statuses)]


def holding(status: dict[str, Any]) -> set[str]:
    """The conditions that are true, of those that say how it goes."""
    kinds = {"Ready", "Reconciling", "Stalled", "Available", "Degraded"}
    return {each["type"] for each in status["conditions"] if each["status"] == "True"} & kinds


def alone(given: Walk, *, downloads: bool = False) -> Iterator[dict[str, Any]]:
    """A replica from nothing until it serves."""
    yield given.see(resolution=None)
    yield given.see(lag=True)  # the revision is stored, and not seen yet
    yield given.see()
    yield given.see()  # its Deployment is there, its pod is not
    for view in life(1, downloads=downloads):
        yield given.see([view])


@pytest.mark.parametrize(
    ("downloads", "expected"),
    [
        (False, ["Resolving", "Scheduling", "Loading", "Ready"]),
        (True, ["Resolving", "Scheduling", "Downloading", "Loading", "Ready"]),
    ],
)
def test_the_phase_of_a_first_start_goes_forward(downloads: bool, expected: list[str]) -> None:
    assert phases(alone(walk(), downloads=downloads)) == expected


def test_a_hub_that_stumbles_is_still_the_look_up() -> None:
    given = walk()
    problems = [ModelProblem(reason, "It is so.") for reason in (Reason.HUB_UNREACHABLE, Reason.RECONCILE_FAILED)]
    statuses = [given.see(resolution=None), *(given.see(resolution=problem) for problem in problems)]
    assert phases([*statuses, *alone(given, downloads=False)]) == ["Resolving", "Scheduling", "Loading", "Ready"]


def test_a_claim_is_filled_before_pods_are_placed_whatever_the_downloader_waits_for() -> None:
    given = walk(cache=SHARED)
    name = downloader_name(given.deployment, Weights(commit=MODEL.commit))
    job = JobView(name, 1, 0, 0, complete=False, gave_up=False)
    statuses = [given.see(resolution=None), given.see(), given.see()]
    starting = [(), *((view,) for view in life(9, downloads=True)[:-1])]
    statuses += [given.see(job=replace(job, pods=pods)) for pods in starting]
    filled = replace(job, complete=True)
    statuses.append(given.see(job=filled))
    statuses += [given.see([view], job=filled) for view in life(1, downloads=False)]
    assert phases(statuses) == ["Resolving", "Downloading", "Scheduling", "Loading", "Ready"]


@given(turns=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 16)), max_size=12), downloads=st.booleans())
@example(turns=[(0, 16)], downloads=False)  # the second is not made before the first serves
@example(turns=[(1, 2), (0, 16)], downloads=False)  # it waits for a node, as with an autoscaler of nodes
def test_with_several_replicas_the_slowest_decides(turns: list[tuple[int, int]], downloads: bool) -> None:
    given, lives = walk(replicas=3), [life(number, downloads=downloads) for number in (1, 2, 3)]
    statuses = [given.see(resolution=None), given.see()]
    at = [-1, -1, -1]  # which step each pod is at; -1: not made
    for number in [number for number, steps in [*turns, (0, 16), (1, 16), (2, 16)] for _ in range(steps)]:
        if at[number] + 1 < len(lives[number]):
            at[number] += 1
            statuses.append(given.see([each[step] for each, step in zip(lives, at, strict=True) if step >= 0]))
    seen = phases(statuses)
    assert len(seen) == len(set(seen)), seen
    assert (seen[0], seen[-1]) == ("Resolving", "Ready")


def test_a_replica_without_room_is_a_step_of_the_start_until_the_progress_deadline() -> None:
    given = walk(replicas=2)
    list(alone(given))
    crew = [serving(1), pod(2, scheduled_message=BUSY_NODE)]
    waiting = given.see(crew)
    given.now += 10_000
    late = given.see(crew)
    told = [(status["phase"], status["reason"], holding(status)) for status in (waiting, late)]
    assert told == [
        ("Scheduling", "WaitingForNode", {"Available", "Reconciling"}),
        ("Degraded", "WaitingForNode", {"Available", "Degraded", "Stalled"}),
    ]


def test_a_spec_that_is_mended_before_it_ever_served_is_another_start() -> None:
    given, old, later = walk(), life(1, downloads=False)[:-1], life(2, downloads=False)
    begun = [given.see(resolution=None), given.see(), *(given.see([view]) for view in old)]
    given.change(**MENDED)
    leaving = replace(old[-1], terminating=True)
    mended = [given.see([old[-1]], resolution=None), *(given.see([view]) for view in (old[-1], leaving, leaving))]
    mended += [given.see([], [view]) for view in later]
    assert phases(begun) == ["Resolving", "Scheduling", "Loading"]
    assert phases(mended) == ["Resolving", "Scheduling", "Loading", "Ready"]


def resumed() -> list[dict[str, Any]]:
    """Served, suspended, changed meanwhile, and resumed; the object of an ended pod lingers all the time."""
    given, ended = walk(), pod(9, phase="Failed", status_reason="Evicted")
    list(alone(given))
    given.change(suspend=True, **MENDED)
    statuses = [given.see([ended], resolution=None), given.see([ended])]
    given.change(**MENDED)
    statuses += [given.see([ended]), given.see([ended])]
    return statuses + [given.see([ended], [view]) for view in life(2, downloads=False)]


def test_what_was_changed_while_suspended_starts_as_at_first() -> None:
    assert phases(resumed()) == ["Suspended", "Scheduling", "Loading", "Ready"]


def test_a_start_that_was_paused_goes_on_from_there() -> None:
    given = walk(rollout={"paused": True})
    statuses = [given.see(resolution=None), given.see(), given.see()]
    assert statuses[-1]["reason"] == "Paused"
    given.change()
    statuses += [given.see(), *(given.see([view]) for view in life(1, downloads=False))]
    assert phases(statuses) == ["Resolving", "Scheduling", "Loading", "Ready"]


def test_a_model_that_serves_is_scaling_until_the_wanted_number_serves_up_and_down() -> None:
    given = walk()
    list(alone(given))
    given.change(replicas=2)
    up = [given.see([serving(1)]), *(given.see([serving(1), view]) for view in life(2, downloads=False)[2:])]
    given.change(replicas=1)
    marked = replace(serving(2), routed=False, drain_started_at=START + 99)
    leaving = [serving(2), marked, replace(marked, terminating=True)]
    down = [*(given.see([serving(1), view]) for view in leaving), given.see([serving(1)])]
    assert phases(up) == ["Scaling", "Ready"]
    assert phases(down) == ["Scaling", "Ready"]


def test_a_rollout_in_place_is_rolling_until_it_is_ready() -> None:
    """Two replicas, one after the other: when the last old pod goes, the second new one is not even made."""
    given = walk(replicas=2)
    list(alone(given))
    assert given.see([serving(1), serving(2)])["phase"] == "Ready"
    given.change(replicas=2, **MENDED, rollout={"strategy": "InPlace"})
    statuses = [given.see([serving(1), serving(2)])]
    statuses += [given.see([serving(1)], [view]) for view in life(3, downloads=False)[2:]]
    statuses += [given.see([], [serving(3)])]
    statuses += [given.see([], [serving(3), view]) for view in life(4, downloads=False)[2:]]
    assert phases(statuses) == ["Rolling", "Ready"]


def test_what_starts_without_old_pods_is_not_told_as_a_rollout() -> None:
    for status in [*alone(walk(replicas=2), downloads=True), *resumed()]:
        for condition in status["conditions"]:
            assert condition["reason"] not in {"RollingOut", "Scaling"}
            assert "rollout" not in condition["message"].lower()
            assert "new revision" not in condition["message"]


def test_a_resolved_model_stays_resolved_while_its_pod_finds_the_files() -> None:
    told = [
        condition["status"]
        for status in alone(walk(), downloads=False)
        for condition in status["conditions"]
        if condition["type"] == "ModelResolved"
    ]
    assert [status for status, _ in groupby(told)] == ["False", "True"]


def test_what_really_goes_back_is_told_as_such() -> None:
    given = walk()
    assert phases(alone(given, downloads=False))[-1] == "Ready"
    statuses = [given.see([view]) for view in life(2, downloads=False)]  # the first pod was deleted
    assert phases(statuses) == ["Scheduling", "Loading", "Ready"]
