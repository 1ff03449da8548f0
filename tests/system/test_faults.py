"""What clients and the exit code see when a process dies, is told to stop, or when clients vanish."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Callable

import aiohttp

from served import Served, read_cause

STREAMS = 32
BODY = {"model": "smollm2", "prompt": "Once upon a time", "stream": True, "ignore_eos": True, "temperature": 0}


async def read_stream(
    session: aiohttp.ClientSession, url: str, max_tokens: int, started: asyncio.Event | None = None
) -> list[str]:
    """The data lines of one stream."""
    lines = []
    async with session.post(f"{url}/v1/completions", json={**BODY, "max_tokens": max_tokens}) as response:
        assert response.status == 200
        async for line in response.content:
            if line.startswith(b"data:"):
                lines.append(line[5:].decode().strip())
                if started is not None:
                    started.set()
    return lines


async def open_streams(served: Served, max_tokens: int, then: Callable[[], None]) -> tuple[list[list[str]], float]:
    """All streams at once; `then` runs when each has begun. The lines, and the seconds from `then` to the last end."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        begun = [asyncio.Event() for _ in range(STREAMS)]
        tasks = [asyncio.create_task(read_stream(session, served.url, max_tokens, event)) for event in begun]
        await asyncio.gather(*(event.wait() for event in begun))
        then()
        start = time.monotonic()
        return await asyncio.gather(*tasks), time.monotonic() - start


async def test_engine_killed_during_streams_gives_every_client_an_error_within_two_seconds(
    serve: Callable[..., Served],
) -> None:
    served = serve()
    streams, seconds = await open_streams(served, 2000, lambda: os.kill(served.engine_pid(), signal.SIGKILL))
    assert seconds < 2
    for lines in streams:
        assert "error" in json.loads(lines[-2])
        assert lines[-1] == "[DONE]"
    assert served.process.wait(10) != 0
    assert read_cause(served)["cause"] == "EngineDied"


async def test_sigterm_during_streams_finishes_them_all_and_exits_zero(serve: Callable[..., Served]) -> None:
    served = serve("--shutdown-timeout", "120")
    streams, _ = await open_streams(served, 150, lambda: served.process.send_signal(signal.SIGTERM))
    for lines in streams:
        assert lines[-1] == "[DONE]"
        finish = [json.loads(line)["choices"][0]["finish_reason"] for line in lines[:-1]]
        assert finish[-1] == "length"
    assert served.process.wait(10) == 0


async def test_clients_that_vanish_leave_every_block_free_within_a_second(serve: Callable[..., Served]) -> None:
    served = serve("--max-num-seqs", "256")
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def vanish() -> None:
            async with session.post(f"{served.url}/v1/completions", json={**BODY, "max_tokens": 2000}) as response:
                await response.content.readline()
                response.close()

        await asyncio.gather(*(vanish() for _ in range(200)))
    await asyncio.sleep(1)
    assert served.metric("vllm:kv_cache_usage_perc") == 0
    assert served.metric("vllm:num_requests_running") == 0
