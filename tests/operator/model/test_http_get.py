import asyncio
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from yarl import URL

from octavo_operator.model.http_get import Getter, Span, Timeouts, redirect_target
from octavo_operator.model.problem import ModelProblem
from octavo_operator.reasons import Reason

CONTENT = bytes(range(256)) * 1024
TOKEN = "hf_verysecret"


class Pages:
    """A server with a page per behaviour. `seen`: the Authorization header of each request, by path."""

    def __init__(self) -> None:
        self.seen: dict[str, str | None] = {}
        self.elsewhere = ""

    def app(self) -> web.Application:
        app = web.Application()
        for name in ("whole", "ranges", "away", "circle", "scheme", "hang", "broken", "refused", "wrong"):
            app.router.add_get(f"/{name}", getattr(self, name))
        app.middlewares.append(self._note)
        return app

    @web.middleware
    async def _note(self, request: web.Request, handler: Callable[..., object]) -> web.StreamResponse:
        self.seen[request.path] = request.headers.get("Authorization")
        response = await handler(request)  # type: ignore[misc]
        assert isinstance(response, web.StreamResponse)
        return response

    async def whole(self, _: web.Request) -> web.Response:
        return web.Response(body=CONTENT)

    async def ranges(self, request: web.Request) -> web.Response:
        wanted = request.http_range
        assert wanted.start is not None
        if wanted.start >= len(CONTENT):
            return web.Response(status=416)
        part = CONTENT[wanted]
        headers = {"Content-Range": f"bytes {wanted.start}-{wanted.start + len(part) - 1}/{len(CONTENT)}"}
        return web.Response(status=206, body=part, headers=headers)

    async def away(self, _: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": f"{self.elsewhere}/whole"})

    async def circle(self, _: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "/circle"})

    async def scheme(self, _: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "file:///etc/passwd"})

    async def hang(self, _: web.Request) -> web.Response:
        await asyncio.sleep(60)
        return web.Response()

    async def broken(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.content_length = 1000
        await response.prepare(request)
        await response.write(b"only this")
        assert request.transport is not None
        request.transport.close()
        return response

    async def refused(self, _: web.Request) -> web.Response:
        return web.Response(status=403, text="a page for people")

    async def wrong(self, _: web.Request) -> web.Response:
        return web.Response(status=206, body=b"x", headers={"Content-Range": "bytes */?"})


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.fixture
async def address(pages: Pages) -> AsyncIterator[str]:
    async with TestServer(pages.app()) as server:
        pages.elsewhere = f"http://localhost:{server.port}"  # the same server under another name
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
async def getter() -> AsyncIterator[Getter]:
    async with aiohttp.ClientSession() as session:
        yield Getter(session, Timeouts(connect=1, read=0.2, attempt=2))


async def refusal(getter: Getter, url: str, limit: int = 1 << 20, span: Span | None = None) -> str:
    with pytest.raises(ModelProblem) as caught:
        await getter.get(url, TOKEN, limit, span)
    assert caught.value.reason is Reason.HUB_UNREACHABLE
    assert TOKEN not in caught.value.message
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return caught.value.message


async def test_a_whole_file_comes_with_its_size(getter: Getter, address: str) -> None:
    answer = await getter.get(f"{address}/whole", None, 1 << 20)
    assert (answer.status, answer.body, answer.total) == (200, CONTENT, len(CONTENT))


async def test_more_than_the_limit_is_refused(getter: Getter, address: str) -> None:
    assert "more than 1000 bytes" in await refusal(getter, f"{address}/whole", 1000)


@pytest.mark.parametrize("page", ["ranges", "whole"])
@pytest.mark.parametrize(("start", "length"), [(0, 10), (70_000, 1000), (len(CONTENT) - 5, 100)])
async def test_a_span_is_the_same_from_a_server_that_ignores_spans(
    getter: Getter, address: str, page: str, start: int, length: int
) -> None:
    answer = await getter.get(f"{address}/{page}", None, 1, Span(start, length))
    assert answer.body == CONTENT[start : start + length]
    assert answer.total == len(CONTENT)


async def test_a_span_behind_the_end_is_answered_with_416(getter: Getter, address: str) -> None:
    answer = await getter.get(f"{address}/ranges", None, 1, Span(len(CONTENT), 1))
    assert (answer.status, answer.body) == (416, b"")


async def test_a_token_is_sent_to_its_host_and_to_no_other(getter: Getter, address: str, pages: Pages) -> None:
    answer = await getter.get(f"{address}/away", TOKEN, 1 << 20)
    assert answer.body == CONTENT
    assert pages.seen == {"/away": f"Bearer {TOKEN}", "/whole": None}


async def test_a_token_stays_when_the_redirect_stays(getter: Getter, address: str, pages: Pages) -> None:
    pages.elsewhere = address
    await getter.get(f"{address}/away", TOKEN, 1 << 20)
    assert pages.seen["/whole"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("page", "says"),
    [
        ("circle", "circles"),
        ("scheme", "an address that is none"),
        ("hang", "does not answer in time"),
        ("broken", "broke the connection off"),
    ],
)
async def test_a_server_that_misbehaves_is_unreachable(getter: Getter, address: str, page: str, says: str) -> None:
    message = await refusal(getter, f"{address}/{page}")
    assert says in message
    assert "127.0.0.1" in message


async def test_nobody_there_is_unreachable(getter: Getter, unused_tcp_port: int) -> None:
    assert "cannot be reached: connection refused" in await refusal(getter, f"http://127.0.0.1:{unused_tcp_port}/x")


async def test_a_name_that_nobody_knows_is_said_so(getter: Getter) -> None:
    message = await refusal(getter, "https://hub.invalid/x")
    assert message == "https://hub.invalid cannot be reached: its name is not known to the DNS."


async def test_a_server_without_tls_is_said_so(getter: Getter, address: str) -> None:
    assert "speaks no TLS" in await refusal(getter, address.replace("http:", "https:") + "/whole")


async def test_the_page_of_a_refusal_is_not_read(getter: Getter, address: str) -> None:
    answer = await getter.get(f"{address}/refused", None, 1 << 20)
    assert (answer.status, answer.body) == (403, b"")


async def test_a_size_that_is_not_told_is_not_known(getter: Getter, address: str) -> None:
    assert (await getter.get(f"{address}/wrong", None, 10, Span(0, 1))).total is None


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/other?sig=a%2Fb", "https://host:8443/other?sig=a%2Fb"),
        ("https://cdn/x", "https://cdn/x"),
        ("//cdn/x", "https://cdn/x"),
    ],
)
def test_a_redirect_is_read_as_it_is_written(location: str, target: str) -> None:
    assert str(redirect_target(URL("https://host:8443/a/b"), location)) == target


@pytest.mark.parametrize("location", ["http://host/x", "ftp://host/x", "https://host:port/x"])
def test_a_redirect_to_something_less_safe_is_refused(location: str) -> None:
    with pytest.raises(ModelProblem) as caught:
        redirect_target(URL("https://host/a"), location)
    assert caught.value.reason is Reason.HUB_UNREACHABLE
