"""Random bodies, most of them wrong, against a real server: no failure of the server, memory that stays, right answers after."""

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

from fuzz_bodies import FuzzBody, complaint, fuzz_bodies
from served import Served

CONTEXT = 1024
CONCURRENCY = 16
GROWTH_BYTES = 192 << 20  # of each process, beyond the first bodies; a body that leaks its text shows after thousands
FLAGS = ("--max-model-len", str(CONTEXT), "--kv-cache-memory-bytes", "64MiB", "--disable-access-log")
QUESTION = {
    "messages": [{"role": "user", "content": "What is the capital of France?"}], "temperature": 0, "max_tokens": 24,
}  # fmt: skip


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmRSS"))


async def send(served: Served, bodies: Iterator[FuzzBody]) -> list[object]:
    """All of them, some at a time; what is wrong with the answers."""
    wrong: list[object] = []
    timeout = aiohttp.ClientTimeout(total=120)
    async with aiohttp.ClientSession(timeout=timeout, headers={"Content-Type": "application/json"}) as session:

        async def work() -> None:
            for body in bodies:
                async with session.post(served.url + body.path, data=body.data) as response:
                    text = await response.text()
                if problem := complaint(body, response.status, text) or broken_stream(response.status, text):
                    wrong.append((problem, body.path, body.field, body.data[:300], response.status, text[:300]))

        await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return wrong


def broken_stream(status: int, text: str) -> str | None:
    """A stream begins with 200; that the server failed is told in one of its events."""
    return "failed in the stream" if status == 200 and '"code":500' in text.replace(" ", "") else None


async def ask(served: Served) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.post(served.url + "/v1/chat/completions", json=QUESTION) as response,
    ):
        return str((await response.json())["choices"][0]["message"]["content"])


async def check(served: Served, count: int, seed: int) -> None:
    wrong = await send(served, fuzz_bodies(200, seed + 1, CONTEXT))  # memory that is taken once
    pids = (served.process.pid, served.engine_pid())
    before = [resident_bytes(pid) for pid in pids]
    wrong += await send(served, fuzz_bodies(count, seed, CONTEXT))
    assert not wrong, f"{len(wrong)} of {count}: {json.dumps(wrong[:8], default=repr, indent=1)}"
    growth = [resident_bytes(pid) - size for pid, size in zip(pids, before, strict=True)]
    assert max(growth) < GROWTH_BYTES, f"the processes grew by {growth} bytes"
    assert "Paris" in await ask(served)
    deadline = time.monotonic() + 5
    while served.metric("vllm:kv_cache_usage_perc") or served.metric("vllm:num_requests_running"):
        assert time.monotonic() < deadline, "blocks or requests are left"
        await asyncio.sleep(0.1)
    assert served.terminate() == 0


async def test_a_real_server_stands_wrong_and_extreme_bodies_short_form(serve: Callable[..., Served]) -> None:
    await check(serve(*FLAGS), 300, seed=11)


@pytest.mark.slow
async def test_a_real_server_stands_ten_thousand_wrong_and_extreme_bodies(serve: Callable[..., Served]) -> None:
    await check(serve(*FLAGS), 10_000, seed=21)
