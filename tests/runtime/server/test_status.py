"""GET /status from the open port to the end: every key is always there, what is not known is null."""

import asyncio
import json

from octavo_runtime.engine.messages import LoadProgress, SchedulerStats
from octavo_runtime.errors import StartCause
from octavo_runtime.server.status import start_status
from octavo_runtime.server.testing import ready_message
from octavo_runtime.start_state import ModelFacts, Phase, Problem, StartState

KEYS = {
    "version", "phase", "problem", "model", "progress", "in_flight", "running", "waiting", "draining", "capacity", "memory",
    "timings", "effective", "heartbeat_age_seconds",
}  # fmt: skip


async def status(served):
    async with served.client.get("/status") as response:
        assert response.status == 200
        reply = await response.json()
    assert reply.keys() == KEYS
    return reply


async def test_before_the_model_is_there_the_phases_are_told(serve):
    served = await serve(loaded=False, api_keys=("key",))
    served.engine.ready = None
    start = served.service.start
    reply = await status(served)
    assert (reply["phase"], reply["capacity"], reply["heartbeat_age_seconds"]) == ("Resolving", None, None)
    assert reply["memory"] == {"weights_bytes": None, "kv_cache_bytes": None, "activation_bytes": None}
    start.enter(Phase.DOWNLOADING)
    start.done_bytes, start.total_bytes = 3, 9
    start.problem = Problem(StartCause.MODEL_RATE_LIMITED, "The hub limits the rate.")
    reply = await status(served)
    assert (reply["phase"], reply["progress"]) == ("Downloading", {"done_bytes": 3, "total_bytes": 9})
    assert reply["problem"] == {"cause": "ModelRateLimited", "message": "The hub limits the rate."}
    start.found(ModelFacts("tiny", "c0ffee", "LlamaForCausalLM", None, 7))
    start.loading(LoadProgress(phase="weights", done_bytes=1, total_bytes=2))
    reply = await status(served)
    assert (reply["phase"], reply["progress"], reply["problem"]) == (
        "Loading",
        {"done_bytes": 1, "total_bytes": 2},
        None,
    )
    assert reply["model"] == {
        "name": "tiny",
        "revision": "c0ffee",
        "architecture": "LlamaForCausalLM",
        "quantization": None,
        "weight_bytes": 7,
    }
    start.loading(LoadProgress(phase="warm-up"))
    assert (await status(served))["phase"] == "WarmingUp"


async def test_a_ready_server_tells_its_capacity_and_timings(serve):
    served = await serve()
    served.service.start.found(ModelFacts("tiny"))
    served.service.start.ready({"cache": 1.5, "warm-up": 0.5}, "LlamaForCausalLM")
    served.engine.age = 0.25
    reply = await status(served)
    assert reply["phase"] == "Ready"
    assert reply["capacity"] == {
        "kv_blocks": 64,
        "block_size": 16,
        "max_model_len": 512,
        "max_tokens_in_cache": 1024,
        "max_concurrency_at_max_len": 2,
        "tokens_per_second": None,
    }
    assert reply["memory"]["kv_cache_bytes"] == 1
    assert reply["effective"] == {"max_model_len": 512, "dtype": "float32", "device": "cpu", "backend": "fake"}
    assert (reply["timings"]["compile_seconds"], reply["timings"]["warmup_seconds"]) == (1.5, 0.5)
    assert None not in reply["timings"].values()
    assert (reply["model"]["architecture"], reply["heartbeat_age_seconds"]) == ("LlamaForCausalLM", 0.25)


async def test_concurrency_is_never_more_than_runs_at_once(serve):
    served = await serve()
    served.engine.ready = ready_message(max_model_len=16, max_num_seqs=3)
    assert (await status(served))["capacity"]["max_concurrency_at_max_len"] == 3


async def test_work_is_counted_and_draining_and_death_are_phases(serve):
    served = await serve(admin_keys=("admin",))
    served.engine.running.clear()
    call = asyncio.create_task(served.post("/v1/completions", {"prompt": "a"}))
    await asyncio.sleep(0.05)
    served.engine.stats = SchedulerStats(num_running=2, num_waiting=5)
    reply = await status(served)
    assert (reply["in_flight"], reply["running"], reply["waiting"], reply["draining"]) == (1, 2, 5, False)
    served.drain.ask()
    reply = await status(served)
    assert (reply["phase"], reply["draining"]) == ("Draining", True)
    served.engine.die("secret reason")
    reply = await status(served)
    assert reply["phase"] == "Failed"
    assert "secret" not in json.dumps(reply)
    assert (await call)[0] == 500


def test_a_start_without_a_server_has_the_same_keys():
    assert start_status(StartState("tiny"), "1").keys() == KEYS
