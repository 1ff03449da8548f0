"""Verbs, exit statuses, and one sentence on standard error."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from octavo_runtime.cli.main import VERBS, run


def sentence(capsys: pytest.CaptureFixture[str]) -> str:
    written = capsys.readouterr()
    assert written.err.startswith("octavo: ")
    assert written.err.count("\n") == 1
    return written.err


def test_version_and_overview(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("octavo ")
    assert run(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [verb for verb in VERBS if verb not in shown] == []
    assert run([]) == 2


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run([verb, "--help"])
    assert caught.value.code == 0
    assert ("--dest" if verb == "download" else "--max-model-len") in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["swerve"], 2, "There is no verb 'swerve'"),
        (["plan"], 2, "No model is given"),
        (["download"], 2, "No model is given"),
        (["download", "m"], 2, "--dest is missing"),
        (["serve", "m", "--nonsense"], 2, "There is no argument --nonsense"),
        (["plan", "m", "--port-range", "1"], 2, "There is no argument --port-range"),
        (["plan", "m", "--block-size", "x"], 2, "--block-size"),
        (["plan", "/no/such/model"], 1, "There is no model at /no/such/model"),
        (["generate", "embedded", "hi", "--max-tokens", "x"], 2, "--max-tokens"),
        (["generate", "embedded", ""], 1, "prompt is empty"),
        (["chat", "--url", "http://127.0.0.1:9"], 1, "cannot be reached"),
        (["bench", "--url", "nonsense"], 1, "cannot be reached"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    arguments: list[str], status: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == status
    assert said in sentence(capsys)


def test_a_verb_of_a_pod_leaves_the_cause_of_wrong_arguments_where_it_was_told_to(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "cause"
    for place in (["--termination-log", str(log)], [f"--termination_log={log}"]):
        assert run(["serve", "m", "--nonsense", *place]) == 2
        assert json.loads(log.read_text())["cause"] == "InvalidSettings"
        log.unlink()
    assert run(["plan", "m", "--nonsense", "--termination-log", str(log)]) == 2
    assert not log.exists()
    capsys.readouterr()


def test_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("octavo_runtime.cli.plan.resolve_model", interrupt)
    assert run(["plan", "embedded"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_command_line_needs_no_torch() -> None:
    code = "import sys, octavo_runtime.cli.main; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
