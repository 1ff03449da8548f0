"""`octavo generate`: text on standard output, nothing else."""

import io
from typing import Any

import pytest

from octavo_runtime.cli.main import run


def test_prompt_and_sampling_reach_the_model(llm: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", "m", "Say hello", "--temperature", "0", "--seed", "4"]) == 0
    assert capsys.readouterr().out == "Hello\n"
    ((prompt, params),) = llm.asked
    assert (prompt, params.temperature, params.seed, params.top_p) == ("Say hello", 0.0, 4, 0.5)


def test_prompt_may_come_from_standard_input(llm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("two\nlines\n"))
    assert run(["generate", "m"]) == 0
    assert llm.asked[0][0] == "two\nlines\n"


@pytest.mark.usefixtures("llm")
def test_interrupt_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", "m", "interrupt"]) == 130
    assert capsys.readouterr().err == "\n"
