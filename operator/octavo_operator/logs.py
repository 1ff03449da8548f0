"""Log lines of the operator: JSON for machines, plain text for people.

A call adds facts of its own by `extra={"fields": {...}}`. kopf speaks only when something is wrong: what it does
otherwise, the operator says itself.
"""

import json
import logging
import sys
import time

QUIET = {
    "kopf": logging.CRITICAL,  # tells of each retry of each watch; that watching ended is told by `watching.py`
    "aiohttp": logging.WARNING,
    "asyncio": logging.WARNING,
    "kubernetes": logging.WARNING,
}


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, own fields, and the traceback when there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end."""
        entry = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """`12:00:00 INFO octavo_operator.leader: leading identity=a`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  # the name is logging's
        """The line with its own fields behind it."""
        fields = "".join(f" {name}={value}" for name, value in getattr(record, "fields", {}).items())
        return super().formatMessage(record) + fields


def configure_logging(level: str, *, as_json: bool) -> None:
    """Send everything to standard error, from this level up; of libraries only what matters, unless everything is wanted."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if as_json else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for name, quiet in QUIET.items():
        logging.getLogger(name).setLevel(logging.INFO if level.upper() == "DEBUG" else quiet)
