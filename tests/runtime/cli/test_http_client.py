"""The small client: events, keys, and one sentence when something is wrong."""

from typing import Any

import pytest

from octavo_runtime.cli.http_client import Client, ServerUnreachableError


def test_model_and_events(server: Any) -> None:
    client = Client(server.url + "/v1/", "secret")
    assert client.model_name() == "tiny"
    events = list(client.stream("/v1/completions", {"prompt": "x"}))
    assert [event["choices"][0]["text"] for event in events] == ["Hel", "lo"]
    assert server.bodies == [{"prompt": "x", "stream": True}]
    assert server.keys == ["Bearer secret"]


def test_error_before_the_stream_shows_its_message(server: Any) -> None:
    with pytest.raises(ServerUnreachableError, match="answered 400: max_tokens is wrong"):
        list(Client(server.url).stream("/v1/completions", {"max_tokens": 400}))


def test_error_in_the_stream_is_not_taken_for_text(server: Any) -> None:
    server.error = {"message": "the engine died"}
    with pytest.raises(ServerUnreachableError, match="the engine died"):
        list(Client(server.url).stream("/v1/completions", {}))


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "nonsense", "ftp://x"])
def test_unreachable_server_is_one_sentence(url: str) -> None:
    with pytest.raises(ServerUnreachableError, match="check --url"):
        Client(url).model_name()
