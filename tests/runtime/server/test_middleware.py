import logging

import aiohttp
import yarl

from octavo_runtime.server.keys import KeySet

KEYS = ("secret-1", "secret-2")


async def test_unknown_path_and_method_get_openai_errors(serve):
    served = await serve()
    async with served.client.get("/v1/nothing") as response:
        assert (response.status, (await response.json())["error"]["type"]) == (404, "NotFoundError")
    async with served.client.get("/v1/completions") as response:
        assert response.status == 405
        assert response.headers["Allow"] == "POST"
        assert "POST" in (await response.json())["error"]["message"]


async def test_unexpected_error_is_500_without_details(serve, caplog):
    served = await serve()

    def explode(_request, _index):
        raise RuntimeError("secret detail")

    served.engine.answer = explode
    status, reply = await served.post("/v1/completions", {"prompt": "a"})
    assert (status, reply["error"]["type"]) == (500, "InternalServerError")
    assert "secret" not in reply["error"]["message"]
    assert "secret detail" in caplog.text


async def test_every_key_opens_and_nothing_else_does(serve):
    served = await serve(api_keys=KEYS)
    body = {"prompt": "a"}
    for key in KEYS:
        status, _ = await served.post("/v1/completions", body, headers={"Authorization": f"Bearer {key}"})
        assert status == 200
    for header in ("", "Bearer", "Bearer ", "Bearer secret", "Basic secret-1", "secret-1", "Bearer secret-1x"):
        status, reply = await served.post("/v1/completions", body, headers={"Authorization": header})
        assert (status, reply["error"]["type"]) == (401, "AuthenticationError"), header


async def test_probes_and_metrics_need_no_key_but_the_api_does(serve):
    served = await serve(api_keys=KEYS)
    for path in ("/health", "/health/ready", "/metrics", "/version", "/load", "/ping"):
        async with served.client.get(path) as response:
            assert response.status == 200, path
    for path in ("/v1/models", "/v1/nothing"):
        async with served.client.get(path) as response:
            assert response.status == 401, path
    assert (await served.post("/tokenize", {"prompt": "a"}))[0] == 401
    async with served.client.options("/v1/models") as response:
        assert response.status != 401


async def test_an_escaped_path_needs_a_key_too(serve):
    served = await serve(api_keys=KEYS)
    url = yarl.URL(f"http://127.0.0.1:{served.client.port}/%76%31/models", encoded=True)
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        assert response.status == 401


async def test_keys_guard_the_root_path_as_well(serve):
    served = await serve(api_keys=KEYS, root_path="/llm")
    async with served.client.get("/llm/v1/models") as response:
        assert response.status == 401
    async with served.client.get("/llm/health") as response:
        assert response.status == 200


