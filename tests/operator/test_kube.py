"""The client speaks the API server's language: paths, queries, content types, errors. Over real HTTP."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client import ApiClient, Configuration

from octavo_operator.cache import Cache
from octavo_operator.kube import Kube
from octavo_operator.kube_client import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Raw,
    TooManyRequests,
    Unavailable,
)

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "n", "name": "p", "resourceVersion": "7"}}


class Server:
    """Answers what it is told to, and keeps what it was asked."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, Any, dict[str, str]]] = []
        self.requests: list[dict[str, Any]] = []
        self.silent = False
        self.host = ""

    def answer(self, body: Any, status: int = 200, **headers: str) -> None:
        self.answers.append((status, body, {name.replace("_", "-"): value for name, value in headers.items()}))

    async def handle(self, request: web.Request) -> web.Response:
        if self.silent:
            await asyncio.sleep(10)
        text = await request.text()
        self.requests.append(
            {
                "method": request.method,
                "path": request.path,
                "query": dict(request.query),
                "type": request.content_type,
                "authorization": request.headers.get("Authorization"),
                "body": json.loads(text) if text else None,
            }
        )
        status, body, headers = self.answers.pop(0)
        if isinstance(body, str):
            return web.Response(status=status, text=body, headers=headers)
        return web.json_response(body, status=status, headers=headers)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    served = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    served.host = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield served
    await runner.cleanup()


