import asyncio
import time


async def test_streams_finish_and_new_calls_are_refused(serve):
    served = await serve()
    served.engine.step_seconds = 0.02
    calls = [asyncio.create_task(served.stream("/v1/completions")) for _ in range(4)]
    await asyncio.sleep(0.08)
    drain = asyncio.create_task(served.drain.run(5))
    await asyncio.sleep(0.01)
    async with served.client.post("/v1/completions", json={"prompt": "a"}) as response:
        assert response.status == 503
        assert "Retry-After" in response.headers
        assert response.headers["Connection"] == "close"
    assert await drain
    for events in await asyncio.gather(*calls):
        assert "".join(event["choices"][0]["text"] for event in events) == "Hello, world!"
        assert events[-1]["choices"][0]["finish_reason"] == "stop"


async def test_deadline_aborts_the_rest_with_a_last_event(serve):
    served = await serve()
    served.engine.step_seconds = 0.02
    body = {"ignore_eos": True, "max_tokens": 500}
    stream = asyncio.create_task(served.stream("/v1/completions", **body))
    whole = asyncio.create_task(served.complete(**body))
    await asyncio.sleep(0.1)
    started = time.monotonic()
    assert not await served.drain.run(0.1)
    assert time.monotonic() - started < 1
    assert (await stream)[-1]["choices"][0]["finish_reason"] == "abort"
    assert (await whole)["choices"][0]["finish_reason"] == "abort"


async def test_idle_server_drains_at_once(serve):
    served = await serve()
    assert await served.drain.run(0)


async def test_dead_engine_does_not_hold_the_drain(serve):
    served = await serve()
    served.engine.running.clear()
    call = asyncio.create_task(served.post("/v1/completions", {"prompt": "a"}))
    await asyncio.sleep(0.05)
    served.engine.die()
    assert await asyncio.wait_for(served.drain.run(5), 1)
    assert (await call)[0] == 500


async def test_asked_to_stay_away_it_serves_on_and_comes_back(serve):
    served = await serve()
    served.drain.ask()
    assert served.drain.draining
    await served.complete()
    served.drain.cancel()
    assert not served.drain.draining
