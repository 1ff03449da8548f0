import asyncio
import time

import pytest

from octavo_runtime.errors import InvalidRequestError
from octavo_runtime.server.interfaces import TextLayer
from octavo_runtime.server.prompts import ModelLimits, Prompt, PromptEncoder, resolve_max_tokens
from octavo_runtime.server.schema import ChatBody, CompletionBody
from octavo_runtime.server.testing import VOCAB_SIZE, ByteTokenizer, PlainTemplate

LIMITS = ModelLimits(max_model_len=100, vocab_size=VOCAB_SIZE, max_num_seqs=8)


class SlowTokenizer(ByteTokenizer):
    def encode(self, text, add_special_tokens=True):
        time.sleep(0.2)
        return super().encode(text, add_special_tokens)


@pytest.fixture
def encoder():
    encoder = PromptEncoder(TextLayer(ByteTokenizer(), PlainTemplate()))
    yield encoder
    encoder.close()


async def test_long_texts_do_not_block_the_event_loop():
    encoder = PromptEncoder(TextLayer(SlowTokenizer()))
    work = asyncio.create_task(encoder.encode("x" * 10_000, True, None))
    started = time.perf_counter()
    for _ in range(5):
        await asyncio.sleep(0.001)
    assert time.perf_counter() - started < 0.15
    assert len(await work) == 10_001
    encoder.close()


async def test_hopeless_texts_are_refused_without_encoding():
    class Refusing(ByteTokenizer):
        def encode(self, text, add_special_tokens=True):
            raise NotImplementedError

    encoder = PromptEncoder(TextLayer(Refusing()))
    with pytest.raises(InvalidRequestError) as caught:
        await encoder.encode("x" * 1_000_000, True, 100)
    assert caught.value.param == "input_tokens"
    assert "1000000 characters" in str(caught.value)
    encoder.close()


async def test_chat_parts_and_completion_prompts_keep_their_text(encoder):
    prompt = await encoder.chat_prompt(ChatBody(messages=[{"role": "user", "content": "x"}]), LIMITS)
    assert prompt.text == "user: x\nassistant: "
    texts = await encoder.completion_prompts(CompletionBody(prompt=["a", "b"]), LIMITS, 10)
    assert [prompt.text for prompt in texts] == ["a", "b"]
    ids = await encoder.completion_prompts(CompletionBody(prompt=[1, 2]), LIMITS, 10)
    assert ids == [Prompt([1, 2], None)]


async def test_tokens_that_the_model_lacks_are_refused_whoever_made_them(encoder):
    small = ModelLimits(max_model_len=100, vocab_size=ord("b"), max_num_seqs=8)
    calls = [
        (encoder.completion_prompts(CompletionBody(prompt="b", add_special_tokens=False), small, 10), "prompt"),
        (encoder.completion_prompts(CompletionBody(prompt=[98]), small, 10), "prompt"),
        (encoder.completion_prompts(CompletionBody(prompt=[[1], [98]]), small, 10), "prompt[1]"),
        (encoder.chat_prompt(ChatBody(messages=[{"role": "user", "content": "b"}]), small), "messages"),
    ]
    for call, field in calls:
        with pytest.raises(InvalidRequestError) as caught:
            await call
        assert caught.value.param == field
        assert "not a token id of this model (0 to 97)" in str(caught.value)


@pytest.mark.parametrize(
    ("lengths", "wanted", "default", "expected"),
    [([90], None, None, 10), ([90], 10, None, 10), ([90], None, 16, 10), ([10, 95], None, 16, 5), ([10], None, 16, 16)],
)
def test_max_tokens_fit_behind_the_longest_prompt(lengths, wanted, default, expected):
    prompts = [Prompt([1] * length, None) for length in lengths]
    assert resolve_max_tokens(prompts, wanted, default, LIMITS) == expected


@pytest.mark.parametrize(("length", "wanted"), [(90, 11), (100, None), (101, None), (100, 1)])
def test_too_long_names_the_numbers(length, wanted):
    with pytest.raises(InvalidRequestError) as caught:
        resolve_max_tokens([Prompt([1] * length, None)], wanted, 16, LIMITS)
    assert caught.value.param == "input_tokens"
    assert str(length) in str(caught.value)
    assert "100 tokens" in str(caught.value)
