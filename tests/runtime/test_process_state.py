"""Log lines, the termination log, and a child that does not outlive its parent."""

import errno
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.process_state import (
    cause_of,
    configure_logging,
    count_oom_kills,
    write_termination_log,
)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


def test_json_lines_are_one_object_each_with_the_fields_of_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", as_json=True)
    logger = logging.getLogger("octavo.test")
    logger.debug("not shown")
    logger.info("one\ntwo %d é", 3, extra={"fields": {"request_id": "r"}})
    try:
        raise ValueError("broken")
    except ValueError:
        logger.exception("failed")
    first, second = (json.loads(line) for line in capsys.readouterr().err.splitlines())
    assert {
        "level": "info",
        "logger": "octavo.test",
        "message": "one\ntwo 3 é",
        "request_id": "r",
    }.items() <= first.items()
    assert first["time"].endswith("Z")
    assert second["level"] == "error"
    assert "ValueError: broken" in second["traceback"]


def test_plain_lines_go_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("WARNING", as_json=False)
    logging.getLogger("octavo.test").warning("careful")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "WARNING octavo.test: careful" in captured.err


def test_the_termination_log_holds_cause_and_message(tmp_path: Path) -> None:
    path = tmp_path / "termination.json"
    write_termination_log(path, StartCause.MODEL_CORRUPT, "é is damaged.")
    assert json.loads(path.read_text()) == {"cause": "ModelCorrupt", "message": "é is damaged."}


def test_a_termination_log_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    write_termination_log(None, StartCause.INTERNAL, "why")
    write_termination_log(tmp_path / "none" / "file", StartCause.INTERNAL, "why")
    write_termination_log(tmp_path, StartCause.INTERNAL, "why")


CHILD = """
import time
from octavo_runtime.process_state import die_with_parent
die_with_parent()
print(1, flush=True)
time.sleep(60)
"""

PARENT = f"""
import subprocess, sys, time
process = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE)
process.stdout.readline()
print(process.pid, flush=True)
time.sleep(60)
"""


def alive(pid: int) -> bool:
    """A zombie that nobody has waited for is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_child_dies_with_its_parent_however_that_ends() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    died = not alive(child)
    if not died:
        os.kill(child, signal.SIGKILL)
    assert died


def test_a_sentence_longer_than_kubernetes_keeps_is_cut(tmp_path: Path) -> None:
    write_termination_log(tmp_path / "log", StartCause.INTERNAL, "é" * 10_000)
    content = (tmp_path / "log").read_bytes()
    assert len(content) <= 4096
    assert json.loads(content)["cause"] == "Internal"


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (StartError(StartCause.MODEL_CORRUPT, "cut."), StartCause.MODEL_CORRUPT),
        (MemoryError(), StartCause.OUT_OF_MEMORY),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
            StartCause.OUT_OF_MEMORY,
        ),
        (OSError(errno.ENOSPC, "No space left on device", "/cache/x"), StartCause.DISK_FULL),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), StartCause.DISK_FULL),
        (OSError(errno.EIO, "Input/output error"), StartCause.INTERNAL),
        (RuntimeError("odd"), StartCause.INTERNAL),
    ],
)
def test_every_failure_has_a_cause_and_a_sentence(error: Exception, cause: StartCause) -> None:
    found, message = cause_of(error, "The engine")
    assert found is cause
    assert message.endswith(".")


def test_kills_for_want_of_memory_are_counted_where_the_kernel_tells(tmp_path: Path) -> None:
    events = tmp_path / "memory.events"
    assert count_oom_kills(events) == 0
    events.write_text("low 0\nhigh 0\nmax 12\noom 2\noom_kill 3\noom_group_kill 0\n")
    assert count_oom_kills(events) == 3
