"""Workers, retries, and how they stop."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from octavo_operator.kube_client import Conflict, TooManyRequests
from octavo_operator.metrics import OperatorMetrics
from octavo_operator.names import Key
from octavo_operator.work_queue import LAST_RETRY_SECONDS, Process, WorkQueue

A, B = ("n", "a"), ("n", "b")


def make_queue(jitter: Callable[[], float] = lambda: 0.0) -> WorkQueue:
    return WorkQueue(OperatorMetrics(CollectorRegistry()), jitter=jitter)


def value(queue: WorkQueue, name: str, **labels: str) -> float:
    return queue._metrics.registry.get_sample_value(f"octavo_operator_{name}", labels) or 0.0


@contextlib.asynccontextmanager
async def working(queue: WorkQueue, process: Process, workers: int = 2) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(queue.work(process, workers))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_a_key_is_reconciled_and_asked_when_it_wants_to_be_again() -> None:
    queue, done = make_queue(), []

    async def process(key: Key) -> float | None:
        done.append(key)
        return 0.001 if len(done) < 3 else None

    async with working(queue, process):
        queue.add(A)
        await until(lambda: len(done) == 3)
        await asyncio.sleep(0.01)
    assert done == [A, A, A]
    assert value(queue, "reconcile_seconds_count") == 3


async def test_a_key_wanted_later_is_not_reconciled_before() -> None:
    queue, done = make_queue(), []

    async def process(key: Key) -> None:
        done.append(key)

    async with working(queue, process):
        queue.retry_at(A, 0.03)
        queue.add(B)
        await until(lambda: B in done)
        assert done == [B]
        await until(lambda: A in done)


async def test_a_failure_is_tried_again_counted_and_stops_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    queue, tries = make_queue(), Counter[Key]()

    async def process(key: Key) -> None:
        tries[key] += 1
        if key == A and tries[A] < 3:
            raise ValueError("no good")

    async with working(queue, process):
        queue.add(A)
        queue.add(B)
        await until(lambda: tries[A] == 3 and tries[B] == 1)
    assert value(queue, "reconcile_errors_total", reason="ValueError") == 2
    assert "no good" in caplog.text


def test_retries_wait_longer_each_time_up_to_a_minute_and_begin_anew_after_success() -> None:
    queue = make_queue(jitter=lambda: 1.0)
    delays = [queue._failed(A, ValueError()) for _ in range(30)]
    assert delays[:4] == [0.5, 1.0, 2.0, 4.0]
    assert delays[-1] == LAST_RETRY_SECONDS
    assert queue._failed(B, ValueError()) == 0.5


def test_the_server_decides_how_long_to_wait_after_too_many_requests() -> None:
    assert make_queue()._failed(A, TooManyRequests(429, "slow down", retry_after=9.0)) == 9.0


def test_a_conflict_is_no_alarm(caplog: pytest.LogCaptureFixture) -> None:
    make_queue()._failed(A, Conflict(409, "somebody else wrote"))
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


async def test_stopping_ends_reconciles_at_once_and_loses_no_key() -> None:
    queue, started, ended = make_queue(), asyncio.Event(), []

    async def hang(_: Key) -> None:
        started.set()
        await asyncio.Event().wait()

    async def process(key: Key) -> None:
        ended.append(key)

    async with working(queue, hang):
        queue.add(A)
        await started.wait()
        assert queue.oldest_seconds > 0.0
    assert queue.oldest_seconds == 0.0
    async with working(queue, process):
        await until(lambda: ended == [A])


async def test_draining_lets_what_runs_end_and_starts_nothing_more() -> None:
    queue, may_end, ended = make_queue(), asyncio.Event(), []

    async def process(key: Key) -> None:
        await may_end.wait()
        ended.append(key)

    async with working(queue, process, workers=1) as task:
        queue.add(A)
        queue.add(B)
        await until(lambda: queue.depth == 1)
        draining = asyncio.create_task(queue.drain(5.0))
        await asyncio.sleep(0.01)
        may_end.set()
        await draining
        await asyncio.wait_for(task, 5.0)
    assert ended == [A]


async def test_draining_does_not_wait_for_ever() -> None:
    queue = make_queue()

    async def hang(_: Key) -> None:
        await asyncio.Event().wait()

    async with working(queue, hang):
        queue.add(A)
        await until(lambda: queue.oldest_seconds > 0.0)
        await asyncio.wait_for(queue.drain(0.02), 5.0)


async def test_nobody_is_late_while_nobody_leads() -> None:
    queue = make_queue()
    queue.add(A)
    await asyncio.sleep(0.01)
    assert (queue.oldest_seconds, queue.depth) == (0.0, 1)


@settings(max_examples=25, deadline=None)
@given(
    adds=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=40),
    failures=st.sets(st.integers(0, 60)),
    workers=st.integers(1, 4),
)
def test_never_two_at_once_for_a_key_and_every_add_is_followed_by_a_reconcile(
    adds: list[tuple[int, int]], failures: set[int], workers: int
) -> None:
    async def story() -> None:
        queue, running, calls = make_queue(), set[Key](), 0
        last_start: dict[Key, int] = {}
        last_add: dict[Key, int] = {}
        ticks = 0

        async def process(key: Key) -> None:
            nonlocal calls, ticks
            assert key not in running
            running.add(key)
            calls, ticks = calls + 1, ticks + 1
            last_start[key] = ticks
            mine = calls
            await asyncio.sleep(0)
            running.discard(key)
            if mine in failures:
                raise Conflict(409, "again")

        async with working(queue, process, workers):
            for number, pause in adds:
                ticks += 1
                last_add["n", str(number)] = ticks
                queue.add(("n", str(number)))
                for _ in range(pause):
                    await asyncio.sleep(0)
            await until(lambda: all(last_start.get(key, 0) > at for key, at in last_add.items()))

    asyncio.run(story())
