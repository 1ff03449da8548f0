"""The unchanged `openai` client against the whole application."""

import subprocess
import sys

import openai
import pytest

MESSAGES = [{"role": "user", "content": "hi"}]


@pytest.fixture
async def client(serve):
    served = await serve(api_keys=("key",))
    async with openai.AsyncOpenAI(base_url=str(served.client.make_url("/v1")), api_key="key", max_retries=0) as client:
        yield client


async def test_chat(client):
    reply = await client.chat.completions.create(model="tiny", messages=MESSAGES, seed=3, temperature=0.5)
    assert reply.choices[0].message.content == "Hello, world!"
    assert reply.choices[0].finish_reason == "stop"
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens


async def test_chat_stream_with_usage(client):
    stream = await client.chat.completions.create(
        model="tiny", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    chunks = [chunk async for chunk in stream]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == "Hello, world!"
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].usage.completion_tokens == 14


async def test_chat_logprobs_n_and_stop(client):
    reply = await client.chat.completions.create(
        model="tiny", messages=MESSAGES, n=2, stop=["world"], logprobs=True, top_logprobs=2, max_completion_tokens=50
    )
    assert [choice.message.content for choice in reply.choices] == ["Hello, "] * 2
    assert reply.choices[0].logprobs.content[0].top_logprobs[1].token == "I"


async def test_completion_whole_and_streamed(client):
    reply = await client.completions.create(model="tiny", prompt=["a", "b"], max_tokens=5, logprobs=1, echo=True)
    assert [choice.text for choice in reply.choices] == ["aHello", "bHello"]
    assert reply.choices[0].logprobs.tokens[-1] == "o"
    stream = await client.completions.create(model="tiny", prompt="a", max_tokens=5, stream=True)
    assert "".join([chunk.choices[0].text async for chunk in stream]) == "Hello"


async def test_vllm_fields_in_extra_body(client):
    reply = await client.completions.create(
        model="tiny", prompt="a", extra_body={"top_k": 5, "min_p": 0.1, "ignore_eos": True, "return_token_ids": True}
    )
    assert reply.usage.completion_tokens == 16
    assert len(reply.choices[0].token_ids) == 16


async def test_models(client):
    assert [model.id async for model in client.models.list()] == ["tiny", "alias"]
    assert (await client.models.retrieve("tiny")).id == "tiny"


async def test_errors_are_the_clients_own_types(client):
    with pytest.raises(openai.BadRequestError) as bad:
        await client.chat.completions.create(model="tiny", messages=MESSAGES, temperature=3)
    assert bad.value.param == "temperature"
    with pytest.raises(openai.NotFoundError):
        await client.chat.completions.create(model="other", messages=MESSAGES)
    with pytest.raises(openai.AuthenticationError):
        await client.with_options(api_key="wrong").models.list()
    with pytest.raises(openai.BadRequestError) as tools:
        await client.chat.completions.create(
            model="tiny", messages=MESSAGES, tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}]
        )
    assert "not available yet" in tools.value.message


async def test_failure_inside_a_stream_reaches_the_client(serve):
    served = await serve()
    served.engine.step_seconds = 0.01
    async with openai.AsyncOpenAI(base_url=str(served.client.make_url("/v1")), api_key="x") as client:
        stream = await client.chat.completions.create(model="tiny", messages=MESSAGES, stream=True)
        await anext(stream)
        served.engine.die()
        with pytest.raises(openai.APIError):
            [chunk async for chunk in stream]


async def test_root_path_serves_both_ways(serve):
    served = await serve(root_path="/llm")
    for path in ("/version", "/llm/version"):
        async with served.client.get(path) as response:
            assert response.status == 200


def test_server_needs_no_torch():
    code = "import sys, octavo_runtime.server.app; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
