"""GET /status: what this process is doing, for operators and people; answers from the moment the port is open.

`start_status` is what can be said before there is a server (`octavo download` answers with it); what is not known is null.
"""

from typing import Any

from aiohttp import web

from octavo_runtime.engine.messages import EngineReady
from octavo_runtime.server.reply import json_response
from octavo_runtime.server.service import SERVICE, Service
from octavo_runtime.start_state import Phase, StartState

_TIMINGS = ("resolve_seconds", "download_seconds", "load_seconds", "compile_seconds", "warmup_seconds")
_CAPACITY = (
    "kv_blocks", "block_size", "max_model_len", "max_tokens_in_cache", "max_concurrency_at_max_len", "tokens_per_second",
)  # fmt: skip


async def status(request: web.Request) -> web.Response:
    """The whole of it."""
    return json_response(service_status(request.app[SERVICE]))


def start_status(state: StartState, version: str) -> dict[str, Any]:
    """Every key, from the start alone."""
    model, problem = state.model, state.problem
    return {
        "version": version,
        "phase": state.phase,
        "problem": None if problem is None else {"cause": problem.cause, "message": problem.message},
        "model": {
            "name": model.name,
            "revision": model.revision,
            "architecture": model.architecture,
            "quantization": model.quantization,
            "weight_bytes": model.weight_bytes,
        },
        "progress": {"done_bytes": state.done_bytes, "total_bytes": state.total_bytes},
        "in_flight": 0,
        "running": 0,
        "waiting": 0,
        "draining": False,
        "capacity": None,
        "memory": {"weights_bytes": None, "kv_cache_bytes": None, "activation_bytes": None},
        "timings": {name: state.timings.get(name) for name in _TIMINGS},
        "effective": {"max_model_len": None, "dtype": None, "device": None, "backend": None},
        "heartbeat_age_seconds": None,
    }


def service_status(service: Service) -> dict[str, Any]:
    """The start's, and what the engine and the server add."""
    engine, ready = service.engine, service.ready
    stats = engine.stats
    content = start_status(service.start, service.config.version)
    content["phase"] = _phase(service)
    content["in_flight"] = service.admission.num_calls
    content["running"] = stats.num_running
    content["waiting"] = stats.num_waiting
    content["draining"] = service.drain.draining
    if ready is not None:
        content |= _measured(ready)
        content["heartbeat_age_seconds"] = round(engine.heartbeat_age(), 3)
    return content


def _phase(service: Service) -> Phase:
    if service.engine.dead is not None:
        return Phase.FAILED
    if service.drain.draining:
        return Phase.DRAINING
    if service.ready is not None:
        return Phase.READY
    return Phase.WARMING_UP if service.start.phase is Phase.READY else service.start.phase


def _measured(ready: EngineReady) -> dict[str, Any]:
    tokens = ready.num_blocks * ready.block_size
    blocks_of_longest = -(-ready.max_model_len // ready.block_size)
    at_once = min(ready.max_num_seqs, ready.num_blocks // blocks_of_longest)
    values = (ready.num_blocks, ready.block_size, ready.max_model_len, tokens, at_once, ready.tokens_per_second)
    return {
        "capacity": dict(zip(_CAPACITY, values, strict=True)),
        "memory": {
            "weights_bytes": ready.weight_bytes,
            "kv_cache_bytes": ready.cache_bytes,
            "activation_bytes": ready.activation_bytes,
        },
        "effective": {
            "max_model_len": ready.max_model_len,
            "dtype": ready.dtype,
            "device": ready.device,
            "backend": ready.backend,
        },
    }
