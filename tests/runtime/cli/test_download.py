"""`octavo download` as a Job runs it: a process of its own against a hub."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from octavo_runtime.cli.main import run
from octavo_runtime.hub import resolve_model

COMMIT = "c" * 40


@pytest.fixture
def command(hub: Any, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts it; HOME does not exist, as in a container of a strange user."""
    started: list[subprocess.Popen[str]] = []

    def start(*flags: str, dest: Path = tmp_path / "models/tiny") -> subprocess.Popen[str]:
        environment = {
            **os.environ, "HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HOME": "/nonexistent", "HF_HUB_OFFLINE": "0",
        }  # fmt: skip
        words = ["download", "org/tiny", "--dest", str(dest), "--termination-log", str(tmp_path / "cause"), *flags]
        process = subprocess.Popen(
            [sys.executable, "-m", "octavo_runtime", *words], stderr=subprocess.PIPE, text=True, env=environment
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def end(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, log = process.communicate(timeout=60)
    return process.returncode, log


def cause(tmp_path: Path) -> str:
    return str(json.loads((tmp_path / "cause").read_text())["cause"])


def test_a_folder_is_made_that_needs_no_network_and_a_second_run_ends_at_once(
    command: Callable[..., subprocess.Popen[str]], hub: Any, tmp_path: Path
) -> None:
    code, log = end(command("--revision", COMMIT, "--log-format", "json"))
    assert code == 0, log
    assert all(json.loads(line)["message"] for line in log.splitlines())
    source = resolve_model(str(tmp_path / "models/tiny"))
    assert (source.revision, source.config["architectures"]) == (COMMIT, ["LlamaForCausalLM"])
    hub.asked.clear()
    assert end(command("--revision", COMMIT))[0] == 0
    assert hub.asked == []
    assert not (tmp_path / "hf").exists()
    assert not (tmp_path / "cause").exists()


def test_globs_choose_the_files(command: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    assert end(command("--allow-files", "*.md", "*.json", "--ignore-files", "config.*"))[0] == 0
    names = sorted(path.name for path in (tmp_path / "models/tiny").iterdir())
    assert names == [".octavo-complete", "README.md"]


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        (("--revision", "nope"), "RevisionNotFound"),
        (("--digest", "sha256:" + "0" * 64), "DigestMismatch"),
        (("--startup-timeout", "x"), "InvalidSettings"),
        (("--status-port", "0"), "InvalidSettings"),
    ],
)
def test_what_goes_wrong_leaves_its_cause(
    command: Callable[..., subprocess.Popen[str]], tmp_path: Path, flags: tuple[str, ...], wanted: str
) -> None:
    code, log = end(command(*flags))
    assert code in (1, 2), log
    assert "octavo: " in log.splitlines()[-1]
    assert cause(tmp_path) == wanted
    assert not (tmp_path / "models/tiny").exists()


def test_a_rate_limit_that_outlasts_the_budget_is_the_cause(
    command: Callable[..., subprocess.Popen[str]], hub: Any, trouble: Any, tmp_path: Path
) -> None:
    hub.troubles = [trouble("model.safetensors", 429, times=99, headers={"Retry-After": "600"})]
    code, log = end(command("--startup-timeout", "30"))
    assert (code, cause(tmp_path)) == (1, "ModelRateLimited"), log


def test_sigterm_ends_it_cleanly_with_another_status_than_success_and_the_next_run_goes_on(
    command: Callable[..., subprocess.Popen[str]], hub: Any, trouble: Any, tmp_path: Path
) -> None:
    hub.troubles = [trouble("model.safetensors"), trouble("model.safetensors", 429, 99, {"Retry-After": "250"})]
    process = command("--status-port", str(port := free_port()))
    status = wait_for(port, lambda status: (status["problem"] or {}).get("cause") == "ModelRateLimited")
    assert status["phase"] == "Downloading"
    assert status["progress"] == {"done_bytes": 39 + 5120, "total_bytes": 10279}
    assert status["capacity"] is None
    started = time.monotonic()
    process.send_signal(signal.SIGTERM)
    code, log = end(process)
    assert code == 143, log
    assert time.monotonic() - started < 5
    assert "stopped at: Downloading" in log
    assert not (tmp_path / "cause").exists()
    assert not (tmp_path / "models/tiny").exists()
    hub.troubles.clear()
    hub.asked.clear()
    assert end(command())[0] == 0
    assert [asked for path, asked, _ in hub.asked if path.endswith("model.safetensors")] == ["bytes=5120-"]


def test_runs_beside_each_other_into_one_folder_do_not_hurt(
    command: Callable[..., subprocess.Popen[str]], hub: Any, tmp_path: Path
) -> None:
    hub.weights |= {f"w{number}.safetensors": bytes([number]) * 100_000 for number in range(4)}
    ends = [end(process) for process in [command() for _ in range(3)]]
    assert [code for code, _ in ends] == [0, 0, 0], ends
    assert len(list((tmp_path / "models/tiny").glob("*.safetensors"))) == 5
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["tiny"]


def test_what_is_here_already_needs_no_download(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--dest", str(tmp_path / "d"), "--termination-log", str(tmp_path / "cause")]
    assert run(["download", str(tmp_path), *arguments]) == 2
    assert "octavo serve takes it as it is" in capsys.readouterr().err


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def wait_for(port: int, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=5) as response:
                status: dict[str, Any] = json.load(response)
            if true(status):
                return status
        except OSError:
            pass
        threading.Event().wait(0.02)
