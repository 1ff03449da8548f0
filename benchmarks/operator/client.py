"""The API server as the benchmark uses it: a few verbs over one aiohttp session, and watches that go on where they ended."""

import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import msgspec
from benchmarks.operator.control_plane import ControlPlane

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
LLMDEPLOYMENTS = "/apis/octavo.dev/v1alpha1"
LONGEST_LINE = 8 << 20  # of a watch


class Client:
    """An async context manager."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "Client":
        trust = ssl.create_default_context(cafile=str(self._plane.authority))
        self._session = aiohttp.ClientSession(
            self._plane.url,
            connector=aiohttp.TCPConnector(ssl=trust, limit=32),
            headers={"Authorization": f"Bearer {self._plane.token}"},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=10),
            read_bufsize=LONGEST_LINE,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.close()

    async def get(self, path: str) -> Object:
        """An object or a list."""
        answer: Object = msgspec.json.decode(await self._send("GET", path))
        return answer

    async def text(self, path: str) -> str:
        """A page that is not JSON."""
        return (await self._send("GET", path)).decode()

    async def create(self, collection: str, manifest: Mapping[str, Any]) -> Object:
        """POST."""
        answer: Object = msgspec.json.decode(await self._send("POST", collection, manifest))
        return answer

    async def patch(self, path: str, body: Mapping[str, Any], kind: str = MERGE) -> None:
        """PATCH; what comes back is of no interest."""
        await self._send("PATCH", path, body, kind)

    async def watch(self, collection: str) -> AsyncIterator[tuple[str, Object]]:
        """All objects as ADDED, then what changes, until the caller has enough."""
        version = "0"  # whatever the server has in memory; nothing is older than the watch that it comes before
        while True:
            async with self._open.get(f"{collection}?watch=1&resourceVersion={version}") as response:
                response.raise_for_status()
                async for line in response.content:
                    event = msgspec.json.decode(line)
                    if event["type"] == "ERROR":
                        raise RuntimeError(f"the watch of {collection} broke: {event['object']}")
                    version = event["object"]["metadata"]["resourceVersion"]
                    yield event["type"], event["object"]

    async def _send(self, method: str, path: str, body: object = None, kind: str = "application/json") -> bytes:
        data = None if body is None else msgspec.json.encode(body)
        async with self._open.request(method, path, data=data, headers={"Content-Type": kind}) as response:
            content = await response.read()
            if response.status >= 300:
                raise RuntimeError(f"{method} {path}: {response.status} {content[:500]!r}")
            return content

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client is not entered")
        return self._session
