"""The `openai` client, unchanged, against a real server."""

import math

import openai
import pytest
from openai import OpenAI

PARIS = [{"role": "user", "content": "What is the capital of France?"}]


@pytest.fixture(scope="module")
def client(server) -> OpenAI:  # type: ignore[no-untyped-def]
    return OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0, timeout=60)


def test_chat_answers_paris(client: OpenAI) -> None:
    reply = client.chat.completions.create(model="smollm2", messages=PARIS, temperature=0, max_tokens=32)
    assert "Paris" in (reply.choices[0].message.content or "")
    assert reply.choices[0].message.role == "assistant"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


def test_streamed_chat_is_the_same_text_as_the_whole(client: OpenAI) -> None:
    ask = {"model": "smollm2", "messages": PARIS, "temperature": 0, "max_tokens": 24}
    whole = client.chat.completions.create(**ask)
    chunks = list(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == whole.choices[0].finish_reason
    assert chunks[-1].usage == whole.usage


def test_completion_with_several_prompts_numbers_choices_prompt_major(client: OpenAI) -> None:
    reply = client.completions.create(
        model="smollm2", prompt=["One, two,", "Red, green,"], n=2, seed=3, temperature=0.9, max_tokens=4
    )
    assert [c.index for c in reply.choices] == [0, 1, 2, 3]
    assert reply.usage is not None
    assert reply.usage.completion_tokens <= 16


def test_token_id_prompts_give_what_their_text_gives(client: OpenAI) -> None:
    ask = {"model": "smollm2", "temperature": 0, "max_tokens": 8}
    text = "The sky is"
    ids = client.post("/../tokenize", body={"prompt": text}, cast_to=object)["tokens"]  # type: ignore[index]
    assert (
        client.completions.create(prompt=ids, **ask).choices[0].text
        == client.completions.create(prompt=text, **ask).choices[0].text
    )


def test_completion_logprobs_and_echo(client: OpenAI) -> None:
    reply = client.completions.create(
        model="smollm2", prompt="The capital of France is", temperature=0, max_tokens=3, logprobs=2, echo=True
    )
    choice = reply.choices[0]
    assert choice.text.startswith("The capital of France is")
    assert choice.logprobs is not None
    assert choice.logprobs.token_logprobs is not None
    assert choice.logprobs.tokens is not None
    assert choice.logprobs.token_logprobs[0] is None
    assert all(lp <= 0 for lp in choice.logprobs.token_logprobs[1:])
    assert "".join(choice.logprobs.tokens) == choice.text


def test_chat_logprobs_name_the_chosen_token_among_the_likeliest(client: OpenAI) -> None:
    reply = client.chat.completions.create(
        model="smollm2", messages=PARIS, temperature=0, max_tokens=5, logprobs=True, top_logprobs=3
    )
    content = reply.choices[0].logprobs.content if reply.choices[0].logprobs else None
    assert content
    for entry in content:
        assert len(entry.top_logprobs) == 3
        assert entry.top_logprobs[0].token == entry.token
        assert bytes(entry.bytes or []).decode() == entry.token
        assert sum(math.exp(t.logprob) for t in entry.top_logprobs) <= 1 + 1e-3


def test_n_choices_differ_and_a_seed_repeats_them(client: OpenAI) -> None:
    ask = {"model": "smollm2", "prompt": "Once upon a time", "temperature": 1.5, "n": 3, "seed": 11, "max_tokens": 12}
    first, second = (client.completions.create(**ask) for _ in range(2))
    texts = [c.text for c in first.choices]
    assert texts == [c.text for c in second.choices]
    assert len(set(texts)) > 1


def test_stop_string_ends_the_text_before_it(client: OpenAI) -> None:
    ask = {"model": "smollm2", "prompt": "Count: 1, 2, 3, 4,", "temperature": 0, "max_tokens": 32}
    free = client.completions.create(**ask).choices[0].text
    stop = free[6:9]
    cut = client.completions.create(**ask, stop=[stop]).choices[0]
    assert cut.text == free[: free.index(stop)]
    assert cut.finish_reason == "stop"


def test_max_tokens_ends_with_length(client: OpenAI) -> None:
    reply = client.completions.create(model="smollm2", prompt="Once upon a time", max_tokens=5, temperature=0)
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage is not None
    assert reply.usage.completion_tokens == 5


def test_models_are_listed(client: OpenAI) -> None:
    assert [m.id for m in client.models.list()] == ["smollm2"]
    assert client.models.retrieve("smollm2").id == "smollm2"


@pytest.mark.parametrize(
    ("change", "error", "param"),
    [
        ({"model": "nobody"}, openai.NotFoundError, "model"),
        ({"temperature": 3}, openai.BadRequestError, "temperature"),
        ({"top_p": 0}, openai.BadRequestError, "top_p"),
        ({"n": 0}, openai.BadRequestError, "n"),
        ({"max_tokens": 0}, openai.BadRequestError, "max_tokens"),
        ({"max_tokens": 10**9}, openai.BadRequestError, "input_tokens"),
        ({"messages": []}, openai.BadRequestError, "messages"),
        ({"messages": [{"role": "user", "content": 3}]}, openai.BadRequestError, "messages[0].content"),
        ({"logit_bias": {"99999999": 1}}, openai.BadRequestError, "logit_bias"),
        ({"stream_options": {"include_usage": True}}, openai.BadRequestError, "stream_options"),
        ({"tools": [{"type": "function", "function": {"name": "f"}}]}, openai.BadRequestError, "tools"),
        ({"response_format": {"type": "json_object"}}, openai.BadRequestError, "response_format"),
    ],
)
def test_a_wrong_field_is_refused_by_name(
    client: OpenAI, change: dict[str, object], error: type[openai.APIStatusError], param: str
) -> None:
    ask: dict[str, object] = {"model": "smollm2", "messages": PARIS, **change}
    with pytest.raises(error) as caught:
        client.chat.completions.create(**ask)  # type: ignore[call-overload]
    assert caught.value.param is not None
    assert param in caught.value.param


def test_a_prompt_longer_than_the_context_is_refused_with_the_numbers(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="maximum context length is 8192"):
        client.completions.create(model="smollm2", prompt=[5] * 100_000, max_tokens=1)
