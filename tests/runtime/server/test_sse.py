import asyncio
import json

import pytest

from octavo_runtime.server import sse

PATHS = ("/v1/completions", "/v1/chat/completions")


def body_of(path, **fields):
    prompt = {"messages": [{"role": "user", "content": "hi"}]} if "chat" in path else {"prompt": "hi"}
    return {**prompt, "stream": True, **fields}


@pytest.mark.parametrize("path", PATHS)
async def test_refusal_before_the_first_token_has_a_real_status(serve, path):
    served = await serve()
    served.engine.refusal = "The request needs 99 blocks, the cache has 64."
    status, reply = await served.post(path, body_of(path))
    assert (status, reply["error"]["message"]) == (400, served.engine.refusal)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("n", [1, 3])
async def test_engine_death_ends_every_open_stream_with_an_error_event(serve, path, n):
    served = await serve()
    served.engine.step_seconds = 0.01
    body = body_of(path, ignore_eos=True, max_tokens=400, n=n)
    responses = [await served.client.post(path, json=body) for _ in range(4)]
    served.engine.die()
    for response in responses:
        events = (await asyncio.wait_for(response.text(), 2)).split("\n\n")
        assert events[-2:] == ["data: [DONE]", ""]
        error = json.loads(events[-3].removeprefix("data: "))["error"]
        assert (error["code"], error["type"]) == (500, "InternalServerError")
        assert "The engine ended" in error["message"]


async def test_engine_death_gives_500_to_whole_replies(serve):
    served = await serve()
    served.engine.step_seconds = 0.01
    call = asyncio.create_task(served.post(PATHS[0], {"prompt": "a", "ignore_eos": True, "max_tokens": 400}))
    await asyncio.sleep(0.05)
    served.engine.die()
    status, reply = await asyncio.wait_for(call, 2)
    assert (status, reply["error"]["type"]) == (500, "InternalServerError")


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fields", [{}, {"n": 4}])
async def test_client_that_goes_away_aborts_its_requests(serve, stream, fields):
    served = await serve()
    served.engine.step_seconds = 0.005
    body = {"prompt": "a", "stream": stream, "ignore_eos": True, "max_tokens": 500, **fields}
    calls = [asyncio.create_task(served.client.post(PATHS[0], json=body)) for _ in range(8)]
    for _ in range(500):
        if served.engine.num_requests == 8:
            break
        await asyncio.sleep(0.01)
    assert served.engine.num_requests == 8
    for call in calls:
        if call.done():
            call.result().close()
        call.cancel()
    for _ in range(100):
        await asyncio.sleep(0.01)
        if served.engine.num_requests == 0:
            break
    assert served.engine.num_requests == 0
    assert len({request_id for request_id, index in served.engine.aborted if index is None}) == 8
    async with served.client.get("/load") as response:
        assert (await response.json()) == {"server_load": 0}


async def test_client_that_goes_away_before_the_first_token_is_noticed(serve):
    served = await serve()
    served.engine.running.clear()
    call = asyncio.create_task(served.client.post(PATHS[1], json=body_of(PATHS[1])))
    await asyncio.sleep(0.05)
    assert served.engine.num_requests == 1
    call.cancel()
    await asyncio.sleep(0.05)
    assert served.engine.num_requests == 0


async def test_failure_after_the_first_event_is_an_event(serve):
    served = await serve()

    def answer(_request, _index):
        class Broken(list):
            def __getitem__(self, item):
                if isinstance(item, slice) and item.start:
                    raise RuntimeError("secret detail")
                return super().__getitem__(item)

        return Broken(b"abc")

    served.engine.answer = answer
    served.engine._tokens = lambda request, index: answer(request, index)
    async with served.client.post(PATHS[0], json=body_of(PATHS[0])) as response:
        events = (await response.text()).split("\n\n")
    assert json.loads(events[0].removeprefix("data: "))["choices"][0]["text"] == "a"
    assert json.loads(events[1].removeprefix("data: "))["error"]["code"] == 500
    assert "secret" not in events[1]
    assert events[2:] == ["data: [DONE]", ""]


async def test_queued_stream_shows_life_before_its_first_token(serve, monkeypatch):
    monkeypatch.setattr(sse, "FIRST_SIGN_SECONDS", 0.02)
    monkeypatch.setattr(sse, "NEXT_SIGN_SECONDS", 0.02)
    served = await serve()
    served.engine.running.clear()
    async with served.client.post(PATHS[1], json=body_of(PATHS[1])) as response:
        lines = [await response.content.readline() for _ in range(3)]
        assert lines[0].startswith(b":")
        assert lines[2].startswith(b":")
        served.engine.running.set()
        text = (await response.read()).decode()
    assert text.endswith("data: [DONE]\n\n")
    assert ":" in text.split("data: ", 1)[1]
    assert "\n: " not in text.split("data: ", 1)[1]


async def test_refusal_after_the_first_sign_is_an_event(serve, monkeypatch):
    monkeypatch.setattr(sse, "FIRST_SIGN_SECONDS", 0.02)
    served = await serve()
    served.engine.running.clear()
    served.engine.refusal = "Too large."
    async with served.client.post(PATHS[0], json=body_of(PATHS[0])) as response:
        await response.content.readline()
        served.engine.running.set()
        text = (await response.read()).decode()
    assert '"message":"Too large."' in text
    assert text.endswith("data: [DONE]\n\n")
