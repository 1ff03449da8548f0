"""What a process tells the world about its own life: log lines, the termination log, and dying with its parent.

Used by both processes of a replica. Knows neither HTTP nor the engine.
"""

import ctypes
import json
import logging
import signal
import sys
import time
from pathlib import Path

from octavo_runtime.errors import StartCause

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


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
    try:
        path.write_text(json.dumps({"cause": cause.value, "message": message}, ensure_ascii=False) + "\n")
    except OSError as error:
        logging.getLogger(__name__).debug("cannot write %s: %s", path, error)


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the thread that started it ends (prctl PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
