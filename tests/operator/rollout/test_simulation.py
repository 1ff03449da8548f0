"""The small cluster behaves like a real one where it matters, or the planner is tested against nothing."""

from octavo_operator.rollout.drain import DrainSettings
from octavo_operator.rollout.planner import RolloutPlan
from octavo_operator.rollout.progress import Progress
from octavo_operator.rollout.simulation import Physics, World


def asked(replicas: dict[str, int], **fields: tuple[str, ...]) -> RolloutPlan:
    nothing: dict[str, tuple[str, ...]] = dict.fromkeys(("drain", "undrain", "release", "delete", "obsolete"), ())
    progress = Progress(0, 0, 0, 0, 0, 0, 0, 0)
    return RolloutPlan(
        replicas=replicas,
        progress=progress,
        done=False,
        blocked=False,
        text="",
        recheck_seconds=None,
        **(nothing | fields),
    )


def world(replicas: int = 1, gpus: int = 4, seconds: int = 10, **fields: object) -> World:
    made = World(Physics(gpus={"n1": gpus}, **fields), seed=1)
    made.add_revision("a")
    made.apply(asked({"a": replicas}))
    run(made, seconds)
    return made


def run(made: World, seconds: int) -> None:
    for _ in range(seconds):
        made.tick()


def test_pods_come_load_and_serve() -> None:
    made = world(2, seconds=3)
    assert len(made.active()) == 2
    assert made.serving() == []
    run(made, 3)
    assert len(made.serving()) == 2
    run(made, 10)
    assert made.served > 0


def test_a_gpu_holds_one_pod_until_its_object_is_gone() -> None:
    made = world(1, gpus=1, stop_seconds=5, request_rate=0.0)
    made.evict(made.pods[0])
    run(made, 3)
    assert [bool(pod.node) for pod in made.pods] == [True, False]
    run(made, 4)
    assert [bool(pod.node) for pod in made.pods] == [True]


def test_a_marked_pod_is_deleted_before_an_equal_one() -> None:
    for seed in range(5):
        made = World(Physics(gpus={"n1": 4}, drain_works=False, request_rate=0.0), seed)
        made.add_revision("a")
        made.apply(asked({"a": 3}))
        run(made, 10)
        marked = made.pods[1]
        made.apply(asked({"a": 3}, drain=(marked.name,)))
        made.apply(asked({"a": 2}))
        run(made, 1)
        assert marked.deleted_at is not None
        assert len(made.active()) == 2


def test_deleting_a_pod_with_requests_before_its_deadline_is_a_violation() -> None:
    made = world(1, request_rate=3.0)
    made.apply(asked({"a": 0}))
    run(made, 1)
    assert "deleted with" in made.violations[0]


def test_a_drained_pod_gets_no_new_requests_and_goes_without_violation() -> None:
    made = world(1, request_rate=3.0)
    made.apply(asked({"a": 1}, drain=(made.pods[0].name,)))
    run(made, 15)
    assert made.pods[0].streams == []
    made.apply(asked({"a": 0}))
    run(made, 5)
    assert made.pods == []
    assert made.violations == []


def test_a_pod_that_never_ends_is_cut_by_its_grace_and_that_is_a_violation() -> None:
    made = world(1, request_rate=0.0, drain=DrainSettings(1, 2))
    made.pods[0].streams = [10**6]
    made.evict(made.pods[0])
    run(made, 30)
    assert "cut 1 requests" in made.violations[0]


def test_a_lost_node_keeps_its_pods_terminating_and_others_take_their_place() -> None:
    made = World(Physics(gpus={"n1": 1, "n2": 1}), seed=3)
    made.add_revision("a")
    made.apply(asked({"a": 1}))
    run(made, 8)
    made.lose(made.pods[0].node)
    run(made, 30)
    assert len(made.serving()) == 1
    assert len(made.pods) == 2
    assert made.total() == 1


def test_a_broken_revision_crashes_again_and_again() -> None:
    made = world(1, seconds=0)
    made.broken.add("a")
    run(made, 40)
    assert made.pods[0].restarts >= 3
    assert made.serving() == []
