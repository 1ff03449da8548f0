"""`Resolutions`: looks models up at their hub in the background, once per revision, so that a slow hub holds up nothing else.

Given a way to wake a resource; answers at once with what is known. Failures are tried again with growing pauses, or when
the hub said so; a changed spec is another revision and begins anew, and so does one that failed with another token.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from octavo_operator.kube_client import ApiError
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.resolved import ResolvedModel
from octavo_operator.names import Key
from octavo_operator.reasons import Reason
from octavo_operator.status.redaction import redact

log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 300.0


@dataclass(slots=True)
class _Attempt:
    """What became of one revision's look-up so far."""

    revision: str
    token: str  # its hash
    task: "asyncio.Task[ResolvedModel] | None" = None
    outcome: ResolvedModel | ModelProblem | None = None
    failures: int = 0
    retry_at: float = 0.0

    @property
    def resolved(self) -> bool:
        return isinstance(self.outcome, ResolvedModel)

    def is_for(self, revision: str, token: str) -> bool:
        """Another token may get another answer, but a model that was found stays found."""
        return self.revision == revision and (self.token == token or self.resolved)


class Resolutions:
    """One look-up per resource at a time."""

    def __init__(self, wake: Callable[[Key], None], clock: Callable[[], float]) -> None:
        self._wake = wake
        self._clock = clock
        self._attempts: dict[Key, _Attempt] = {}

    def get(
        self, key: Key, revision: str, token_hash: str, resolve: Callable[[], Awaitable[ResolvedModel]]
    ) -> ResolvedModel | ModelProblem | None:
        """What is known of the model of this revision; None while the first answer is on its way."""
        attempt = self._attempts.get(key)
        if attempt is None or not attempt.is_for(revision, token_hash):
            self.forget(key)
            self._attempts[key] = attempt = _Attempt(revision, token_hash)
        if attempt.task is None and not attempt.resolved and self._clock() >= attempt.retry_at:
            attempt.task = asyncio.create_task(self._run(key, attempt, resolve))
        return attempt.outcome

    def retry_in(self, key: Key) -> float | None:
        """Seconds until a failed look-up is tried again."""
        attempt = self._attempts.get(key)
        if attempt is None or attempt.task is not None or not isinstance(attempt.outcome, ModelProblem):
            return None
        return max(0.0, attempt.retry_at - self._clock())

    def forget(self, key: Key) -> None:
        """The resource is gone, or its revision is made."""
        attempt = self._attempts.pop(key, None)
        if attempt is not None and attempt.task is not None:
            attempt.task.cancel()

    async def _run(self, key: Key, attempt: _Attempt, resolve: Callable[[], Awaitable[ResolvedModel]]) -> ResolvedModel:
        try:
            attempt.outcome = resolved = await resolve()
            return resolved
        except ModelProblem as problem:
            attempt.outcome = problem
            raise
        except ApiError as error:
            attempt.outcome = ModelProblem(Reason.RECONCILE_FAILED, str(error))
            raise
        except Exception as error:  # a bug of ours with one model: its resource waits, the others go on
            log.exception("looking up the model of %s/%s failed", *key)
            attempt.outcome = ModelProblem(Reason.RECONCILE_FAILED, f"{type(error).__name__}: {redact(str(error))}")
            raise
        finally:
            if isinstance(attempt.outcome, ModelProblem):
                attempt.retry_at = self._clock() + self._pause(attempt, attempt.outcome.retry_after)
                attempt.failures += 1
            task, attempt.task = attempt.task, None
            if task is not None:
                task.add_done_callback(_look_at)
            self._wake(key)

    @staticmethod
    def _pause(attempt: _Attempt, retry_after: float | None) -> float:
        pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0**attempt.failures)
        return max(retry_after or 0.0, pause * random.uniform(0.8, 1.2))


def _look_at(task: "asyncio.Task[ResolvedModel]") -> None:
    """The outcome was taken already; asyncio need not complain about it."""
    if not task.cancelled():
        task.exception()
