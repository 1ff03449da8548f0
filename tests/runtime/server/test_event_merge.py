import asyncio
from contextlib import aclosing

import pytest

from octavo_runtime.engine.messages import AddRequest, RequestFinished
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.errors import EngineDeadError
from octavo_runtime.server.event_merge import merged_events
from octavo_runtime.server.testing import FakeEngine


def requests(count, **params):
    return [
        AddRequest(request_id=f"r{place}", prompt_token_ids=[1], params=SamplingParams(**params))
        for place in range(count)
    ]


@pytest.mark.parametrize(("count", "single"), [(1, True), (1, False), (3, True), (3, False)])
async def test_every_event_comes_once_and_ends_last(count, single):
    events = {}
    async for batch in merged_events(FakeEngine(b"abc"), requests(count, max_tokens=9), single):
        assert batch
        for place, event in batch:
            events.setdefault(place, []).append(event)
    assert sorted(events) == list(range(count))
    for own in events.values():
        assert [isinstance(event, RequestFinished) for event in own] == [False] * 4 + [True]


async def test_sequences_of_one_step_come_in_one_batch():
    sizes = [len(batch) async for batch in merged_events(FakeEngine(b"abc"), requests(1, n=5), single=False)]
    assert sizes[:3] == [5, 5, 5]


async def test_failure_of_one_request_ends_the_stream_and_the_others():
    engine = FakeEngine(b"abc")
    engine.step_seconds = 0.01
    engine.die()
    with pytest.raises(EngineDeadError):
        async with aclosing(merged_events(engine, requests(2), single=True)) as batches:
            await anext(batches)
    assert engine.num_requests == 0


async def test_cancelling_the_reader_cancels_the_requests():
    engine = FakeEngine(b"abc")
    engine.running.clear()

    async def read():
        async with aclosing(merged_events(engine, requests(3), single=True)) as batches:
            await anext(batches)

    reader = asyncio.create_task(read())
    await asyncio.sleep(0.01)
    assert engine.num_requests == 3
    reader.cancel()
    await asyncio.gather(reader, return_exceptions=True)
    assert engine.num_requests == 0
