"""Lists fill the cache, and find what watches lost."""

import asyncio
import contextlib

import pytest
from prometheus_client import CollectorRegistry

from octavo_operator import relist
from octavo_operator.cache import Cache
from octavo_operator.intake import Intake
from octavo_operator.kinds import WATCHED
from octavo_operator.kube_client import NotFound, TooManyRequests, Unavailable
from octavo_operator.metrics import OperatorMetrics
from octavo_operator.relist import Relister
from octavo_operator.testing import FakeKube, llm_deployment, node
from octavo_operator.work_queue import WorkQueue


class Setting:
    """A server with a little of everything, and who lists it."""

    def __init__(self, *namespaces: str) -> None:
        self.kube = FakeKube([node("a"), llm_deployment("x", "team"), llm_deployment("y", "other")])
        self.cache = Cache()
        self.queue = WorkQueue(OperatorMetrics(CollectorRegistry()))
        self.now = 0.0
        self.relister = Relister(self.kube, Intake(self.cache, self.queue), namespaces, lambda: self.now)


async def test_the_first_round_fills_the_cache_and_queues_everything() -> None:
    setting = Setting()
    assert not setting.relister.synced
    await setting.relister.sync()
    assert setting.relister.synced
    assert setting.cache.keys() == {("team", "x"), ("other", "y")}
    assert (setting.cache.count("Node"), setting.queue.depth) == (1, 2)


async def test_only_the_namespaces_asked_for_are_listed_and_the_nodes() -> None:
    setting = Setting("team", "third")
    await setting.relister.sync()
    assert setting.cache.keys() == {("team", "x")}
    assert setting.cache.count("Node") == 1


async def test_a_round_that_fails_is_tried_again_until_it_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relist, "RETRY_SECONDS", 0.001)
    setting = Setting()
    setting.kube.fail_next(Unavailable(503, "etcd"), "list")
    setting.kube.fail_next(TooManyRequests(429, "slow", retry_after=0.001), "list")
    assert not await setting.relister.relist()
    assert not setting.relister.synced
    await setting.relister.sync()
    assert setting.relister.synced


async def test_a_missing_crd_of_ours_is_said_but_an_optional_one_is_not(caplog: pytest.LogCaptureFixture) -> None:
    setting = Setting()
    assert await setting.relister.relist()
    assert caplog.text == ""
    setting.kube.fail_next(NotFound(404, "no such resource"), "list")
    assert not await setting.relister.relist()
    assert "llmdeployments: is the CRD installed?" in caplog.text


async def test_a_failed_round_forgets_nothing() -> None:
    setting = Setting()
    await setting.relister.sync()
    for _ in WATCHED:
        setting.kube.fail_next(Unavailable(0, "down"), "list")
    assert not await setting.relister.relist()
    assert setting.cache.keys() == {("team", "x"), ("other", "y")}


async def test_the_age_is_that_of_the_last_complete_round() -> None:
    setting = Setting()
    assert setting.relister.age_seconds == 0.0
    await setting.relister.relist()
    setting.now = 7.0
    assert setting.relister.age_seconds == 7.0


async def test_rounds_are_kept_up_and_keys_woken() -> None:
    setting = Setting()
    await setting.relister.sync()
    setting.kube.remove("LLMDeployment", "other", "y")
    tasks = [
        asyncio.create_task(setting.relister.keep_listing(0.005)),
        asyncio.create_task(setting.relister.keep_waking(0.005)),
    ]
    async with asyncio.timeout(5):
        while setting.cache.keys() != {("team", "x")} or setting.queue._queue.next_due() is None:  # noqa: ASYNC110
            await asyncio.sleep(0.002)
    for task in tasks:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
