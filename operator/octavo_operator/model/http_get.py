"""One HTTP GET, whole or a span of bytes: bounded, timed, and without handing a token to another host.

The only place of `model/` that talks to the network. Knows no hub; a failure of the network is a
ModelProblem(HUB_UNREACHABLE), whose message never holds a header or a body.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from yarl import URL

from octavo_operator.model.problem import ModelProblem
from octavo_operator.reasons import Reason

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS = 5
_MAX_SKIPPED = 64 << 20  # bytes thrown away when a server ignores Range and sends the whole file
_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Span:
    """`length` bytes from `start`."""

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. The body is empty unless the status is 200 or 206; `total`: size of the whole file if told."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    total: int | None = None


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to connect, between two pieces of an answer, and for one whole answer."""

    connect: float = 10.0
    read: float = 30.0
    attempt: float = 120.0


class Getter:
    """GETs over a session that somebody else closes."""

    def __init__(self, session: aiohttp.ClientSession, timeouts: Timeouts) -> None:
        self._session = session
        self._timeout = aiohttp.ClientTimeout(
            total=timeouts.attempt, sock_connect=timeouts.connect, sock_read=timeouts.read
        )

    async def get(self, url: str, token: str | None, limit: int, span: Span | None = None) -> Answer:
        """At most `limit` bytes, or the span's (fewer where the file ends). Follows redirects; raises ModelProblem."""
        at = URL(url, encoded=True)
        for _ in range(_MAX_REDIRECTS + 1):
            headers = _headers(token, span)
            try:
                async with self._session.get(
                    at, headers=headers, allow_redirects=False, timeout=self._timeout
                ) as response:
                    target = response.headers.get("Location")
                    if response.status not in _REDIRECTS or not target:
                        return await _answer(response, limit, span)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                # `from None`: the library's exceptions carry the request with its headers
                raise _unreachable(at, _reason(error, at)) from None
            before, at = at, redirect_target(at, target)
            if at.origin() != before.origin():
                token = None
        raise _unreachable(at, "redirects in circles")


def _headers(token: str | None, span: Span | None) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity"}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if span:
        headers["Range"] = f"bytes={span.start}-{span.start + span.length - 1}"
    return headers


def redirect_target(at: URL, location: str) -> URL:
    """Where a redirect leads. Raises ModelProblem for what is no address or less safe than this one."""
    try:
        target = at.join(URL(location, encoded=True))
        usable = target.scheme in ("http", "https") and bool(target.host)
    except ValueError:
        usable = False
    if not usable:
        raise _unreachable(at, "redirects to an address that is none")
    if at.scheme == "https" and target.scheme != "https":
        raise _unreachable(at, "redirects from https to http")
    return target


async def _answer(response: aiohttp.ClientResponse, limit: int, span: Span | None) -> Answer:
    if response.status not in (200, 206):
        return Answer(response.status, response.headers, b"")
    total = response.content_length if response.status == 200 else _total(response.headers.get("Content-Range", ""))
    skip = span.start if span and response.status == 200 else 0
    if skip > _MAX_SKIPPED:
        raise _unreachable(response.url, "does not answer requests for a part of a file")
    body = await _read(response, skip, span.length if span else limit, cut=span is not None)
    return Answer(response.status, response.headers, body, total)


async def _read(response: aiohttp.ClientResponse, skip: int, most: int, cut: bool) -> bytes:
    """`most` bytes behind `skip`; more than that is an error unless `cut`."""
    data = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        dropped = min(skip, len(chunk))
        skip -= dropped
        data += chunk[dropped:]
        if len(data) > most and not cut:
            raise _unreachable(response.url, f"sends more than {most} bytes")
        if cut and len(data) >= most:
            break
    return bytes(data[:most])


def _total(content_range: str) -> int | None:
    """`bytes 0-9/4711` -> 4711."""
    size = content_range.rpartition("/")[2]
    return int(size) if size.isascii() and size.isdigit() else None


def _unreachable(url: URL, what: str) -> ModelProblem:
    where = f"{url.scheme}://{url.host or ''}{f':{url.explicit_port}' if url.explicit_port else ''}"
    return ModelProblem(Reason.HUB_UNREACHABLE, f"{where} {what}.")


def _reason(error: Exception, at: URL) -> str:
    """In words: the library's classes mean nothing to who reads a status, and its texts hold addresses."""
    match error:
        case aiohttp.ClientConnectorDNSError():
            whose = "its name" if error.host == at.host else "the name of the proxy before it"
            return f"cannot be reached: {whose} is not known to the DNS"
        case aiohttp.ClientSSLError() | aiohttp.ClientConnectorCertificateError():
            return "cannot be reached: its certificate is not trusted, or it speaks no TLS"
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return "cannot be reached: the proxy before it does not let this through"
        case TimeoutError():
            return "does not answer in time"
        case aiohttp.ClientConnectorError():
            number = error.os_error.errno
            return f"cannot be reached: {os.strerror(number).lower() if number else 'no connection'}"
        case aiohttp.ClientConnectionError() | aiohttp.ClientPayloadError():
            return "broke the connection off"
        case OSError():
            return f"cannot be reached: {error.strerror or 'no connection'}"
        case _:
            return "does not answer as a web server should"
