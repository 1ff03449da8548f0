"""Waiting for a command of another program to succeed."""

import time
from collections.abc import Callable
from typing import TypeVar

from e2e.cluster.commands import CommandError

Value = TypeVar("Value")


def retry(action: Callable[[], Value], what: str, timeout: float = 30.0) -> Value:
    """The action's first value that is not a CommandError.

    :raises CommandError: the last one, when `timeout` seconds have passed
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            return action()
        except CommandError as error:
            if time.monotonic() > deadline:
                raise CommandError(f"waited {timeout:.0f} s for {what}: {error}") from error
            time.sleep(0.1)
