"""Programs with a pid file: started once, ended surely, and never somebody else's."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from e2e.cluster.processes import Daemon, kill_tree, start_time, with_argument

pytestmark = pytest.mark.skipif(shutil.which("setsid") is None, reason="needs setsid")


def daemon(folder: Path, *command: str) -> Daemon:
    return Daemon(name="sleeper", command=command, pid_file=folder / "pids" / "sleeper", log=folder / "log")


def test_a_program_outlives_its_starter_and_ends_when_told(tmp_path: Path) -> None:
    sleeper = daemon(tmp_path, "sleep", "60")
    sleeper.start()
    pid = sleeper.pid()
    assert pid is not None
    assert os.getsid(pid) == pid
    sleeper.start()
    assert sleeper.pid() == pid
    sleeper.stop()
    assert not sleeper.alive()
    assert not sleeper.pid_file.exists()


def test_a_program_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    stubborn = daemon(tmp_path, "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    stubborn.start()
    while "ready" not in stubborn.tail():
        pass
    stubborn.stop(timeout=0.2)
    assert not stubborn.alive()


def test_a_pid_that_belongs_to_somebody_else_now_is_not_ours(tmp_path: Path) -> None:
    sleeper = daemon(tmp_path, "sleep", "60")
    with subprocess.Popen(["sleep", "60"]) as other:
        sleeper.pid_file.parent.mkdir()
        sleeper.pid_file.write_text(f"{other.pid} 12345\n")
        assert not sleeper.alive()
        sleeper.stop()
        assert start_time(other.pid)
        other.kill()


def test_a_program_that_ended_by_itself_is_not_alive(tmp_path: Path) -> None:
    short = daemon(tmp_path, "sh", "-c", "echo said; exit 3")
    short.start()
    while short.alive():
        pass
    assert short.tail() == "said\n"


def test_a_tree_is_killed_with_its_leaves() -> None:
    mark = "987.654321"
    with subprocess.Popen(["sh", "-c", f"sleep {mark} & sleep {mark} & wait"]) as shell:
        while len(with_argument("sleep", mark)) < 2:
            pass
        kill_tree(shell.pid)
    deadline = time.monotonic() + 5  # a signal takes a moment to arrive
    while [pid for pid in with_argument("sleep", mark) if start_time(pid)]:
        assert time.monotonic() < deadline
