"""Logging of a verb: quiet at a terminal unless more is asked for."""

import argparse

import pytest

from octavo_runtime.cli.verb import Arguments
from octavo_runtime.settings import Settings


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Levels that logging was set to."""
    used: list[str] = []
    monkeypatch.setattr("octavo_runtime.cli.verb.configure_logging", lambda level, **_: used.append(level))
    return used


@pytest.mark.parametrize(
    ("chosen", "quiet", "used"),
    [("info", False, "info"), ("info", True, "warning"), ("debug", True, "debug"), ("error", True, "error")],
)
def test_quiet_raises_the_default_level_only(chosen: str, quiet: bool, used: str, levels: list[str]) -> None:
    settings = Settings.from_values({"model": "m", "log_level": chosen})
    Arguments(argparse.Namespace(), []).begin_logging(settings, quiet)
    assert levels == [used]


def test_warnings_are_logged(levels: list[str], caplog: pytest.LogCaptureFixture) -> None:
    Arguments(argparse.Namespace(), ["--x has no effect."]).begin_logging(Settings.from_values({"model": "m"}))
    assert caplog.messages == ["--x has no effect."]
    assert levels == ["info"]


@pytest.mark.usefixtures("levels")
def test_a_variable_that_is_nearly_one_of_ours_is_told_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCTAVO_MAX_NUM_SEQ", "1")
    Arguments(argparse.Namespace(), []).begin_logging(Settings.from_values({"model": "m"}))
    assert caplog.messages == ["OCTAVO_MAX_NUM_SEQ is not a setting; did you mean OCTAVO_MAX_NUM_SEQS?"]
