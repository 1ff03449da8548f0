"""The pages that the kubelet and Prometheus read."""

import asyncio
import contextlib

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge

from octavo_operator.probes import Limits, LoopLag, Vitals, make_app, problem_of, serve

WELL = Vitals(synced=True, queue_oldest_seconds=1, relist_seconds=1, lag_seconds=0)
LIMITS = Limits(queue_oldest_seconds=360, relist_seconds=900)


@pytest.mark.parametrize(
    ("vitals", "problem"),
    [
        (WELL, ""),
        (Vitals(synced=False, queue_oldest_seconds=0, relist_seconds=0, lag_seconds=0), ""),
        (Vitals(synced=True, queue_oldest_seconds=400, relist_seconds=1, lag_seconds=0), "waited for 400 s"),
        (
            Vitals(synced=True, queue_oldest_seconds=1, relist_seconds=1000, lag_seconds=0),
            "nothing was listed for 1000 s",
        ),
        (Vitals(synced=True, queue_oldest_seconds=1, relist_seconds=1, lag_seconds=20), "held for 20 s"),
    ],
)
def test_life_is_a_queue_that_moves_lists_that_come_and_a_loop_that_keeps_up(vitals: Vitals, problem: str) -> None:
    found = problem_of(vitals, LIMITS)
    assert problem in found
    assert bool(found) == bool(problem)


async def test_pages() -> None:
    registry = CollectorRegistry()
    gauge = Gauge("depth", "Keys.", registry=registry)
    vitals = [Vitals(synced=False, queue_oldest_seconds=0, relist_seconds=0, lag_seconds=0)]
    app = make_app(registry, lambda: vitals[0], LIMITS, lambda: gauge.set(7))
    runner = await serve(app, "127.0.0.1", 0)
    try:
        base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(base) as session:
            assert await page(session, "/livez") == (200, "ok")
            assert await page(session, "/readyz") == (503, "the cache is being filled")
            vitals[0] = WELL
            assert await page(session, "/readyz") == (200, "ok")
            vitals[0] = Vitals(synced=True, queue_oldest_seconds=999, relist_seconds=0, lag_seconds=0)
            assert (await page(session, "/livez"))[0] == 503
            status, text = await page(session, "/metrics")
            assert status == 200
            assert "depth 7.0" in text
    finally:
        await runner.cleanup()


async def page(session: aiohttp.ClientSession, path: str) -> tuple[int, str]:
    async with session.get(path) as response:
        return response.status, await response.text()


async def test_the_lag_is_what_a_sleep_took_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octavo_operator.probes.LAG_PERIOD_SECONDS", 0.001)
    moments = iter([0.0, 5.0, 5.0, 5.001])
    lag = LoopLag(lambda: next(moments, 6.0))
    task = asyncio.create_task(lag.keep_measuring())
    async with asyncio.timeout(5):
        while lag.seconds < 1.0:  # noqa: ASYNC110
            await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
