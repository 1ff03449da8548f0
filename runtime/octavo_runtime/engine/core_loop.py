"""The engine process's loop: take messages in, step, send what came out.

Given an `LLMEngine`, a `Channel` and a `Heartbeat`; ends on `Shutdown` or when the front end is gone. An exception of a
step leaves the loop: only the caller decides how the process dies.
"""

from octavo_runtime.engine.channel import Channel
from octavo_runtime.engine.heartbeat import Heartbeat
from octavo_runtime.engine.llm_engine import LLMEngine
from octavo_runtime.engine.messages import AbortRequest, AddRequest, ResetPrefixCache, Shutdown, ToEngine

IDLE_BEAT_SECONDS = 0.5
"""An idle engine wakes this often to show that it lives."""


def run_forever(engine: LLMEngine, channel: Channel, heartbeat: Heartbeat) -> None:
    """Serve until `Shutdown`, which ends what is open with ABORT. Raises ChannelClosedError when the front end vanishes."""
    while True:
        busy = engine.has_unfinished_requests()
        heartbeat.beat(has_work=busy)
        for message in channel.receive(0.0 if busy else IDLE_BEAT_SECONDS):
            if isinstance(message, Shutdown):
                engine.abort_all()
                if engine.has_unfinished_requests():  # their ends
                    channel.send(engine.step())
                return
            take_in(engine, message)
        if engine.has_unfinished_requests():
            heartbeat.beat(has_work=True)
            channel.send(engine.step())


def take_in(engine: LLMEngine, message: ToEngine) -> None:
    """Apply one message to the engine."""
    match message:
        case AddRequest():
            engine.add_request(message)
        case AbortRequest(request_id=request_id, index=index):
            engine.abort_request(request_id, index)
        case ResetPrefixCache():
            engine.reset_prefix_cache()
        case Shutdown():
            pass
