"""Long-running programs of the cluster, each with its pid in a file: only what was started here is ever ended.

A pid file holds the pid and the process's start time, so that a pid which the kernel gave to somebody else in the meantime is
never taken for ours.
"""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.settings import child_environment

POLL_S = 0.02


class ProcessError(RuntimeError):
    """A program did not start; the message has the end of its log."""


@dataclass(frozen=True, slots=True)
class Daemon:
    """One program: its command, its pid file and its log."""

    name: str
    command: Sequence[str | Path]
    pid_file: Path
    log: Path
    environment: tuple[tuple[str, str], ...] = ()

    def start(self) -> None:
        """Start it unless it runs."""
        if self.alive():
            return
        self.pid_file.parent.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.pid_file.unlink(missing_ok=True)
        # A session of its own and no parent to wait for it: it outlives this command, and init reaps it.
        script = 'echo $$ > "$1"; log=$2; shift 2; exec "$@" >> "$log" 2>&1 < /dev/null'
        words = [str(word) for word in self.command]
        launcher = ["setsid", "--fork", "sh", "-c", script, "sh", str(self.pid_file), str(self.log), *words]
        subprocess.run(launcher, check=True, env=child_environment(**dict(self.environment)), cwd="/")
        deadline = time.monotonic() + 5
        while not (text := _read(self.pid_file)).endswith("\n"):
            if time.monotonic() > deadline:
                raise ProcessError(f"{self.name} was not started: {words[0]}")
            time.sleep(POLL_S)
        pid = int(text)
        self.pid_file.write_text(f"{pid} {start_time(pid)}\n")

    def pid(self) -> int | None:
        """Its pid while it lives."""
        words = _read(self.pid_file).split()
        if len(words) != 2:
            return None
        pid, started = int(words[0]), words[1]
        return pid if start_time(pid) == started else None

    def alive(self) -> bool:
        return self.pid() is not None

    def stop(self, timeout: float = 10.0) -> None:
        """Ask it to end, then make it; returns when it is gone."""
        pid = self.pid()
        if pid is not None:
            _send(pid, signal.SIGTERM)
            if not _gone(self, timeout):
                self.kill()
        self.pid_file.unlink(missing_ok=True)

    def kill(self) -> None:
        """End it without a word, as a crash does; returns when it is gone."""
        pid = self.pid()
        if pid is not None:
            _send(pid, signal.SIGKILL)
            _gone(self, 10.0)

    def tail(self, length: int = 3000) -> str:
        """The end of its log."""
        return _read(self.log)[-length:]


def start_time(pid: int) -> str:
    """When a process was started, in the kernel's ticks; empty when it is gone or only waits to be reaped."""
    text = _read(Path(f"/proc/{pid}/stat"))
    fields = text.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] != "Z" else ""


def kill_tree(pid: int) -> None:
    """SIGKILL to a process and everything below it, children first stopped from being adopted elsewhere."""
    for child in children_of(pid):
        kill_tree(child)
    _send(pid, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        children += [int(word) for word in _read(task).split()]
    return children


def with_argument(program: str, argument: str) -> list[int]:
    """Pids of a program that was given `argument`: how a containerd's shims are known."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        words = _read(folder / "cmdline").split("\0")
        if Path(words[0]).name == program and argument in words:
            found.append(int(folder.name))
    return found


def _gone(daemon: Daemon, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while daemon.alive():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
