"""A conversation with a server: history, starting over, the end of input."""

import io
from typing import Any

import pytest

from octavo_runtime.cli.main import run


def talk(monkeypatch: pytest.MonkeyPatch, text: str, *arguments: str) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return run(["chat", *arguments])


def test_history_goes_along_and_new_starts_over(
    server: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    status = talk(monkeypatch, "one\n\ntwo\n/new\nthree\n", "--url", server.url, "--system", "Be brief.", "--seed", "3")
    assert status == 0
    assert capsys.readouterr().out.count("Hello\n") == 3
    contents = [[message["content"] for message in body["messages"]] for body in server.bodies]
    assert contents == [
        ["Be brief.", "one"],
        ["Be brief.", "one", "Hello", "two"],
        ["Be brief.", "three"],
    ]
    assert server.bodies[0]["seed"] == 3
    assert server.bodies[0]["model"] == "tiny"


def test_conversation_with_a_model_loaded_here(llm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert talk(monkeypatch, "one\ntwo\n", "m", "--temperature", "0") == 0
    assert [message["content"] for message in llm.asked[1][0]] == ["one", "Hello", "two"]


def test_model_without_chat_template_is_refused(
    llm: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(llm, "has_chat_template", False)
    assert talk(monkeypatch, "one\n", "m") == 2
    assert "no chat template" in capsys.readouterr().err


def test_key_is_sent(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(monkeypatch, "one\n", "--url", server.url, "--api-key", "k")
    assert server.keys == ["Bearer k"]


def test_refusal_of_the_server_ends_with_one_sentence(
    server: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert talk(monkeypatch, "one\n", "--url", server.url, "--max-tokens", "400") == 1
    assert "max_tokens is wrong" in capsys.readouterr().err


def test_a_person_is_told_how_it_goes_and_a_pipe_is_not(
    server: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    talk(monkeypatch, "one\n", "--url", server.url)
    assert capsys.readouterr().err == ""
    terminal = type("Terminal", (io.StringIO,), {"isatty": lambda _: True})
    monkeypatch.setattr("sys.stdin", terminal("one\n"))
    assert run(["chat", "--url", server.url]) == 0
    assert "Ctrl-D ends" in capsys.readouterr().err
