"""kopf in a thread of its own, or rather whatever watches."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from octavo_operator import watching
from octavo_operator.handlers import Listener
from octavo_operator.kube_client import Raw
from octavo_operator.watching import Watch, Watching


@contextlib.asynccontextmanager
async def running(watch: Watch, heard: list[str | None], recovered: list[int]) -> AsyncIterator[asyncio.Task[None]]:
    home = threading.get_ident()

    def listen(event: str | None, _: Raw) -> None:
        assert threading.get_ident() == home
        heard.append(event)

    async def recover() -> None:
        recovered.append(len(heard))

    task = asyncio.create_task(Watching(listen, recover, watch).run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


async def wait_for_flag(stop: threading.Event) -> None:
    await asyncio.get_running_loop().run_in_executor(None, stop.wait)


async def test_events_come_in_order_to_the_loop_that_works() -> None:
    threads = set[int]()

    async def watch(listener: Listener, stop: threading.Event) -> None:
        threads.add(threading.get_ident())
        for event in ("ADDED", "MODIFIED", "DELETED"):
            listener(event, {})
        await wait_for_flag(stop)

    heard: list[str | None] = []
    async with running(watch, heard, []):
        await until(lambda: len(heard) == 3)
    assert heard == ["ADDED", "MODIFIED", "DELETED"]
    assert threads != {threading.get_ident()}


async def test_an_event_that_fails_holds_up_no_other() -> None:
    async def watch(listener: Listener, stop: threading.Event) -> None:
        for number in range(100):
            listener("MODIFIED", {"number": number})
        await wait_for_flag(stop)

    heard: list[int] = []
    failures: list[dict[str, object]] = []

    def listen(_: str | None, raw: Raw) -> None:
        if raw["number"] == 3:
            raise ValueError("an object like no other")
        heard.append(raw["number"])

    async def recover() -> None:
        pass

    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))
    task = asyncio.create_task(Watching(listen, recover, watch).run())
    await until(lambda: len(heard) == 99)
    task.cancel()
    await asyncio.wait({task})
    assert heard == [number for number in range(100) if number != 3]
    assert [str(failure["exception"]) for failure in failures] == ["an object like no other"]


async def test_a_watch_that_breaks_begins_again_and_what_was_missed_is_listed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "RESTART_SECONDS", 0.001)

    async def watch(listener: Listener, stop: threading.Event) -> None:
        listener(None, {})
        asyncio.get_running_loop().run_in_executor(None, stop.wait)  # as kopf does: must not keep the thread
        raise ConnectionError("410 Gone and gone again")

    heard: list[str | None] = []
    recovered: list[int] = []
    async with running(watch, heard, recovered):
        await until(lambda: len(recovered) >= 2)
    assert recovered[:2] == [1, 2]
    assert "410 Gone and gone again" in caplog.text


async def test_stopping_asks_the_watch_to_end_and_waits_for_it() -> None:
    ended = threading.Event()
    started = threading.Event()

    async def watch(_: Listener, stop: threading.Event) -> None:
        started.set()
        await wait_for_flag(stop)
        ended.set()

    async with running(watch, [], []):
        await until(started.is_set)
    assert ended.is_set()


async def test_a_watch_that_hangs_does_not_hold_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "END_SECONDS", 0.01)
    started, let_go = threading.Event(), threading.Event()

    async def watch(_: Listener, _stop: threading.Event) -> None:
        started.set()
        await wait_for_flag(let_go)

    async with running(watch, [], []):
        await until(started.is_set)
    let_go.set()


def test_kopf_is_set_up_without_being_started() -> None:
    assert callable(watching.kopf_watch(["team"]))


def test_a_uid_without_a_name_can_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """kopf asks who its user is unless it is told; in an image with any UID there is no answer."""
    given: dict[str, Any] = {}

    async def operator(**settings: Any) -> None:
        given.update(settings)

    monkeypatch.setattr(watching.kopf, "operator", operator)
    asyncio.run(watching.kopf_watch([])(lambda *_: None, threading.Event()))
    assert given["identity"]
