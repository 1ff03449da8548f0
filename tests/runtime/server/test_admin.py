"""POST, GET and DELETE /drain, for those who hold an admin key."""

import pytest

ADMIN = {"Authorization": "Bearer admin"}


async def call(served, method, headers=ADMIN, path="/drain"):
    async with served.client.request(method, path, headers=headers) as response:
        return response.status, await response.json(), response.headers


async def status_of(served, path):
    async with served.client.get(path) as response:
        return response.status


async def test_draining_is_unready_and_still_serves_with_closing_connections(serve):
    served = await serve(admin_keys=("admin",))
    status, reply, headers = await call(served, "POST")
    assert (status, reply) == (200, {"draining": True, "in_flight": 0, "waiting": 0})
    assert headers["Connection"] == "close"
    assert await status_of(served, "/health/ready") == 503
    assert await status_of(served, "/health/live") == 200
    async with served.client.post("/v1/completions", json={"prompt": "hi"}) as response:
        assert response.status == 200
        assert response.headers["Connection"] == "close"
        assert (await response.json())["choices"][0]["text"] == "Hello, world!"


async def test_a_drain_can_be_asked_about_and_taken_back(serve):
    served = await serve(admin_keys=("admin",))
    assert (await call(served, "GET"))[1]["draining"] is False
    await call(served, "POST")
    await call(served, "POST")
    assert (await call(served, "GET"))[1]["draining"] is True
    assert (await call(served, "DELETE"))[1]["draining"] is False
    assert await status_of(served, "/health/ready") == 200
    async with served.client.get("/version") as response:
        assert response.headers.get("Connection") != "close"


async def test_an_end_that_has_begun_is_not_taken_back(serve):
    served = await serve(admin_keys=("admin",))
    served.drain.begin()
    assert (await call(served, "DELETE"))[1]["draining"] is True


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_without_the_admin_key_nothing_happens(serve, method):
    served = await serve(admin_keys=("admin",), api_keys=("user",))
    for header in ("", "Bearer user", "Basic admin", "Bearer admin2"):
        status, reply, _ = await call(served, method, {"Authorization": header})
        assert (status, reply["error"]["type"]) == (401, "AuthenticationError")
    assert not served.drain.draining


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_without_an_admin_key_file_the_path_does_not_exist(serve, method):
    served = await serve()
    assert (await call(served, method))[0] == 404


async def test_the_admin_key_opens_no_api(serve):
    served = await serve(admin_keys=("admin",), api_keys=("user",))
    assert (await served.post("/v1/completions", {"prompt": "a"}, headers=ADMIN))[0] == 401


async def test_a_server_that_still_loads_can_be_drained(serve):
    served = await serve(admin_keys=("admin",), loaded=False, root_path="/llm")
    assert (await call(served, "POST", path="/llm/drain"))[0] == 200
