"""Log lines."""

import json
import logging
from collections.abc import Iterator

import pytest

from octavo_operator.logs import QUIET, JsonFormatter, TextFormatter, configure_logging


def record(**extra: object) -> logging.LogRecord:
    made = logging.LogRecord("octavo_operator.x", logging.INFO, "x.py", 1, "reconciled %s", ("a",), None)
    made.__dict__.update(extra)
    return made


def test_a_line_is_one_json_object_with_its_own_fields() -> None:
    line = JsonFormatter().format(record(fields={"namespace": "team"}))
    entry = json.loads(line)
    assert (entry["level"], entry["message"], entry["namespace"]) == ("info", "reconciled a", "team")
    assert entry["time"].endswith("Z")
    assert "\n" not in line


def test_a_traceback_is_a_field() -> None:
    try:
        raise ValueError("no")
    except ValueError as error:
        broken = record()
        broken.exc_info = (ValueError, error, error.__traceback__)
    assert "ValueError: no" in json.loads(JsonFormatter().format(broken))["traceback"]


def test_text_has_the_fields_behind_the_message() -> None:
    assert TextFormatter().format(record(fields={"namespace": "team"})).endswith("reconciled a namespace=team")


@pytest.fixture
def logging_put_back() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    quiet = {name: logging.getLogger(name).level for name in QUIET}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in quiet.items():
        logging.getLogger(name).setLevel(before)


@pytest.mark.usefixtures("logging_put_back")
@pytest.mark.parametrize(("level", "kopf"), [("INFO", logging.CRITICAL), ("DEBUG", logging.INFO)])
def test_libraries_are_quiet_unless_everything_is_wanted(level: str, kopf: int) -> None:
    configure_logging(level, as_json=True)
    assert logging.getLogger("kopf").level == kopf
    assert isinstance(logging.getLogger().handlers[0].formatter, JsonFormatter)
