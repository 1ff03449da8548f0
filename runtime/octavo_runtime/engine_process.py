"""The engine process, and the wiring of engine and worker that the offline `LLM` uses as well.

`build_llm_engine` starts a worker and puts an `LLMEngine` over it. As a program (`python -m octavo_runtime.engine_process`)
it does that with the settings from standard input and serves the channel it inherited, until told to stop or orphaned.
"""

import argparse
import faulthandler
import logging
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from octavo_runtime.engine.channel import Channel, ChannelClosedError
from octavo_runtime.engine.core_loop import run_forever
from octavo_runtime.engine.heartbeat import Heartbeat
from octavo_runtime.engine.llm_engine import LLMEngine
from octavo_runtime.engine.messages import EngineFailed, EngineReady, LoadProgress
from octavo_runtime.errors import StartCause
from octavo_runtime.hub import ModelSource, resolve_model
from octavo_runtime.process_state import cause_of, configure_logging, die_with_parent
from octavo_runtime.settings import Settings
from octavo_runtime.worker.config import WorkerReady
from octavo_runtime.worker.worker import Worker

logger = logging.getLogger(__name__)

EXIT_FAILED = 1


@dataclass(frozen=True, slots=True)
class StartedEngine:
    """An engine that has run a step, and what its worker found."""

    engine: LLMEngine
    worker: WorkerReady


def build_llm_engine(
    settings: Settings, source: ModelSource, progress: Callable[[LoadProgress], None]
) -> StartedEngine:
    """Load the model and make the engine. Raises StartError with what to do."""
    worker = Worker(settings.worker_settings(source))
    ready = worker.start(progress)
    engine = LLMEngine(
        replace(settings.scheduler_config(ready.max_model_len), vocab_size=ready.model.vocab_size),
        settings.cache_config(ready.num_blocks, ready.num_host_blocks),
        worker,
        time.monotonic,
    )
    return StartedEngine(engine, ready)


def engine_ready(settings: Settings, ready: WorkerReady) -> EngineReady:
    """What the front end is told."""
    return EngineReady(
        num_blocks=ready.num_blocks,
        num_host_blocks=ready.num_host_blocks,
        block_size=ready.block_size,
        max_model_len=ready.max_model_len,
        max_num_seqs=settings.scheduler_config(ready.max_model_len).max_num_seqs,
        vocab_size=ready.model.vocab_size,
        backend=ready.backend,
        dtype=ready.dtype,
        weight_bytes=ready.weight_bytes,
        cache_bytes=ready.cache_bytes,
        timings=dict(ready.timings),
        activation_bytes=ready.activation_bytes,
        tokens_per_second=ready.tokens_per_second,
        device=ready.device,
        architecture=ready.model.architecture,
    )


def serve_channel(settings: Settings, channel: Channel, heartbeat: Heartbeat) -> int:
    """Start, serve, and turn whatever happens into an exit code; a failure is told to the front end first."""
    try:
        source = resolve_model(settings.model.model)  # a path by now
        started = build_llm_engine(settings, source, channel.send)
        channel.send(engine_ready(settings, started.worker))
        run_forever(started.engine, channel, heartbeat)
    except ChannelClosedError:
        return 0
    except Exception as error:
        cause, message = cause_of(error, "The engine")
        if cause is StartCause.INTERNAL:
            logger.exception("the engine failed")
        return _fail(channel, cause, message)
    return 0


def _fail(channel: Channel, cause: StartCause, message: str) -> int:
    try:
        channel.send(EngineFailed(cause=cause.value, message=message))
    except ChannelClosedError:
        logger.debug("nobody is left to be told: %s", message)
    return EXIT_FAILED


def main() -> int:
    """Entry of the child; see `launcher.py` for the other side."""
    die_with_parent()
    parser = argparse.ArgumentParser(description="The engine process of `octavo serve`; not started by hand.")
    parser.add_argument("--channel-fd", type=int, required=True)
    parser.add_argument("--heartbeat-fd", type=int, required=True)
    arguments = parser.parse_args()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    settings = Settings.from_json(sys.stdin.read())
    configure_logging(settings.log.log_level, as_json=settings.log.as_json)
    with torch.inference_mode():
        channel = Channel(socket.socket(fileno=arguments.channel_fd))
        return serve_channel(settings, channel, Heartbeat(arguments.heartbeat_fd))


if __name__ == "__main__":
    sys.exit(main())
