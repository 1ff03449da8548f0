"""`octavo serve` before the server: settings, warnings, and the cause of a start that fails."""

import json
import logging
from pathlib import Path

import pytest

from octavo_runtime.cli.main import run
from octavo_runtime.settings import Settings


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """What the server was started with."""
    calls: list[Settings] = []

    def serve(settings: Settings) -> int:
        calls.append(settings)
        return 0

    monkeypatch.setattr("octavo_runtime.main.serve", serve)
    monkeypatch.setattr("octavo_runtime.cli.verb.configure_logging", lambda *_, **__: None)
    return calls


def test_settings_reach_the_server_and_retired_flags_are_told(
    served: list[Settings], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        assert run(["serve", "m", "--port", "1234", "--disable-log-requests"]) == 0
    assert (served[0].model.model, served[0].server.port) == ("m", 1234)
    assert "--disable-log-requests has no effect" in caplog.text


def test_wrong_settings_leave_their_cause(served: list[Settings], tmp_path: Path) -> None:
    log = tmp_path / "termination-log"
    assert run(["serve", "m", "--port", "x", "--termination-log", str(log)]) == 2
    assert json.loads(log.read_text())["cause"] == "InvalidSettings"
    assert served == []
