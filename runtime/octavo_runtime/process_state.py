"""What a process tells the world about its own life: log lines, the termination log, its version; and dying with its parent.

Used by both processes of a replica. Knows neither HTTP nor the engine.
"""

import ctypes
import errno
import json
import logging
import signal
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from octavo_runtime.errors import StartCause, StartError

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_NO_MEMORY = "can't allocate memory"  # torch's RuntimeError
_MOST_CHARACTERS = 2000  # Kubernetes keeps 4096 bytes of a termination message
_MEMORY_EVENTS = Path("/sys/fs/cgroup/memory.events")


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the traceback when there is one."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry.update(getattr(record, "fields", {}))
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


def configure_logging(level: str, *, as_json: bool) -> None:
    """Send all log lines to standard error. `level` is a name of the logging module in any case."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        JsonFormatter() if as_json else logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


def write_termination_log(path: Path | None, cause: StartCause, message: str) -> None:
    """Leave `{"cause", "message"}` where Kubernetes collects it (terminationMessagePath). A path that cannot be written is
    reported in the log and otherwise ignored: the exit code still tells."""
    if path is None:
        return
    content = {"cause": cause.value, "message": message[:_MOST_CHARACTERS]}
    try:
        path.write_text(json.dumps(content, ensure_ascii=False) + "\n")
    except OSError as error:
        logging.getLogger(__name__).debug("cannot write %s: %s", path, error)


def cause_of(error: Exception, who: str) -> tuple[StartCause, str]:
    """What a failure is to an operator: its cause and one sentence. `who`: "The engine", for what nobody foresaw."""
    match error:
        case StartError():
            return error.cause, str(error)
        case MemoryError() | RuntimeError() if isinstance(error, MemoryError) or _NO_MEMORY in str(error):
            return StartCause.OUT_OF_MEMORY, f"{who} ran out of memory; give the cache less."
        case OSError() if error.errno in (errno.ENOSPC, errno.EDQUOT):
            place = f" at {error.filename}" if error.filename else ""
            return StartCause.DISK_FULL, f"The disk is full{place}; make the volume larger."
        case _:
            return StartCause.INTERNAL, f"{who} failed: {type(error).__name__}: {error}."


def installed_version() -> str:
    """The distribution's version; `unknown` when it runs from a source tree that is not installed."""
    try:
        return version("octavo")
    except PackageNotFoundError:
        return "unknown"


def count_oom_kills(events: Path = _MEMORY_EVENTS) -> int:
    """Processes of this container that the kernel has killed for want of memory; 0 where it does not say."""
    try:
        fields = dict(line.split() for line in events.read_text().splitlines())
        return int(fields["oom_kill"])
    except (OSError, ValueError, KeyError):
        return 0


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that started it ends (prctl PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
