"""A hung engine is found, whoever knows of the work; one that only sleeps or was paused with us is not."""

import asyncio
from collections.abc import Iterator

import pytest

from octavo_runtime import pulse
from octavo_runtime.engine.async_llm_engine import AsyncLLMEngine, EventStream
from octavo_runtime.engine.heartbeat import Heartbeat
from octavo_runtime.pulse import watch_pulse


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pulse, "POLL_SECONDS", 0.02)


@pytest.fixture
def engine() -> Iterator[AsyncLLMEngine]:
    made = AsyncLLMEngine(Heartbeat.create())
    yield made
    made.heartbeat.close()


async def watched(engine: AsyncLLMEngine, limit: float, seconds: float) -> bool:
    """Whether it was given up."""
    try:
        await asyncio.wait_for(watch_pulse(engine, limit), seconds)
    except TimeoutError:
        return False
    return True


async def test_work_without_a_beat_is_a_hang_with_its_cause(engine: AsyncLLMEngine) -> None:
    engine.heartbeat.beat(has_work=True)
    assert await watched(engine, 0.05, 5)
    assert engine.dead is not None
    assert engine.dead.cause == "EngineHung"
    assert "--engine-hang-timeout" in engine.dead.message


async def test_a_stopped_engine_that_was_idle_is_found_when_work_comes(engine: AsyncLLMEngine) -> None:
    engine.heartbeat.beat(has_work=False)
    assert not await watched(engine, 0.05, 0.3)
    engine._streams["a"] = EventStream()
    assert await watched(engine, 0.05, 5)


async def test_an_engine_that_beats_after_a_pause_lives_on(engine: AsyncLLMEngine) -> None:
    engine.heartbeat.beat(has_work=True)
    await asyncio.sleep(0.1)
    task = asyncio.create_task(watch_pulse(engine, 0.08))
    await asyncio.sleep(0.03)  # one look has seen an old beat
    for _ in range(10):
        engine.heartbeat.beat(has_work=True)
        await asyncio.sleep(0.02)
    assert engine.dead is None
    task.cancel()


async def test_before_the_first_beat_and_without_a_limit_nothing_hangs(engine: AsyncLLMEngine) -> None:
    engine._streams["a"] = EventStream()
    assert not await watched(engine, 0.01, 0.2)
    engine.heartbeat.beat(has_work=True)
    await watch_pulse(engine, 0)
    assert engine.dead is None
