import asyncio

import pytest

from octavo_runtime.server import body

COMPLETIONS = "/v1/completions"
BROKEN = [
    (b"", None),
    (b"{", None),
    (b"nul", None),
    (b"[]", None),
    (b'"text"', None),
    (b'{"prompt": "a"} x', None),
    (b'{"prompt": "a", "temperature": NaN}', "temperature"),
    (b'{"prompt": "a", "top_p": Infinity}', "top_p"),
    (b'{"prompt": "a", "logit_bias": {"1": -Infinity}}', "logit_bias.1"),
    (b'{"prompt": "a", "temperature": 1e999}', "temperature"),
    (b'{"prompt": "a", "max_tokens": 1e999}', "max_tokens"),
    (b'{"prompt": "a", "temperature": ' + b"9" * 5000 + b"}", "temperature"),
    (b'{"prompt": "\xff\xfe"}', "prompt"),
    (b'{"prompt": ["ok", "\xe2\x82"]}', "prompt[1]"),
    (b'{"prompt": "\\ud800"}', "prompt"),
    (b'{"prompt": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "prompt[0][0]"),
    (b'{"x": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}", None),
    (b"\x00\x01\x02", None),
]


async def test_broken_json_is_answered_with_400(serve):
    served = await serve()
    for data, param in BROKEN:
        status, reply = await served.raw(COMPLETIONS, data)
        assert status == 400, data[:60]
        assert reply["error"]["param"] == param, (data[:60], reply)
    await served.complete()


async def test_long_input_is_not_echoed(serve):
    served = await serve()
    for field in ("truncation_side", "model", "temperature"):
        _, reply = await served.post(COMPLETIONS, {"prompt": "a", field: "y" * 100_000})
        assert len(reply["error"]["message"]) < 400
        assert reply["error"]["param"] == field


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded"])
async def test_other_content_types_get_415(serve, content_type):
    served = await serve()
    async with served.client.post(COMPLETIONS, data=b"{}", headers={"Content-Type": content_type}) as response:
        assert response.status == 415
        assert "application/json" in (await response.json())["error"]["message"]


async def test_stalled_body_gets_408(serve, monkeypatch):
    monkeypatch.setattr(body, "_BODY_SECONDS", 0.05)
    served = await serve()
    reader, writer = await asyncio.open_connection("127.0.0.1", served.client.port)
    writer.write(
        b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    )
    head = await asyncio.wait_for(reader.readline(), 2)
    assert b" 408 " in head
    writer.close()
    await writer.wait_closed()


async def test_body_over_the_limit_gets_413(serve):
    served = await serve(max_body_bytes=1000)
    status, reply = await served.post(COMPLETIONS, {"prompt": "x" * 2000})
    assert (status, reply["error"]["type"]) == (413, "PayloadTooLargeError")
