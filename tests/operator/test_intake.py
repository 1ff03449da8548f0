"""From events and lists to keys."""

from octavo_operator.cache import Cache
from octavo_operator.intake import Intake
from octavo_operator.kube_client import ObjectList, Raw
from octavo_operator.names import Key
from octavo_operator.testing import llm_deployment, node


class Queue:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.added: list[Key] = []
        self.later: dict[Key, float] = {}

    def add(self, key: Key) -> None:
        self.added.append(key)

    def retry_at(self, key: Key, seconds: float) -> None:
        self.later[key] = seconds


def versioned(raw: Raw, version: int) -> Raw:
    raw["metadata"]["resourceVersion"] = str(version)
    return raw


def pod(version: int, **labels: str) -> Raw:
    return versioned({"kind": "Pod", "metadata": {"namespace": "n", "name": "p", "labels": labels}}, version)


def ours(version: int) -> Raw:
    return pod(version, **{"octavo.dev/deployment": "x"})


def test_news_wakes_and_what_is_known_does_not() -> None:
    queue = Queue()
    intake = Intake(Cache(), queue)
    for event in (None, "ADDED", "MODIFIED"):
        intake.happened(event, ours(1))
    intake.happened("MODIFIED", ours(2))
    assert queue.added == [("n", "x"), ("n", "x")]


def test_an_own_write_comes_back_as_no_news() -> None:
    queue, cache = Queue(), Cache()
    intake = Intake(cache, queue)
    cache.see(ours(5))  # as `kube.py` tells of a write
    intake.happened("MODIFIED", ours(5))
    assert queue.added == []


def test_a_deletion_wakes_once_and_only_if_it_was_known() -> None:
    queue = Queue()
    intake = Intake(Cache(), queue)
    intake.happened("DELETED", ours(1))
    assert queue.added == []
    intake.happened("ADDED", ours(2))
    intake.happened("DELETED", ours(3))
    intake.happened("DELETED", ours(3))
    assert queue.added == [("n", "x")] * 2


def test_a_deleted_resource_wakes_itself_so_that_it_is_forgotten() -> None:
    queue = Queue()
    intake = Intake(Cache(), queue)
    intake.happened("ADDED", versioned(llm_deployment("x", "n"), 1))
    intake.happened("DELETED", versioned(llm_deployment("x", "n"), 2))
    assert queue.added == [("n", "x")] * 2


def test_a_freed_gpu_wakes_those_that_wait_and_nobody_else() -> None:
    queue = Queue()
    intake = Intake(Cache(), queue)
    waiting = versioned(llm_deployment("waits", "n"), 1)
    waiting["status"] = {"conditions": [{"type": "Ready", "reason": "WaitingForGPU"}]}
    intake.happened("ADDED", waiting)
    intake.happened("ADDED", versioned(llm_deployment("serves", "n"), 2))
    queue.added.clear()
    theirs = pod(3) | {"spec": {"nodeName": "a"}, "status": {"phase": "Running"}}
    intake.happened("ADDED", theirs)
    assert queue.added == []
    intake.happened("MODIFIED", pod(4) | {"spec": {"nodeName": "a"}, "status": {"phase": "Succeeded"}})
    assert queue.added == [("n", "waits")]
    intake.happened("ADDED", versioned(node("new"), 5))
    assert queue.added == [("n", "waits")] * 2


def selecting(queue: Queue) -> Intake:
    """One resource selects its key Secrets, and one Secret has the label."""
    intake = Intake(Cache(), queue)
    access = {"apiKeys": {"secretSelector": {"keys": "chat"}}}
    intake.happened("ADDED", versioned(llm_deployment("x", "n", access=access), 1))
    intake.happened("ADDED", secret(2, keys="chat"))
    queue.added.clear()
    return intake


def secret(version: int, **labels: str) -> Raw:
    metadata = {"namespace": "n", "name": "team-a", "labels": labels}
    return versioned({"kind": "Secret", "type": "Opaque", "metadata": metadata, "data": {}}, version)


def test_a_secret_that_lost_its_label_wakes_those_that_selected_it() -> None:
    queue = Queue()
    intake = selecting(queue)
    intake.happened("MODIFIED", secret(3))
    assert queue.added == [("n", "x")]
    intake.happened("MODIFIED", secret(4))
    assert queue.added == [("n", "x")], "and nobody once that is known"


def test_a_lost_label_is_noticed_by_the_list_too() -> None:
    queue = Queue()
    selecting(queue).listed("Secret", ObjectList((secret(3),), "9"))
    assert queue.added == [("n", "x")]


def test_a_child_that_lost_its_label_wakes_whose_it_was() -> None:
    queue = Queue()
    intake = Intake(Cache(), queue)
    intake.happened("ADDED", ours(1))
    intake.happened("MODIFIED", pod(2))
    assert queue.added == [("n", "x")] * 2


def test_a_deletion_that_the_watch_lost_is_noticed_by_the_list() -> None:
    queue = Queue()
    intake = Intake(Cache(), queue)
    intake.happened("ADDED", ours(1))
    intake.listed("Pod", ObjectList((), "9"))
    assert queue.added == [("n", "x")] * 2


def test_everybody_is_woken_spread_over_the_time() -> None:
    queue = Queue()
    intake = Intake(Cache(), queue)
    for number in range(50):
        intake.happened("ADDED", versioned(llm_deployment(f"x{number}", "n"), number + 1))
    intake.wake_all(60.0)
    assert len(queue.later) == 50
    assert all(0.0 <= seconds <= 60.0 for seconds in queue.later.values())
    assert max(queue.later.values()) - min(queue.later.values()) > 10.0


def test_silence_is_measured_since_the_last_event() -> None:
    now = 100.0
    intake = Intake(Cache(), Queue(), lambda: now)
    now = 130.0
    assert intake.quiet_seconds == 30.0
    intake.happened("ADDED", ours(1))
    assert intake.quiet_seconds == 0.0