async def test_preflight_is_answered(serve):
    served = await serve(api_keys=KEYS, allowed_origins=("https://a.example",))
    headers = {
        "Origin": "https://a.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    async with served.client.options("/v1/chat/completions", headers=headers) as response:
        assert response.status == 200
        assert response.headers["Access-Control-Allow-Origin"] == "https://a.example"
        assert response.headers["Access-Control-Allow-Headers"] == "authorization,content-type"
    async with served.client.options(
        "/v1/chat/completions", headers={**headers, "Origin": "https://b.example"}
    ) as response:
        assert "Access-Control-Allow-Origin" not in response.headers


async def test_cors_headers_are_on_streams_and_errors(serve):
    served = await serve()
    for body, status in (({"prompt": "a", "stream": True}, 200), ({"prompt": 1}, 400)):
        async with served.client.post("/v1/completions", json=body, headers={"Origin": "https://x"}) as response:
            assert (response.status, response.headers["Access-Control-Allow-Origin"]) == (status, "*")


async def test_request_id_is_honoured_and_echoed(serve):
    served = await serve()
    headers = {"X-Request-Id": "call-7"}
    async with served.client.post("/v1/completions", json={"prompt": "a"}, headers=headers) as response:
        assert response.headers["X-Request-Id"] == "call-7"
        assert (await response.json())["id"] == "cmpl-call-7"
    async with served.client.get("/health") as response:
        assert "X-Request-Id" not in response.headers
    assert (await served.complete(request_id="mine"))["id"] == "cmpl-mine"


async def test_same_request_id_twice_at_once_is_two_requests(serve):
    served = await serve()
    headers = {"X-Request-Id": "same"}
    await served.post("/v1/completions", {"prompt": ["a", "b"]}, headers=headers)
    assert len({request.request_id for request in served.engine.seen}) == 2


async def test_generated_ids_are_sent_with_the_flag(serve):
    served = await serve(enable_request_id_headers=True)
    async with served.client.get("/version", headers={"X-Request-Id": "bad\tid" + "x" * 200}) as response:
        assert len(response.headers["X-Request-Id"]) == 32


async def test_access_log_has_fields_and_no_prompt(serve, caplog):
    served = await serve(api_keys=KEYS)
    with caplog.at_level(logging.INFO, "octavo.access"):
        headers = {"Authorization": "Bearer secret-1"}
        await served.post("/v1/completions?key=secret-1", {"prompt": "private words"}, headers=headers)
    record = next(record for record in caplog.records if record.name == "octavo.access")
    assert record.fields["path"] == "/v1/completions"
    assert record.fields["status"] == 200
    assert "private" not in caplog.text
    assert "secret" not in caplog.text


async def test_a_path_cannot_write_lines_of_its_own(serve, caplog):
    served = await serve()
    paths = ("/a%0AFAKE", "/a%0d%0aFAKE", "/a%22%20200%20FAKE", "/%1b%5b31mFAKE", "/" + "x" * 5000, "/a%E2%80%A8FAKE")
    with caplog.at_level(logging.INFO, "octavo.access"):
        for path in paths:
            url = yarl.URL(f"http://127.0.0.1:{served.client.port}{path}", encoded=True)
            async with aiohttp.ClientSession() as session, session.get(url) as response:
                assert response.status == 404
    records = [record for record in caplog.records if record.name == "octavo.access"]
    assert len(records) == len(paths)
    for record in records:
        text = record.getMessage()
        assert text.isprintable()
        assert text.isascii()
        assert len(text) < 400
        assert text.count('"') == 2
        assert record.fields["path"] in text


async def test_a_path_that_ends_like_a_probe_is_logged(serve, caplog):
    served = await serve()
    with caplog.at_level(logging.INFO, "octavo.access"):
        await served.client.get("/v1/models/x/health")
        await served.client.get("/elsewhere/health")
    assert len([record for record in caplog.records if record.name == "octavo.access"]) == 2


async def test_probes_do_not_fill_the_access_log(serve, caplog):
    served = await serve()
    with caplog.at_level(logging.INFO, "octavo.access"):
        await served.client.get("/health/ready")
        await served.client.get("/metrics")
    assert not [record for record in caplog.records if record.name == "octavo.access"]


async def test_access_log_can_be_off(serve, caplog):
    served = await serve(access_log=False)
    with caplog.at_level(logging.INFO, "octavo.access"):
        await served.complete()
    assert not [record for record in caplog.records if record.name == "octavo.access"]


async def test_http_metrics_count_routes_not_paths(serve):
    served = await serve()
    await served.client.get("/made/up")
    await served.client.get("/v1/models/tiny")
    assert 'handler="none"' in served.metrics_text()
    assert "made" not in served.metrics_text()
    assert 'handler="/v1/models/{id}"' in served.metrics_text()


async def test_before_the_model_is_there_only_probes_and_the_like_are_answered(serve):
    served = await serve(loaded=False)
    for path in ("/status", "/health/live", "/metrics", "/version", "/load"):
        async with served.client.get(path) as response:
            assert response.status == 200, path
    for path in ("/v1/models", "/v1/nothing", "/"):
        async with served.client.get(path) as response:
            assert response.status == 503, path
            assert int(response.headers["Retry-After"]) > 0
    for path in ("/v1/completions", "/tokenize", "/detokenize", "/reset_prefix_cache"):
        assert (await served.post(path, {}))[0] == 503


async def test_keys_that_change_count_at_once(serve):
    served = await serve(api_keys=("old",))
    body, headers = {"prompt": "a"}, {"Authorization": "Bearer new"}
    assert (await served.post("/v1/completions", body, headers=headers))[0] == 401
    served.service.keys.api = KeySet.parse(["new"])
    assert (await served.post("/v1/completions", body, headers=headers))[0] == 200
