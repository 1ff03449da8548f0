"""`Web`: calls to a hub or a file server, with every refusal as a typed error.

A refusal that may pass is a `TryLaterError` (no connection, 429, 5xx), any other a StartError that says what to do. Given
the hub's access; knows no files on disk.
"""

import contextlib
import json
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from time import time
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.access import HubAccess
from octavo_runtime.fetch.patience import TryLaterError

_CONNECT_SECONDS, _READ_SECONDS = 15.0, 60.0
_RATE_LIMIT = re.compile(r"\bt=(\d+)")  # `RateLimit: "api";r=0;t=55`
_MAX_JSON = 64 << 20
_LONGEST_ASKED = 3600.0  # seconds that a server may ask us to wait


class Web:
    """One session. `model` is the name in sentences."""

    def __init__(self, session: aiohttp.ClientSession, access: HubAccess, model: str, revision: str | None) -> None:
        self.access = access
        self._session = session
        self._model = model
        self._revision = revision

    @classmethod
    @asynccontextmanager
    async def connect(cls, access: HubAccess, model: str, revision: str | None = None) -> AsyncIterator["Web"]:
        """Proxies as the environment names them. Content comes as it is stored, so that lengths and ranges count."""
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS, sock_read=_READ_SECONDS)
        headers = {"User-Agent": "octavo", "Accept-Encoding": "identity"}
        connector = aiohttp.TCPConnector(ssl=_trust())
        async with aiohttp.ClientSession(
            connector=connector, timeout=timeout, headers=headers, trust_env=True
        ) as session:
            yield cls(session, access, model, revision)

    async def get_json(self, path: str) -> Any:
        """A JSON answer of the hub."""
        async with self.get(self.access.endpoint + path, hub=True) as response:
            content = await _read(response, _MAX_JSON)
        try:
            return json.loads(content)
        except ValueError as error:
            raise TryLaterError(
                StartCause.HUB_UNREACHABLE, f"{self._host} answers {path} with something that is not JSON."
            ) from error

    @asynccontextmanager
    async def get(
        self, url: str, *, hub: bool, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer of 200, 206 or 416. `hub`: the token goes with it (and not beyond a redirect to another host)."""
        sent = dict(headers or {})
        if hub and self.access.token:
            sent["Authorization"] = f"Bearer {self.access.token}"
        try:
            async with self._session.get(url, headers=sent) as response:
                if response.status not in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT, _UNSATISFIABLE):
                    raise self._refusal(response)
                yield response
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            reason = str(error) or type(error).__name__
            message = (
                f"{self._model} could not be fetched: {_host_of(url)} is not reachable ({reason}); check the network."
            )
            raise TryLaterError(StartCause.HUB_UNREACHABLE, message) from error

    def _refusal(self, response: aiohttp.ClientResponse) -> Exception:
        status, code = response.status, response.headers.get("X-Error-Code", "")
        host = response.url.host or "the server"
        if status == HTTPStatus.TOO_MANY_REQUESTS:
            seconds = retry_after(response.headers)
            message = f"{host} limits the rate of requests for {self._model}; set HF_TOKEN for a higher limit, or wait."
            return TryLaterError(StartCause.MODEL_RATE_LIMITED, message, seconds)
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.REQUEST_TIMEOUT:
            message = f"{self._model} could not be fetched: {host} answers {status}; try again later."
            return TryLaterError(StartCause.HUB_UNREACHABLE, message, retry_after(response.headers))
        if code == "RepoNotFound":
            return StartError(StartCause.MODEL_NOT_FOUND, self._unknown())
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            return StartError(StartCause.MODEL_ACCESS_DENIED, self._denied())
        if status == HTTPStatus.NOT_FOUND:
            return self._not_found(code)
        return StartError(StartCause.MODEL_NOT_FOUND, f"{host} answers {status} for {self._model}; check its name.")

    def _not_found(self, code: str) -> Exception:
        if code == "RevisionNotFound":
            return self.revision_not_found()
        if code == "EntryNotFound":
            return StartError(StartCause.MODEL_NOT_FOUND, f"{self._model} has no such file; check the file's name.")
        return StartError(StartCause.MODEL_NOT_FOUND, self._unknown())

    def revision_not_found(self) -> StartError:
        """The repository is there, the revision is not."""
        message = f"{self._model} has no revision {self._revision}; check --revision."
        return StartError(StartCause.REVISION_NOT_FOUND, message)

    def _unknown(self) -> str:
        return f"There is no model {self._model} on {self._host} (if it is private, set HF_TOKEN); check the name."

    def _denied(self) -> str:
        token = "HF_TOKEN may not read it" if self.access.token else "no HF_TOKEN is set"
        return (
            f"Access to {self._model} is denied ({token}); accept its licence on the hub and set HF_TOKEN to a token that "
            "may read it."
        )

    @property
    def _host(self) -> str:
        return _host_of(self.access.endpoint)


_UNSATISFIABLE = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the answer asks to wait: Retry-After as a number or a date, or the reset of a RateLimit header."""
    written = headers.get("Retry-After", "").strip()
    seconds: float | None = None
    if written.isdecimal():
        seconds = float(written)
    elif written:
        with contextlib.suppress(ValueError, TypeError):
            seconds = parsedate_to_datetime(written).timestamp() - time()
    elif match := _RATE_LIMIT.search(headers.get("RateLimit", "")):
        seconds = float(match[1])
    return None if seconds is None else min(max(0.0, seconds), _LONGEST_ASKED)


async def _read(response: aiohttp.ClientResponse, limit: int) -> bytes:
    content = bytearray()
    async for chunk in response.content.iter_chunked(1 << 18):
        content += chunk
        if len(content) > limit:
            raise TryLaterError(StartCause.HUB_UNREACHABLE, f"{response.url.host} sends an answer without end.")
    return bytes(content)


def _host_of(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2]


def _trust() -> ssl.SSLContext:
    """The system's authorities, and those of `certifi` where an image has none of its own."""
    context = ssl.create_default_context()
    with contextlib.suppress(ImportError):
        import certifi

        context.load_verify_locations(certifi.where())
    return context
