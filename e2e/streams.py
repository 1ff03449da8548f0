"""Load: N chat streams that are open all the time, each call on a connection of its own, and what became of every one.

A call is `ok` when its stream ended with [DONE]; `refused` when it got no 200; `cut` when a stream that had begun ended
otherwise. That is what a client notices, so it is what rollouts are judged by.
"""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

import aiohttp
from e2e.kubernetes import wait_for

CALL_TIMEOUT_S = 300
PAUSE_AFTER_FAILURE_S = 0.2  # a failing server is not hammered


class Outcome(Enum):
    """What a client saw."""

    OK = auto()
    REFUSED = auto()
    CUT = auto()


@dataclass(slots=True)
class Tally:
    """All calls so far."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    tokens: int = 0
    failures: list[str] = field(default_factory=list)  # with the time, for reading beside the operator's log

    def add(self, outcome: Outcome, detail: str = "") -> None:
        self.outcomes[outcome] += 1
        if outcome is not Outcome.OK:
            self.failures.append(f"{time.strftime('%H:%M:%S')} {outcome.name}: {detail}")

    @property
    def done(self) -> int:
        return self.outcomes[Outcome.OK]

    @property
    def failed(self) -> int:
        return self.outcomes[Outcome.REFUSED] + self.outcomes[Outcome.CUT]

    def __str__(self) -> str:
        counts = ", ".join(f"{self.outcomes[outcome]} {outcome.name.lower()}" for outcome in Outcome)
        return "\n".join([f"{counts}, {self.tokens} tokens", *self.failures[:20]])


@dataclass(frozen=True, slots=True)
class Chat:
    """What is asked, and of whom."""

    url: str
    model: str
    prompt: str = "Count from one to a hundred, one number a line."
    max_tokens: int = 48
    headers: tuple[tuple[str, str], ...] = ()

    def body(self, *, stream: bool) -> dict[str, Any]:
        messages = [{"role": "user", "content": self.prompt}]
        return {
            "model": self.model,
            "messages": messages,
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": stream,
        }


async def ask(url: str, model: str, question: str, *, max_tokens: int = 32, api_key: str = "") -> str:
    """One answer, whole."""
    headers = (("Authorization", f"Bearer {api_key}"),) if api_key else ()
    chat = Chat(url, model, question, max_tokens, headers)
    body = {**chat.body(stream=False), "ignore_eos": False}
    async with (
        _session() as session,
        session.post(f"{url}/v1/chat/completions", json=body, headers=dict(headers)) as answer,
    ):
        text = await answer.text()
        if answer.status != 200:
            raise aiohttp.ClientResponseError(answer.request_info, (), status=answer.status, message=text[:500])
        return str(json.loads(text)["choices"][0]["message"]["content"])


async def wait_reachable(url: str, within: float = 20.0, in_a_row: int = 1) -> None:
    """Until so many connections come through: the proxies hear of a pod that comes or goes a moment after its status does."""

    async def probe() -> bool:
        try:
            for _ in range(in_a_row):
                async with (
                    _session() as session,
                    session.get(f"{url}/health"),
                ):  # of its own: each may go to another pod
                    pass
        except (aiohttp.ClientConnectionError, TimeoutError):
            return False
        return True

    await wait_for(f"{url} to take connections", probe, within)


@asynccontextmanager
async def open_streams(chat: Chat, count: int) -> AsyncIterator[Tally]:
    """Inside the block `count` calls run at any time; at its end those that run are let finish."""
    tally, stopping = Tally(), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(_keep_calling(chat, tally, stopping))
        try:
            yield tally
        finally:
            stopping.set()


async def _keep_calling(chat: Chat, tally: Tally, stopping: asyncio.Event) -> None:
    while not stopping.is_set():
        if await _call(chat, tally) is not Outcome.OK:
            await asyncio.sleep(PAUSE_AFTER_FAILURE_S)


async def _call(chat: Chat, tally: Tally) -> Outcome:
    outcome, detail = await _stream(chat, tally)
    tally.add(outcome, detail)
    return outcome


async def _stream(chat: Chat, tally: Tally) -> tuple[Outcome, str]:
    begun = False
    try:
        async with (
            _session() as session,
            session.post(
                f"{chat.url}/v1/chat/completions", json=chat.body(stream=True), headers=dict(chat.headers)
            ) as answer,
        ):
            if answer.status != 200:
                return Outcome.REFUSED, f"{answer.status} {(await answer.text())[:200]}"
            begun = True
            async for line in answer.content:
                data = line.removeprefix(b"data:").strip()
                if data == b"[DONE]":
                    return Outcome.OK, ""
                if line.startswith(b"data:"):
                    event = json.loads(data)
                    if "error" in event:
                        return Outcome.CUT, str(event["error"])[:200]
                    tally.tokens += 1
            return Outcome.CUT, "the stream ended without [DONE]"
    except (aiohttp.ClientError, TimeoutError, OSError, json.JSONDecodeError) as error:
        return Outcome.CUT if begun else Outcome.REFUSED, f"{type(error).__name__}: {error}"


def _session() -> aiohttp.ClientSession:
    """A connection of its own for each call, as unrelated clients have."""
    timeout = aiohttp.ClientTimeout(total=CALL_TIMEOUT_S, sock_connect=10)
    return aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(force_close=True))
