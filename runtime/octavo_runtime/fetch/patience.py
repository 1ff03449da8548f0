"""How long a fetch goes on trying: again after what may pass (no network, 429, 5xx), never after what will not.

An attempt raises `TryLaterError`; `Patience` waits as long as the other side asks, or longer each time, and gives up at
the deadline with the cause that was in the way.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from octavo_runtime.errors import OctavoError, StartCause, StartError
from octavo_runtime.start_state import Problem, StartState

T = TypeVar("T")

WITHOUT_DEADLINE = {StartCause.MODEL_RATE_LIMITED: 300.0, StartCause.HUB_UNREACHABLE: 20.0}
"""Seconds of one trouble that a person at a terminal waits for, when no startup budget says it."""

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0


class TryLaterError(OctavoError):
    """The attempt failed for a reason that may pass. `retry_after`: seconds that the other side asks for."""

    def __init__(self, cause: StartCause, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.retry_after = retry_after


class Patience:
    """One per file or question. `deadline` is on `clock`; None: `WITHOUT_DEADLINE`."""

    def __init__(
        self,
        state: StartState,
        deadline: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._state = state
        self._deadline = deadline
        self._clock = clock
        self._sleep = sleep
        self._failures = 0
        self._since: float | None = None

    def progressed(self) -> None:
        """Bytes came: what failed before is forgotten."""
        self._failures, self._since, self._state.problem = 0, None, None

    async def run(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """The first result. Raises StartError with the cause of the trouble when it lasts too long."""
        while True:
            try:
                result = await attempt()
            except TryLaterError as error:
                await self._wait(error)
            else:
                self.progressed()
                return result

    async def _wait(self, error: TryLaterError) -> None:
        now = self._clock()
        if self._since is None:
            self._since = now
        backoff = min(_LONGEST_WAIT, _FIRST_WAIT * 2**self._failures) * random.uniform(0.5, 1.0)
        seconds = backoff if error.retry_after is None else error.retry_after + random.uniform(0.0, 1.0)
        until = self._deadline if self._deadline is not None else self._since + WITHOUT_DEADLINE[error.cause]
        if now + seconds > until:
            raise StartError(error.cause, str(error)) from error
        self._failures += 1
        self._state.problem = Problem(error.cause, str(error))
        await self._sleep(seconds)
