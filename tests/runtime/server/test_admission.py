import asyncio

import pytest
from prometheus_client import CollectorRegistry

from octavo_runtime.engine.messages import SchedulerStats
from octavo_runtime.errors import QueueFullError
from octavo_runtime.metrics import ServerMetrics
from octavo_runtime.server.admission import Admission
from octavo_runtime.server.config import ServerConfig
from octavo_runtime.server.testing import FakeEngine


def admission(**config):
    return Admission(FakeEngine(), ServerConfig(("m",), **config), ServerMetrics(CollectorRegistry(), "m"))


def test_no_limit_lets_everything_in():
    gate = admission(max_num_queued_reqs=0)
    for _ in range(5000):
        gate.enter(10)
    gate.check_queue(1, 10)


def test_the_queue_is_bounded_by_default():
    gate = admission()
    for _ in range(5000):
        gate.enter(10)
    with pytest.raises(QueueFullError):
        gate.check_queue(1, 10)


def test_requests_wait_until_their_first_event():
    gate = admission(max_num_queued_reqs=2)
    tickets = [gate.enter(10), gate.enter(10)]
    with pytest.raises(QueueFullError) as caught:
        gate.check_queue(1, 10)
    assert caught.value.retry_after >= 1
    tickets[0].started()
    tickets[0].started()
    gate.check_queue(1, 10)
    tickets[1].leave()
    tickets[1].leave()
    assert gate.num_queued_requests == 0


def test_requests_that_the_engine_computes_are_not_queued():
    gate = admission(max_num_queued_reqs=1)
    gate.enter(10)
    gate.enter(10)
    gate._engine.stats = SchedulerStats(num_running=2)
    gate.check_queue(1, 10)


def test_tokens_are_limited_too():
    gate = admission(max_num_queued_tokens=100)
    gate.check_queue(1, 5000)  # an empty queue takes any one call
    gate.enter(80)
    gate.check_queue(1, 20)
    with pytest.raises(QueueFullError):
        gate.check_queue(1, 21)


async def test_full_queue_is_answered_before_a_body_is_read_and_a_prompt_encoded(serve):
    served = await serve(max_num_queued_reqs=1)
    served.engine.running.clear()
    call = asyncio.create_task(served.post("/v1/completions", {"prompt": "a"}))
    await asyncio.sleep(0.1)
    for path in ("/v1/completions", "/v1/chat/completions"):
        status, reply = await served.raw(path, b"never parsed")
        assert (status, reply["error"]["type"]) == (429, "RateLimitError")
    served.engine.running.set()
    assert (await call)[0] == 200


async def test_full_queue_is_answered_with_429_and_counted(serve):
    served = await serve(max_num_queued_reqs=3)
    served.engine.running.clear()
    calls = [asyncio.create_task(served.post("/v1/completions", {"prompt": "a"})) for _ in range(3)]
    await asyncio.sleep(0.1)
    for body in ({"prompt": "a"}, {"prompt": "a", "stream": True}):
        async with served.client.post("/v1/completions", json=body) as response:
            assert response.status == 429
            assert int(response.headers["Retry-After"]) >= 1
            assert (await response.json())["error"]["type"] == "RateLimitError"
    assert served.metric("vllm:admission_rejections_total", reason="max_num_queued_reqs") == 2
    served.engine.running.set()
    assert [status for status, _ in await asyncio.gather(*calls)] == [200] * 3
    await served.complete()
