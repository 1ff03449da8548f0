"""The fake engine keeps the promises that the real one makes."""

import asyncio

from octavo_runtime.engine.messages import AddRequest, FinishReason, RequestFinished
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.server.testing import EOS, ByteTokenizer, FakeEngine


def request(**params):
    return AddRequest(request_id="r", prompt_token_ids=[1, 2], params=SamplingParams(**params))


async def test_exactly_one_last_event():
    events = [event async for event in FakeEngine(b"ab").generate(request(n=2))]
    assert [isinstance(event, RequestFinished) for event in events].count(True) == 1
    assert isinstance(events[-1], RequestFinished)
    assert [event.token_ids for event in events if getattr(event, "index", None) == 0] == [[97], [98], [EOS]]


async def test_abort_still_gives_the_last_event():
    engine = FakeEngine(b"abc")
    engine.running.clear()
    task = asyncio.create_task(anext(engine.generate(request())))
    await asyncio.sleep(0)
    engine.abort_all()
    assert (await task).reason is FinishReason.ABORT


def test_bytes_come_back():
    tokenizer = ByteTokenizer()
    assert tokenizer.decode(tokenizer.encode("né👋")) == "né👋"
