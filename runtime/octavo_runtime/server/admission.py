"""Who may come in: the engine is ready, the server is not draining, the queue has room. Counts what is in flight.

One per server, used on the event loop only. `Drain` (drain.py) closes it.
"""

from octavo_runtime.errors import EngineDeadError, QueueFullError, ServiceUnavailableError
from octavo_runtime.metrics import ServerMetrics
from octavo_runtime.server.config import ServerConfig
from octavo_runtime.server.interfaces import Engine
from octavo_runtime.server.prompts import ModelLimits

_MAX_RETRY = 60  # seconds


class Ticket:
    """One engine request that was let in."""

    __slots__ = ("_admission", "_left", "_num_tokens", "_started")

    def __init__(self, admission: "Admission", num_tokens: int) -> None:
        self._admission = admission
        self._num_tokens = num_tokens
        self._started = False
        self._left = False

    def started(self) -> None:
        """Its first event came; repeated calls do nothing."""
        if not self._started:
            self._started = True
            self._admission.note_started(self._num_tokens)

    def leave(self) -> None:
        """It ended, in whatever way."""
        if not self._left:
            self.started()
            self._left = True
            self._admission.note_left()


class Admission:
    """The gate in front of the engine."""

    def __init__(self, engine: Engine, config: ServerConfig, metrics: ServerMetrics) -> None:
        self._engine = engine
        self._metrics = metrics
        self._config = config
        self._pending_requests = 0  # let in, no event yet
        self._pending_tokens = 0
        self._in_engine = 0  # let in, not ended
        self.num_calls = 0  # HTTP calls being answered that use the engine
        self.closed = False

    def limits(self) -> ModelLimits:
        """The model's sizes. Raises ServiceUnavailableError while it loads, EngineDeadError when the engine died."""
        if self._engine.dead is not None:
            raise EngineDeadError(self._engine.dead.message)
        ready = self._engine.ready
        if ready is None:
            raise ServiceUnavailableError("The model is still loading.")
        return ModelLimits(ready.max_model_len, ready.vocab_size, ready.max_num_seqs)

    def check_open(self) -> None:
        """Raises ServiceUnavailableError while the server drains."""
        if self.closed:
            raise ServiceUnavailableError("The server is shutting down; send the request to another replica.")

    def check_queue(self, num_requests: int, num_tokens: int) -> None:
        """Raises QueueFullError when the queue has no room. A call that finds an empty queue is always let in.

        Asked twice: for the least that a call can want before its body is read, and again when its prompts are known.
        """
        waiting = self.num_queued_requests
        if waiting == 0:
            return
        max_requests, max_tokens = self._config.max_num_queued_reqs, self._config.max_num_queued_tokens
        if max_requests and waiting + num_requests > max_requests:
            self._metrics.rejected("max_num_queued_reqs")
            raise QueueFullError(
                f"{waiting} requests are waiting, the limit is {max_requests}. Try again later.", self._retry_after()
            )
        waiting_tokens = self._pending_tokens * waiting // max(1, self._pending_requests)
        if max_tokens and waiting_tokens + num_tokens > max_tokens:
            self._metrics.rejected("max_num_queued_tokens")
            raise QueueFullError(
                f"About {waiting_tokens} prompt tokens are waiting, the limit is {max_tokens}. Try again later.",
                self._retry_after(),
            )

    @property
    def num_queued_requests(self) -> int:
        """Requests without a first token, less those that the engine computes already."""
        answering = self._in_engine - self._pending_requests
        in_prefill = max(0, self._engine.stats.num_running - answering)
        return max(0, self._pending_requests - in_prefill)

    def enter(self, num_tokens: int) -> Ticket:
        """Count one engine request in, until its ticket leaves."""
        self._pending_requests += 1
        self._pending_tokens += num_tokens
        self._in_engine += 1
        return Ticket(self, num_tokens)

    def note_started(self, num_tokens: int) -> None:
        self._pending_requests -= 1
        self._pending_tokens -= num_tokens

    def note_left(self) -> None:
        self._in_engine -= 1

    def _retry_after(self) -> int:
        """Seconds: about one for every full batch that waits."""
        ready = self._engine.ready
        batch = ready.max_num_seqs if ready is not None else 1
        return min(_MAX_RETRY, 1 + self.num_queued_requests // max(1, batch))
