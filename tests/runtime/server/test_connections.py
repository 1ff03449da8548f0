"""Idle connections are sent elsewhere by a drain; busy ones and those used just now are left alone."""

import asyncio
import gc

from octavo_runtime.server import connections
from octavo_runtime.server.connections import Connections


class Clock:
    now = 10.0

    def __call__(self):
        return self.now


class FakeTransport:
    closed = False

    def is_closing(self):
        return self.closed

    def close(self):
        self.closed = True


def test_only_what_has_been_quiet_is_closed():
    clock = Clock()
    made = Connections(clock)
    quiet, busy, recent = FakeTransport(), FakeTransport(), FakeTransport()
    for transport in (quiet, busy):
        made.begin(transport)
        made.end(transport)
    clock.now += 5
    made.begin(busy)
    made.begin(recent)
    made.end(recent)
    made.end(None)
    made.begin(None)
    made.close_idle()
    assert [transport.closed for transport in (quiet, busy, recent)] == [True, False, False]
    clock.now += 5
    made.close_idle()
    assert [busy.closed, recent.closed] == [False, True]


def test_connections_that_are_gone_are_forgotten():
    made = Connections()
    transport = FakeTransport()
    made.end(transport)
    del transport
    gc.collect()
    assert len(made._idle_since) == 0


async def test_a_client_that_kept_its_connection_comes_back_on_another_one(serve, monkeypatch):
    monkeypatch.setattr(connections, "QUIET_SECONDS", 0.0)
    served = await serve(admin_keys=("admin",))
    host, port = served.client.host, served.client.port
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b"200 OK" in await reader.read(4096)
    served.drain.ask()
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    await served.complete()


async def test_a_stream_goes_on_to_its_end(serve, monkeypatch):
    monkeypatch.setattr(connections, "QUIET_SECONDS", 0.0)
    served = await serve()
    served.engine.step_seconds = 0.02
    stream = asyncio.create_task(served.stream("/v1/completions"))
    await asyncio.sleep(0.1)
    served.drain.ask()
    events = await stream
    assert events[-1]["choices"][0]["finish_reason"] == "stop"
