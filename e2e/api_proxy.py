"""`ApiProxy`: an API server between an operator and the real one. It notes every write, and misbehaves when it is told to.

It forwards to the test's `kubectl proxy`, so it works before any cluster. What it answers itself is what real servers say under
load, behind balancers and while they compact.
"""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

HOST = "127.0.0.1"
LEASES = "/leases/"
NOT_FORWARDED = ("Transfer-Encoding", "Content-Encoding", "Content-Length", "Connection", "Host", "Authorization")
REASONS = {409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable"}


@dataclass(frozen=True, slots=True)
class Trouble:
    """Which share of answers goes wrong, and how long a watch lasts; the default is a server that is well."""

    reads_refused: Mapping[int, float] = field(default_factory=dict)  # by status: not passed on
    writes_refused: Mapping[int, float] = field(default_factory=dict)
    lost: float = 0.0  # share of writes that are carried out, and whose answer nobody hears
    watch_seconds: float = 0.0  # the longest that a watch lasts before it breaks; 0: as long as the server wants


@dataclass(frozen=True, slots=True)
class Write:
    """A request that changes something, as it came."""

    at: float  # monotonic
    what: str  # PATCH /apis/...


@dataclass(slots=True)
class ApiProxy:
    """One operator's API server."""

    session: aiohttp.ClientSession
    trouble: Trouble
    dice: random.Random = field(default_factory=lambda: random.Random(7))
    writes: list[Write] = field(default_factory=list)  # but for those of Leases
    spoilt: Counter[str] = field(default_factory=Counter)  # what went wrong, and how often
    port: int = 0
    _hears: asyncio.Event = field(default_factory=asyncio.Event)

    def kubeconfig(self, file: Path) -> Path:
        """For a client of this proxy."""
        name = "proxy"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": name,
            "clusters": [{"name": name, "cluster": {"server": f"http://{HOST}:{self.port}"}}],
            "users": [{"name": name, "user": {"token": "none"}}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        }
        file.write_text(yaml.safe_dump(config))
        return file

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        is_write = request.method != "GET" and LEASES not in request.path
        if is_write:
            self.writes.append(Write(time.monotonic(), f"{request.method} {request.path}"))
        await self._hears.wait()
        if status := self._refusal(request.method):
            return self._refuse(status, f"{status} to {request.method}")
        headers = {name: value for name, value in request.headers.items() if name.title() not in NOT_FORWARDED}
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.session.request(
            request.method, request.path_qs, data=body or None, headers=headers, timeout=timeout
        ) as answer:
            if request.query.get("watch", "").lower() in ("1", "true"):
                return await self._watch(request, answer)
            content = await answer.read()
        if is_write and self.dice.random() < self.trouble.lost:
            self.spoilt["answer lost"] += 1
            return self._hang_up(request)
        kept = {name: value for name, value in answer.headers.items() if name.title() not in NOT_FORWARDED}
        return web.Response(status=answer.status, body=content, headers=kept)

    def fall_silent(self) -> None:
        """Requests wait, watches bring nothing, and connections stay open."""
        self._hears.clear()

    def speak_again(self) -> None:
        self._hears.set()

    def _refusal(self, method: str) -> int:
        """The status to refuse a request with; 0: let it pass."""
        shares = self.trouble.reads_refused if method == "GET" else self.trouble.writes_refused
        drawn = self.dice.random()
        for status, share in shares.items():
            if drawn < share:
                return status
            drawn -= share
        return 0

    def _refuse(self, status: int, what: str) -> web.Response:
        self.spoilt[what] += 1
        headers = {"Retry-After": "1"} if status == 429 else {}
        return web.json_response(_status_object(status), status=status, headers=headers)

    async def _watch(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        """Events as they come; at its time's end the watch breaks off, or says that its version is too old."""
        response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
        await response.prepare(request)
        seconds = self.dice.uniform(0, self.trouble.watch_seconds) if self.trouble.watch_seconds else None
        try:
            async with asyncio.timeout(seconds):
                async for line in answer.content:
                    await self._hears.wait()
                    await response.write(line)
        except TimeoutError:
            if self.dice.random() < 0.5:
                self.spoilt["watch cut"] += 1
                return self._hang_up(request)
            self.spoilt["410 in a watch"] += 1
            await response.write(json.dumps({"type": "ERROR", "object": _status_object(410)}).encode() + b"\n")
        return response

    def _hang_up(self, request: web.Request) -> web.StreamResponse:
        if request.transport is not None:
            request.transport.abort()
        return web.Response(status=500)  # to nobody


@asynccontextmanager
async def start_proxy(proxy_socket: Path, trouble: Trouble) -> AsyncIterator[ApiProxy]:
    """Listening on a port of this machine for as long as the block lasts."""
    connector = aiohttp.UnixConnector(path=str(proxy_socket), limit=0)
    async with aiohttp.ClientSession("http://localhost", connector=connector) as session:
        proxy = ApiProxy(session, trouble)
        proxy.speak_again()
        app = web.Application(client_max_size=16 << 20)
        app.router.add_route("*", "/{path:.*}", proxy.handle)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, HOST, 0).start()
            proxy.port = runner.addresses[0][1]
            yield proxy
        finally:
            await runner.cleanup()


def _status_object(status: int) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "status": "Failure",
        "code": status,
        "reason": REASONS[status],
        "message": f"the test answers {status}",
    }