class Counted:
    """Requests as the metric counts them."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, int]] = []

    def __call__(self, verb: str, kind: str, status: int) -> None:
        self.seen.append((verb, kind, status))


@pytest.fixture
def cache() -> Cache:
    return Cache()


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
async def kube(server: Server, cache: Cache, counted: Counted) -> AsyncIterator[Kube]:
    configuration = Configuration(host=server.host)
    made = Kube(ApiClient(configuration), timeout_seconds=1.0, witness=cache, on_request=counted)
    yield made
    await made.close()


async def test_get(server: Server, kube: Kube, counted: Counted) -> None:
    server.answer(POD)
    assert await kube.get("Pod", "n", "p") == POD
    assert server.requests[0]["path"] == "/api/v1/namespaces/n/pods/p"
    assert counted.seen == [("get", "Pod", 200)]


async def test_a_list_is_all_its_pages_with_kinds(server: Server, kube: Kube) -> None:
    server.answer({"metadata": {"resourceVersion": "5", "continue": "more"}, "items": [{"metadata": {"name": "a"}}]})
    server.answer({"metadata": {"resourceVersion": "5"}, "items": [{"metadata": {"name": "b"}}]})
    found = await kube.list("Deployment", labels="a=b", fields="type=Opaque")
    assert found.resource_version == "5"
    assert [item["metadata"]["name"] for item in found.items] == ["a", "b"]
    assert {(item["kind"], item["apiVersion"]) for item in found.items} == {("Deployment", "apps/v1")}
    first, second = server.requests
    assert first["path"] == "/apis/apps/v1/deployments"
    assert first["query"] == {"limit": "500", "labelSelector": "a=b", "fieldSelector": "type=Opaque"}
    assert second["query"]["continue"] == "more"


async def test_apply_is_server_side_by_force_as_the_operator(server: Server, kube: Kube, cache: Cache) -> None:
    server.answer(POD)
    await kube.apply({**POD, "spec": {"a": 1}})
    (request,) = server.requests
    assert (request["method"], request["path"]) == ("PATCH", "/api/v1/namespaces/n/pods/p")
    assert request["query"] == {"fieldManager": "octavo-operator", "force": "true"}
    assert request["type"] == "application/apply-patch+yaml"
    assert request["body"]["spec"] == {"a": 1}
    assert cache.count("Pod") == 1


async def test_a_status_goes_to_its_subresource_with_the_uid(server: Server, kube: Kube) -> None:
    server.answer({"kind": "LLMDeployment", "metadata": {"namespace": "n", "name": "x", "resourceVersion": "9"}})
    await kube.patch_status("n", "x", "uid-1", {"phase": "Ready"})
    (request,) = server.requests
    assert request["path"] == "/apis/octavo.dev/v1alpha1/namespaces/n/llmdeployments/x/status"
    assert request["type"] == "application/json-patch+json"
    assert request["body"] == [
        {"op": "test", "path": "/metadata/uid", "value": "uid-1"},
        {"op": "add", "path": "/status", "value": {"phase": "Ready"}},
    ]


@pytest.mark.parametrize(
    "message",
    [
        "the server rejected our request due to an error in our request",
        'Pod "p" is invalid: metadata.uid: Invalid value: "u": field is immutable',
    ],
)
async def test_another_object_of_the_same_name_is_a_conflict(message: str, server: Server, kube: Kube) -> None:
    server.answer({"message": message}, 422)
    server.answer({"message": message}, 422)
    with pytest.raises(Conflict):
        await kube.patch_status("n", "x", "u", {})
    with pytest.raises(Conflict):
        await kube.merge_patch("Pod", "n", "p", {"metadata": {"uid": "u"}})


async def test_a_patch_that_is_invalid_for_another_reason_stays_so(server: Server, kube: Kube) -> None:
    server.answer({"message": "status.phase: must be of type string"}, 422)
    with pytest.raises(Invalid):
        await kube.patch_status("n", "x", "u", {"phase": 3})


async def test_merge_patch(server: Server, kube: Kube) -> None:
    server.answer(POD)
    await kube.merge_patch("Pod", "n", "p", {"metadata": {"labels": {"a": None}}})
    (request,) = server.requests
    assert request["type"] == "application/merge-patch+json"
    assert request["query"] == {"fieldManager": "octavo-operator"}
    assert request["body"] == {"metadata": {"labels": {"a": None}}}


async def test_create_and_replace(server: Server, kube: Kube) -> None:
    lease: Raw = {"kind": "Lease", "metadata": {"namespace": "n", "name": "l", "resourceVersion": "3"}}
    server.answer(lease, 201)
    server.answer(lease)
    await kube.create(lease)
    await kube.replace(lease)
    posted, put = server.requests
    assert (posted["method"], posted["path"]) == ("POST", "/apis/coordination.k8s.io/v1/namespaces/n/leases")
    assert (put["method"], put["path"]) == ("PUT", "/apis/coordination.k8s.io/v1/namespaces/n/leases/l")
    assert put["body"]["metadata"]["resourceVersion"] == "3"


async def test_delete_has_its_preconditions_and_the_cache_forgets(server: Server, kube: Kube, cache: Cache) -> None:
    cache.see(POD)
    server.answer({"kind": "Status", "status": "Success"})
    await kube.delete("Pod", "n", "p", uid="u", grace_seconds=0)
    assert server.requests[0]["body"] == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u"},
        "gracePeriodSeconds": 0,
    }
    assert cache.count("Pod") == 0


async def test_a_deleted_pod_that_takes_its_time_is_seen_terminating(server: Server, kube: Kube, cache: Cache) -> None:
    going = {**POD, "metadata": {**POD["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}  # type: ignore[dict-item]
    going["metadata"]["labels"] = {"octavo.dev/deployment": "x"}
    server.answer(going)
    await kube.delete("Pod", "n", "p")
    assert "deletionTimestamp" in cache.children("Pod", ("n", "x"), "")[0]["metadata"]


async def test_deleting_what_is_gone_is_no_error(server: Server, kube: Kube) -> None:
    server.answer({"message": "not found"}, 404)
    await kube.delete("Pod", "n", "p")


async def test_secrets_events_and_pages_of_pods(server: Server, kube: Kube) -> None:
    server.answer({"data": {"a": base64.b64encode(b"secret").decode()}})
    server.answer({"metadata": {}})
    server.answer("metric 1\n")
    assert await kube.read_secret("n", "s") == {"a": b"secret"}
    await kube.create_event({"metadata": {"namespace": "n", "name": "e"}, "reason": "r"})
    assert await kube.pod_page("n", "p", 8000, "/metrics") == "metric 1\n"
    paths = [request["path"] for request in server.requests]
    assert paths[1:] == ["/api/v1/namespaces/n/events", "/api/v1/namespaces/n/pods/p:8000/proxy/metrics"]


async def test_an_optional_kind_is_looked_up_in_its_group(server: Server, kube: Kube) -> None:
    server.answer({"resources": [{"name": "podmonitors"}, {"name": "podmonitors/status"}]})
    server.answer({"resources": [{"name": "other"}]})
    server.answer({"message": "no"}, 404)
    assert [await kube.serves("PodMonitor") for _ in range(3)] == [True, False, False]
    assert server.requests[0]["path"] == "/apis/monitoring.coreos.com/v1"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (410, Gone),
        (422, Invalid),
        (500, Unavailable),
        (503, Unavailable),
    ],
)
async def test_refusals_are_typed_and_keep_the_servers_words(
    status: int, kind: type[ApiError], server: Server, kube: Kube, counted: Counted
) -> None:
    server.answer({"kind": "Status", "message": "exceeded quota: gpus"}, status)
    with pytest.raises(kind) as caught:
        await kube.apply(POD)
    assert caught.value.message == "exceeded quota: gpus"
    assert str(caught.value) == "Pod n/p: exceeded quota: gpus"
    assert counted.seen == [("patch", "Pod", status)]


async def test_too_many_requests_carries_retry_after(server: Server, kube: Kube) -> None:
    server.answer({"message": "slow down"}, 429, Retry_After="3")
    with pytest.raises(TooManyRequests) as caught:
        await kube.get("Pod", "n", "p")
    assert caught.value.retry_after == 3.0


async def test_an_answer_that_is_no_status_still_has_words(server: Server, kube: Kube) -> None:
    server.answer("<html>bad gateway</html>", 502)
    with pytest.raises(Unavailable, match="Bad Gateway"):
        await kube.get("Pod", "n", "p")


async def test_silence_ends_after_the_timeout(server: Server, kube: Kube, counted: Counted) -> None:
    server.silent = True
    with pytest.raises(Unavailable, match="no answer"):
        await kube.get("Pod", "n", "p")
    assert counted.seen == [("get", "Pod", 0)]


async def test_no_server_is_unavailable() -> None:
    kube = Kube(ApiClient(Configuration(host="http://127.0.0.1:1")), timeout_seconds=1.0)
    with pytest.raises(Unavailable):
        await kube.get("Pod", "n", "p")
    await kube.close()


async def test_a_kubeconfig_leads_to_its_server(server: Server, tmp_path: Path) -> None:
    server.answer(POD)
    kube = await Kube.connect(kubeconfig=kubeconfig(tmp_path, server.host))
    assert await kube.get("Pod", "n", "p") == POD
    await kube.close()


async def test_without_any_configuration_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="no way to a cluster"):
        await Kube.connect(kubeconfig=str(tmp_path / "missing"))


def kubeconfig(folder: Path, host: str) -> str:
    cluster = {"name": "c", "cluster": {"server": host}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    user = {"name": "u", "user": {"token": "t"}}
    content = {"clusters": [cluster], "contexts": [context], "users": [user], "current-context": "x"}
    (folder / "config").write_text(json.dumps(content))
    return str(folder / "config")


async def test_the_token_is_sent_and_netrc_is_not_looked_into(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password mine\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    server.answer(POD)
    kube = await Kube.connect(kubeconfig=kubeconfig(tmp_path, server.host))
    await kube.get("Pod", "n", "p")
    assert server.requests[0]["authorization"] == "Bearer t"
    await kube.close()


@pytest.mark.parametrize(("without", "through"), [("", True), ("api.invalid", False)])
async def test_the_environments_proxy_is_used_unless_it_is_ruled_out(
    without: str, through: bool, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.host)
    monkeypatch.setenv("no_proxy", without)
    server.answer(POD)
    kube = await Kube.connect(kubeconfig=kubeconfig(tmp_path, "http://api.invalid"))
    if through:
        assert await kube.get("Pod", "n", "p") == POD
    else:
        with pytest.raises(Unavailable):
            await kube.get("Pod", "n", "p")
    assert bool(server.requests) is through
    await kube.close()


async def test_who_may_no_longer_write_reads_and_sends_nothing_else(server: Server, kube: Kube) -> None:
    leads = True
    fenced = kube.fenced(lambda: leads)
    server.answer(POD)
    await fenced.apply(POD)
    leads = False
    for write in (
        fenced.apply(POD),
        fenced.create(POD),
        fenced.replace(POD),
        fenced.merge_patch("Pod", "n", "p", {}),
        fenced.patch_status("n", "p", "u", {}),
        fenced.delete("Pod", "n", "p"),
        fenced.create_event({"metadata": {"namespace": "n"}}),
    ):
        with pytest.raises(Unavailable, match="Lease is no longer ours"):
            await write
    server.answer(POD)
    assert await fenced.get("Pod", "n", "p") == POD
    server.answer(POD)
    await kube.apply(POD)  # who has no fence goes on
    assert [request["method"] for request in server.requests] == ["PATCH", "GET", "PATCH"]
