"""`AsyncLLMEngine`: the engine's asyncio face in the HTTP process.

Sends requests to the engine process, hands each step's outputs to the request they belong to, and ends every open
request with one terminal event when the engine dies. Knows no text and no HTTP.
"""

import asyncio
import socket
from collections import deque
from collections.abc import AsyncGenerator, Callable

from octavo_runtime.engine.channel import Encoder, from_engine_frames
from octavo_runtime.engine.heartbeat import Heartbeat
from octavo_runtime.engine.messages import (
    AbortRequest,
    AddRequest,
    EngineFailed,
    EngineReady,
    FinishReason,
    FromEngine,
    LoadProgress,
    PromptLogprobs,
    RequestFinished,
    ResetPrefixCache,
    SchedulerStats,
    SequenceOutput,
    Shutdown,
    StepOutputs,
    ToEngine,
)
from octavo_runtime.errors import EngineDeadError, StartCause

RequestEvent = SequenceOutput | PromptLogprobs | RequestFinished


class EventStream:
    """Events of one request, in order; `get` waits for the next."""

    __slots__ = ("_events", "_waiter")

    def __init__(self) -> None:
        self._events: deque[RequestEvent] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, event: RequestEvent) -> None:
        self._events.append(event)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def get(self) -> RequestEvent:
        while not self._events:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._events.popleft()


class AsyncLLMEngine(asyncio.Protocol):
    """One engine process seen from the event loop; nothing runs until `attach`."""

    def __init__(self, heartbeat: Heartbeat) -> None:
        self.heartbeat = heartbeat
        self.ready: EngineReady | None = None
        self.progress: LoadProgress | None = None
        self.dead: EngineFailed | None = None
        self.stats = SchedulerStats()
        self.on_step: list[Callable[[StepOutputs], None]] = []
        self._streams: dict[str, EventStream] = {}
        self._encoder = Encoder()
        self._frames = from_engine_frames()
        self._transport: asyncio.WriteTransport | None = None
        self._changed = asyncio.Event()  # set and replaced at every change of `ready`, `progress` or `dead`

    @classmethod
    async def connect(cls, sock: socket.socket, heartbeat: Heartbeat) -> "AsyncLLMEngine":
        """Make one and attach it."""
        engine = cls(heartbeat)
        await engine.attach(sock)
        return engine

    async def attach(self, sock: socket.socket) -> None:
        """Take over the parent's end of the channel to a process that has started."""
        sock.setblocking(False)
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=sock)

    @property
    def num_requests(self) -> int:
        """Requests that have not had their terminal event."""
        return len(self._streams)

    @property
    def has_work(self) -> bool:
        """Whether the engine ought to be computing: a stopped one cannot say so itself."""
        return bool(self._streams) or self.heartbeat.has_work

    def heartbeat_age(self) -> float:
        """Seconds since the engine last showed life; 0 before its first beat."""
        return self.heartbeat.age()

    async def wait_ready(self, on_progress: Callable[[LoadProgress], None] | None = None) -> EngineReady:
        """The engine's answer to its first step. Raises EngineDeadError when it cannot start (see `dead`)."""
        shown: LoadProgress | None = None
        while self.ready is None:
            if self.dead is not None:
                raise EngineDeadError(self.dead.message)
            if on_progress is not None and self.progress is not None and self.progress is not shown:
                shown = self.progress
                on_progress(shown)
            await self._changed.wait()
        return self.ready

    async def wait_dead(self) -> EngineFailed:
        """Returns when the engine is gone."""
        while self.dead is None:
            await self._changed.wait()
        return self.dead

    async def generate(self, request: AddRequest) -> AsyncGenerator[RequestEvent, None]:
        """Run `request`; the last event is its `RequestFinished`. Leaving the iteration earlier aborts it in the engine."""
        if self.dead is not None:
            raise EngineDeadError(self.dead.message)
        if request.request_id in self._streams:
            raise ValueError(f"request id {request.request_id!r} is in use")
        stream = self._streams[request.request_id] = EventStream()
        finished = False
        self._send(request)
        try:
            while not finished:
                event = await stream.get()
                finished = isinstance(event, RequestFinished)
                yield event
        finally:
            if self._streams.pop(request.request_id, None) is not None and not finished:
                self._send(AbortRequest(request_id=request.request_id))

    def abort(self, request_id: str, index: int | None = None) -> None:
        """Give up a request, or one of its sequences; idempotent. Its terminal event still comes."""
        self._send(AbortRequest(request_id=request_id, index=index))

    def abort_all(self) -> None:
        """Give up everything that is open."""
        for request_id in list(self._streams):
            self.abort(request_id)

    def reset_prefix_cache(self) -> None:
        """Forget cached prefixes that nothing uses."""
        self._send(ResetPrefixCache())

    def shutdown(self) -> None:
        """Ask the engine process to leave its loop."""
        self._send(Shutdown())

    def close(self) -> None:
        """Give the channel back; open requests end with ERROR."""
        if self._transport is not None:
            self._transport.close()

    def fail(self, failure: EngineFailed) -> None:
        """The engine is gone: end every open request with ERROR. The first cause stays."""
        if self.dead is None:
            self.dead = failure
        for request_id, stream in self._streams.items():
            stream.put(RequestFinished(request_id=request_id, reason=FinishReason.ERROR, error=self.dead.message))
        self._notify()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.WriteTransport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        for message in self._frames.feed(data):
            self._take(message)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._transport = None
        self.fail(EngineFailed(cause=StartCause.ENGINE_DIED, message="The engine process ended unexpectedly."))

    def _take(self, message: FromEngine) -> None:
        match message:
            case StepOutputs():
                self._deliver(message)
                return
            case EngineReady():
                self.ready = message
            case LoadProgress():
                self.progress = message
            case EngineFailed():
                self.fail(message)
        self._notify()

    def _deliver(self, outputs: StepOutputs) -> None:
        self.stats = outputs.stats
        streams = self._streams
        for events in (outputs.prompts, outputs.sequences, outputs.finished):
            for event in events:
                stream = streams.get(event.request_id)
                if stream is not None:
                    stream.put(event)
        for observe in self.on_step:
            observe(outputs)

    def _send(self, message: ToEngine) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(self._encoder.encode(message))

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
