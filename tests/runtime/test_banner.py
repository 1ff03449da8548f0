"""What a person sees while the server starts."""

import json
import logging
import shlex
from typing import Any

import pytest

from octavo_runtime.banner import Banner
from octavo_runtime.engine.messages import LoadProgress
from octavo_runtime.server.testing import ready_message
from octavo_runtime.settings import Settings


def banner(**values: Any) -> Banner:
    return Banner(Settings.from_values({"model": "m", **values}))


def shown_command(capsys: pytest.CaptureFixture[str]) -> list[str]:
    text = capsys.readouterr().err
    return shlex.split(text[text.index("curl ") :].replace("\\\n", ""))


def test_the_command_to_try_is_one_that_a_shell_takes(capsys: pytest.CaptureFixture[str]) -> None:
    shown = banner()
    shown.listening(8123, tls=False)
    shown.ready(ready_message(), "some/model", with_key=False)
    words = shown_command(capsys)
    assert words[:2] == ["curl", "http://localhost:8123/v1/chat/completions"]
    assert "Content-Type: application/json" in words
    body = json.loads(words[words.index("-d") + 1])
    assert body["model"] == "some/model"
    assert body["messages"][0]["role"] == "user"
    assert not any("Authorization" in word for word in words)


def test_the_url_names_the_host_and_tls(capsys: pytest.CaptureFixture[str]) -> None:
    shown = banner(host="10.1.2.3")
    shown.listening(443, tls=True)
    shown.ready(ready_message(), "m", with_key=False)
    assert "https://10.1.2.3:443/v1/chat/completions" in shown_command(capsys)


def test_a_server_with_keys_asks_for_one_and_shows_none(capsys: pytest.CaptureFixture[str]) -> None:
    shown = banner(api_key=["very-secret"])
    shown.listening(1, tls=False)
    shown.ready(ready_message(), "m", with_key=True)
    text = capsys.readouterr().err
    assert '"Authorization: Bearer $KEY"' in text  # double quotes: the shell puts the key in
    assert "very-secret" not in text


def test_json_logs_hold_nothing_that_is_not_json(capsys: pytest.CaptureFixture[str]) -> None:
    shown = banner(log_format="json")
    shown.listening(1, tls=False)
    shown.ready(ready_message(), "m", with_key=False)
    assert "curl" not in capsys.readouterr().err


def test_an_ipv6_address_stands_in_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    shown = banner(host="::1")
    shown.listening(8000, tls=False)
    shown.ready(ready_message(), "m", with_key=False)
    assert "http://[::1]:8000/v1/" in capsys.readouterr().err


def test_without_a_terminal_loading_is_one_line_per_phase(caplog: pytest.LogCaptureFixture) -> None:
    shown = banner()
    with caplog.at_level(logging.INFO):
        shown.listening(1, tls=False)
        for phase in ("open", "weights", "weights", "weights", "warm-up"):
            shown.progress(LoadProgress(phase=phase, done_bytes=1, total_bytes=2))
    assert [record.getMessage() for record in caplog.records[1:]] == [
        "loading: open",
        "loading: weights",
        "loading: warm-up",
    ]
