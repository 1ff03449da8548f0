"""The tree that `errors.py` shows is the tree of its classes, and every refusal has a status of its own kind."""

import re

import pytest

from octavo_runtime import errors
from octavo_runtime.errors import OctavoError, QueueFullError, RequestError, StartCause, StartError


def subclasses(base: type) -> list[type]:
    return [found for child in base.__subclasses__() for found in (child, *subclasses(child))]


REFUSALS = [error for error in subclasses(RequestError) if error.__module__ == errors.__name__]


def test_the_tree_in_the_docstring_names_every_class_under_its_base_with_its_status() -> None:
    shown: dict[str, tuple[str, int | None]] = {}
    parents = {0: "OctavoError"}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"(\s*)\+-- (\w+)\s+(?:(\d{3})\b)?", line):
            depth = len(match[1]) // 4 + 1
            parents[depth] = match[2]
            shown[match[2]] = (parents[depth - 1], int(match[3]) if match[3] else None)
    classes = [error for error in subclasses(OctavoError) if error.__module__ == errors.__name__]
    assert {name: parent for name, (parent, _) in shown.items()} == {c.__name__: c.__base__.__name__ for c in classes}
    assert {e.__name__: e.status for e in REFUSALS} == {e.__name__: shown[e.__name__][1] for e in REFUSALS}


PLAIN = [error for error in REFUSALS if error.__init__ is RequestError.__init__]


@pytest.mark.parametrize("error", PLAIN, ids=lambda error: error.__name__)
def test_every_refusal_carries_its_message_and_field(error: type[RequestError]) -> None:
    made = error("why", "field")
    assert (str(made), made.param) == ("why", "field")
    assert made.type.endswith("Error")


def test_a_full_queue_says_when_to_come_back() -> None:
    made = QueueFullError("why", retry_after=3)
    assert (str(made), made.param, made.retry_after) == ("why", None, 3)


def test_a_start_error_carries_one_of_the_causes() -> None:
    error = StartError(StartCause.OUT_OF_MEMORY, "why")
    assert (error.cause.value, str(error)) == ("OutOfMemory", "why")
    assert all(re.fullmatch(r"[A-Z][A-Za-z]+", cause) for cause in StartCause)
