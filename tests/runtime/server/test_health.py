import pytest

from octavo_runtime.engine.messages import LoadProgress
from octavo_runtime.server.testing import ready_message
from octavo_runtime.start_state import Phase


async def statuses(served):
    found = {}
    for path in ("/health", "/health/live", "/health/startup", "/health/ready", "/ping"):
        async with served.client.get(path) as response:
            found[path] = response.status
    return list(found.values())


async def test_all_probes_are_green_when_ready(serve):
    assert await statuses(await serve()) == [200] * 5


async def test_loading_is_alive_but_not_started(serve):
    served = await serve()
    served.engine.ready = None
    served.engine.age = 1000.0
    served.service.start.enter(Phase.LOADING)
    served.service.start.loading(LoadProgress(phase="weights", done_bytes=3, total_bytes=9))
    assert await statuses(served) == [503, 200, 503, 503, 503]
    async with served.client.get("/health/ready") as response:
        reply = await response.json()
    assert reply == {"status": "loading", "phase": "Loading", "done_bytes": 3, "total_bytes": 9}
    for path, body in (("/v1/completions", {"prompt": "a"}), ("/tokenize", {"prompt": "a"})):
        async with served.client.post(path, json=body) as response:
            assert response.status == 503
            assert int(response.headers["Retry-After"]) > 0
    async with served.client.get("/v1/models") as response:
        assert response.status == 503


async def test_dead_engine_fails_every_probe(serve):
    served = await serve()
    served.engine.die()
    assert await statuses(served) == [503] * 5
    assert (await served.post("/v1/completions", {"prompt": "a"}))[0] == 500


async def test_no_reply_says_why_the_engine_died(serve):
    served = await serve()
    served.engine.step_seconds = 0.01
    body = {"prompt": "a", "max_tokens": 100, "ignore_eos": True}
    open_stream = await served.client.post("/v1/completions", json={**body, "stream": True})
    served.engine.die("FileNotFoundError: /secret/weights")
    replies = [await open_stream.text()]
    for path in ("/health", "/health/live", "/health/startup", "/health/ready", "/v1/models", "/metrics"):
        async with served.client.get(path) as response:
            replies.append(await response.text())
    for path in ("/v1/completions", "/tokenize"):
        async with served.client.post(path, json=body) as response:
            assert response.status == 500
            replies.append(await response.text())
    assert "secret" not in "".join(replies)
    assert "The engine ended" in replies[0]


async def test_an_engine_with_work_and_no_pulse_is_not_alive(serve):
    served = await serve(liveness_timeout=5.0)
    served.engine.age = 6.0
    assert await statuses(served) == [200] * 5  # nothing to do
    served.engine.requests["a"] = None
    assert await statuses(served) == [503] * 5
    served.engine.age = 4.0
    assert await statuses(served) == [200] * 5


async def test_without_a_limit_a_slow_engine_stays_alive(serve):
    served = await serve(liveness_timeout=0.0)
    served.engine.requests["a"] = None
    served.engine.age = 1e6
    assert await statuses(served) == [200] * 5


async def test_a_server_without_its_tokenizer_is_not_ready(serve):
    served = await serve(loaded=False)
    assert await statuses(served) == [503, 200, 503, 503, 503]


async def test_draining_is_alive_but_not_ready(serve):
    served = await serve()
    served.drain.begin()
    assert await statuses(served) == [200, 200, 200, 503, 200]


async def test_version_and_load(serve):
    served = await serve(version="9.9")
    async with served.client.get("/version") as response:
        assert await response.json() == {"version": "9.9"}
    async with served.client.get("/load") as response:
        assert await response.json() == {"server_load": 0}


@pytest.mark.parametrize("accept", ["", "application/openmetrics-text; version=1.0.0", "text/plain"])
async def test_metrics_are_text(serve, accept):
    served = await serve()
    async with served.client.get("/metrics", headers={"Accept": accept}) as response:
        assert response.status == 200
        assert "vllm:num_requests_running" in await response.text()


def test_ready_message_is_complete():
    assert ready_message(max_model_len=7).max_model_len == 7


async def test_served_requests_are_in_the_metrics(serve):
    served = await serve()
    await served.complete(n=2)
    await served.complete(stop="wor")
    await served.stream("/v1/chat/completions", max_tokens=3)
    assert served.metric("vllm:request_success_total", finished_reason="stop") == 2
    assert served.metric("vllm:request_success_total", finished_reason="length") == 1
    assert served.metric("vllm:time_to_first_token_seconds_count") == 3
    assert served.metric("vllm:e2e_request_latency_seconds_count") == 3
    assert served.metric("vllm:request_params_n_sum") == 4
    assert served.metric("vllm:inter_token_latency_seconds_count") > 20
