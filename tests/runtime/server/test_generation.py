"""A stream's concatenation is the whole reply, however the engine cuts its tokens into events."""

import asyncio
import itertools

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.metrics import ServerMetrics
from octavo_runtime.server.admission import Admission
from octavo_runtime.server.config import ServerConfig
from octavo_runtime.server.generation import Generation, Job, collect
from octavo_runtime.server.interfaces import TextLayer
from octavo_runtime.server.prompts import Prompt
from octavo_runtime.server.testing import EOS, ByteTokenizer, FakeEngine

PIECES = st.sampled_from(["a", "stop", "st", " ", "é", "e\u0301", "漢字", "👋", "👩‍👩‍👧", "\n", "end", "\x80"])
ANSWERS = st.lists(PIECES, max_size=12).map("".join)


def generation(engine, params, interval=1, num_prompts=1):
    metrics = ServerMetrics(CollectorRegistry(), "m")
    text = TextLayer(ByteTokenizer(), eos_token_ids=(EOS,))
    prompts = [Prompt([65 + place], None) for place in range(num_prompts)]
    job = Job("cmpl-x", prompts, params, stream_interval=interval)
    return Generation(engine, text, Admission(engine, ServerConfig(("m",)), metrics), metrics, job)


async def streamed(run):
    texts = {}
    ends = {}
    async for batch in run.deltas():
        for delta in batch:
            texts[delta.choice.index] = texts.get(delta.choice.index, "") + delta.text
            if delta.finish_reason is not None:
                assert delta.choice.index not in ends
                ends[delta.choice.index] = (delta.finish_reason, delta.stop_reason)
    return texts, ends


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    answers=st.lists(ANSWERS, min_size=1, max_size=3),
    stop=st.lists(st.sampled_from(["stop", "p", "字", "\u0301", "👋a", "nd"]), max_size=2),
    cut=st.integers(1, 7),
    interval=st.integers(1, 5),
    num_prompts=st.integers(1, 2),
    max_tokens=st.integers(1, 60),
)
def test_streams_equal_whole_replies(answers, stop, cut, interval, num_prompts, max_tokens):
    params = SamplingParams(n=len(answers), stop=tuple(stop), max_tokens=max_tokens)

    def engine(tokens_per_event):
        fake = FakeEngine(lambda _request, index: answers[index].encode())
        fake.tokens_per_event = tokens_per_event
        return fake

    async def check():
        whole = await collect(generation(engine(1000), params, num_prompts=num_prompts))
        texts, ends = await streamed(generation(engine(cut), params, interval, num_prompts))
        assert texts == {output.index: output.text for output in whole}
        assert ends == {output.index: (output.finish_reason, output.stop_reason) for output in whole}
        for output in whole:
            assert not any(string in output.text for string in stop)

    asyncio.run(check())


async def test_counts_and_logprobs_stop_where_the_text_does():
    engine = FakeEngine(b"abcstopdef")
    engine.tokens_per_event = 6
    (output,) = await collect(generation(engine, SamplingParams(stop=("st",), logprobs=0, max_tokens=50)))
    assert output.text == "abc"
    assert output.token_ids == list(b"abcst")
    assert len(output.logprobs) == 5


async def test_what_the_engine_ended_is_not_aborted():
    for num_prompts, width, interval in itertools.product((1, 3), (1, 2), (1, 4)):
        for params in (SamplingParams(n=width, max_tokens=4), SamplingParams(n=width, stop=("none",), max_tokens=50)):
            engine = FakeEngine(b"abcdef")
            await streamed(generation(engine, params, interval, num_prompts))
            await collect(generation(engine, params, interval, num_prompts))
            assert (engine.aborted, engine.num_requests) == ([], 0)


async def test_a_stop_string_ends_the_reply_without_waiting_for_the_engine():
    engine = FakeEngine(b"abcdef")
    engine.abort = lambda *_: engine.running.clear()  # it stands still before it could end the request
    async with asyncio.timeout(5):
        (output,) = await collect(generation(engine, SamplingParams(stop=("c",), max_tokens=50)))
    assert output.text == "ab"
    assert engine.num_requests == 0


async def test_closing_the_deltas_early_aborts():
    engine = FakeEngine(b"abcdef")
    run = generation(engine, SamplingParams(n=2, max_tokens=50), num_prompts=3)
    deltas = run.deltas()
    await anext(deltas)
    assert engine.num_requests == 3
    await deltas.aclose()
    assert engine.num_requests == 0
    assert len(engine.aborted) == 3
