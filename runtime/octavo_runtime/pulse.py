"""Finds a hung engine: it has work and shows no life. Every open request ends with an error, then the server does.

Liveness does not depend on this: `/health/live` looks at the same pulse.
"""

import asyncio

from octavo_runtime.engine.async_llm_engine import AsyncLLMEngine
from octavo_runtime.engine.messages import EngineFailed
from octavo_runtime.errors import StartCause

POLL_SECONDS = 1.0


async def watch_pulse(engine: AsyncLLMEngine, limit: float) -> None:
    """Returns when the engine was given up. `limit`: seconds without a beat while there is work; 0: never.

    Two looks without a beat between them: when a whole container was stopped and goes on, the engine beats first.
    """
    suspected = -1
    while limit > 0:
        await asyncio.sleep(POLL_SECONDS)
        if not engine.has_work or engine.heartbeat_age() <= limit:
            suspected = -1
        elif suspected != engine.heartbeat.steps:
            suspected = engine.heartbeat.steps
        else:
            message = f"The engine showed no life for {limit:.0f} s (--engine-hang-timeout); its stacks are in the log."
            engine.fail(EngineFailed(cause=StartCause.ENGINE_HUNG.value, message=message))
            return
