"""The command: its exit status and its one sentence."""

import logging

import pytest

from octavo_operator import __main__
from octavo_operator.kube_client import Unavailable
from octavo_operator.settings import OperatorSettings


@pytest.fixture(autouse=True)
def logging_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(__main__, "configure_logging", lambda _level, *, as_json: logging.debug(as_json))


def run_like(error: Exception | None, monkeypatch: pytest.MonkeyPatch) -> int:
    async def run(_: OperatorSettings) -> None:
        if error:
            raise error

    monkeypatch.setattr(__main__, "run", run)
    return __main__.main()


def test_an_orderly_end_is_success(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_like(None, monkeypatch) == 0


def test_no_cluster_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_like(Unavailable(0, "no way to a cluster"), monkeypatch) == 1
    assert capsys.readouterr().err == "octavo-operator: no way to a cluster\n"


def test_a_setting_that_cannot_be_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OCTAVO_OPERATOR_WORKERS", "none")
    assert run_like(None, monkeypatch) == 2
    assert "OCTAVO_OPERATOR_WORKERS" in capsys.readouterr().err
