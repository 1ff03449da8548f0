"""Against real HTTP servers on this machine, one per pod, on the pods' own port."""

import asyncio
import itertools
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from octavo_operator.autoscaling import scraper as module
from octavo_operator.autoscaling.scraper import Scraper
from octavo_operator.autoscaling.targets import Target
from octavo_operator.names import Key

KEY: Key = ("default", "m")
Hosts = itertools.count(2)


class Pod:
    """A runtime that says what it is told to say."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.status: dict[str, Any] = {"phase": "Ready", "in_flight": 0, "waiting": 0, "draining": False}
        self.metrics = "vllm:num_requests_waiting 0\nvllm:num_requests_running 0\nvllm:kv_cache_usage_perc 0.1\n"
        self.asked: list[str] = []
        self.keys: list[str] = []
        self.fails = False

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/status", self._status)
        app.router.add_get("/metrics", self._metrics)
        app.router.add_post("/drain", self._drain)
        app.router.add_delete("/drain", self._drain)
        return app

    def target(self, **fields: Any) -> Target:
        return Target(uid=f"uid-{self.host}", name="p", host=self.host, **fields)

    async def _status(self, _: web.Request) -> web.Response:
        self.asked.append("status")
        if self.fails:
            raise web.HTTPServiceUnavailable
        return web.json_response(self.status)

    async def _metrics(self, _: web.Request) -> web.Response:
        self.asked.append("metrics")
        if self.fails:
            raise web.HTTPServiceUnavailable
        return web.Response(text=self.metrics)

    async def _drain(self, request: web.Request) -> web.Response:
        self.asked.append(request.method)
        self.keys.append(request.headers["Authorization"])
        self.status = {**self.status, "draining": request.method == "POST"}
        return web.json_response({})


Serve = Callable[..., Awaitable[Pod]]


@pytest.fixture
async def serve(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Serve]:
    """Pods on 127.0.0.x, all on the same free port, which stands for 8000."""
    runners = []
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setattr("octavo_operator.autoscaling.targets.PORT", port)

    async def serve(context: ssl.SSLContext | None = None) -> Pod:
        pod = Pod(f"127.0.0.{next(Hosts)}")
        runner = web.AppRunner(pod.app())
        await runner.setup()
        await web.TCPSite(runner, pod.host, port, ssl_context=context).start()
        runners.append(runner)
        return pod

    yield serve
    for runner in runners:
        await runner.cleanup()


@pytest.fixture
def foreign_certificate(tmp_path: Path) -> ssl.SSLContext:
    """For another name, by nobody we know."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    key, certificate = tmp_path / "key", tmp_path / "cert"
    subject = ["-subj", "/CN=elsewhere", "-keyout", key, "-out", certificate]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    return context


class Woken:
    """Keys that were woken."""

    def __init__(self) -> None:
        self.keys: list[Key] = []

    def __call__(self, key: Key) -> None:
        self.keys.append(key)


@pytest.fixture
def woken() -> Woken:
    return Woken()


@pytest.fixture
async def scraper(woken: Woken) -> AsyncIterator[Scraper]:
    async with Scraper(woken) as running:
        yield running


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - any condition, not one event
            await asyncio.sleep(0.01)


async def test_a_starting_pod_is_asked_and_its_phases_wake_the_resource(
    serve: Serve, scraper: Scraper, woken: Woken
) -> None:
    pod = await serve()
    pod.status = {"phase": "Loading", "progress": {"done_bytes": 1, "total_bytes": 9}}
    target = pod.target(starting=True)
    scraper.watch(KEY, [target])
    await until(lambda: scraper.view(target.uid) is not None)
    view = scraper.view(target.uid)
    assert view is not None
    assert (view.phase, view.status["progress"]["total_bytes"]) == ("Loading", 9)
    assert time.time() - view.at < 5
    assert woken.keys == [KEY]
    pod.status = {"phase": "Ready"}
    await until(lambda: len(woken.keys) == 2)


async def test_the_load_of_an_auto_pod_is_read(serve: Serve, scraper: Scraper, woken: Woken) -> None:
    pod = await serve()
    pod.metrics = "vllm:num_requests_waiting 7\nvllm:num_requests_running 2\nvllm:kv_cache_usage_perc 0.5\n"
    target = pod.target(auto=True)
    scraper.watch(KEY, [target])
    await until(lambda: scraper.sample(target.uid) is not None)
    sample, view = scraper.sample(target.uid), scraper.view(target.uid)
    assert sample is not None
    assert view is not None
    assert (sample.sample.waiting, sample.sample.running, view.kv_cache_usage) == (7, 2, 0.5)
    assert KEY in woken.keys


async def test_a_pod_with_any_certificate_is_asked(
    serve: Serve, scraper: Scraper, foreign_certificate: ssl.SSLContext
) -> None:
    target = (await serve(foreign_certificate)).target(tls=True)
    scraper.watch(KEY, [target])
    await until(lambda: scraper.view(target.uid) is not None)


async def test_other_pods_are_not_asked_for_metrics(serve: Serve, scraper: Scraper) -> None:
    pod = await serve()
    scraper.watch(KEY, [pod.target()])
    await until(lambda: "status" in pod.asked)
    await asyncio.sleep(0.2)
    assert pod.asked == ["status"]


async def test_a_marked_pod_is_told_to_drain_and_to_go_on_again(serve: Serve, scraper: Scraper) -> None:
    pod = await serve()
    scraper.watch(KEY, [pod.target(draining=True, admin_key="secret")])
    await until(lambda: pod.status["draining"] is True)
    assert pod.keys == ["Bearer secret"]
    scraper.watch(KEY, [pod.target(draining=False, admin_key="secret")])
    await until(lambda: pod.status["draining"] is False)
    assert pod.asked.count("POST") == pod.asked.count("DELETE") == 1


async def test_the_last_request_of_a_draining_pod_wakes_the_resource(
    serve: Serve, scraper: Scraper, woken: Woken
) -> None:
    pod = await serve()
    pod.status = {"phase": "Draining", "in_flight": 2, "waiting": 0, "draining": True}
    scraper.watch(KEY, [pod.target(draining=True, admin_key="k")])
    await until(lambda: len(woken.keys) == 1)
    pod.status = {**pod.status, "in_flight": 0}
    await until(lambda: len(woken.keys) == 2)


async def test_a_target_that_stays_the_same_is_not_asked_again_for_each_reconcile(
    serve: Serve, scraper: Scraper
) -> None:
    pod = await serve()
    for _ in range(20):
        scraper.watch(KEY, [pod.target()])
        await asyncio.sleep(0.01)
    await until(lambda: "status" in pod.asked)
    assert len(pod.asked) <= 2


async def test_a_forgotten_pod_is_asked_no_more(serve: Serve, scraper: Scraper) -> None:
    pod, other = await serve(), await serve()
    scraper.watch(KEY, [pod.target(starting=True), other.target(starting=True)])
    await until(lambda: bool(pod.asked and other.asked))
    scraper.watch(KEY, [other.target(starting=True)])
    assert scraper.view(pod.target().uid) is None
    count = len(pod.asked)
    await asyncio.sleep(1.5)
    assert len(pod.asked) == count
    assert len(other.asked) >= 2
    scraper.forget(KEY)
    assert scraper.view(other.target().uid) is None


async def test_a_pod_that_does_not_answer_keeps_its_last_answer(serve: Serve, scraper: Scraper) -> None:
    pod = await serve()
    target = pod.target(starting=True)
    scraper.watch(KEY, [target])
    await until(lambda: scraper.view(target.uid) is not None)
    pod.fails = True
    count = len(pod.asked)
    await until(lambda: len(pod.asked) > count)
    assert scraper.view(target.uid) is not None


async def test_a_load_that_is_no_longer_read_wakes_the_resource_once(
    serve: Serve, woken: Woken, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FRESH_SECONDS", 0.5)
    monkeypatch.setattr(module, "STATUS_SECONDS", 60.0)
    monkeypatch.setattr("octavo_operator.autoscaling.targets.LOAD_SECONDS", 0.1)
    monkeypatch.setattr("octavo_operator.autoscaling.targets.IDLE_LOAD_SECONDS", 0.1)
    pod = await serve()
    async with Scraper(woken) as scraper:
        scraper.watch(KEY, [pod.target(auto=True)])
        await until(lambda: scraper.sample(pod.target().uid) is not None)
        pod.fails = True
        before = len(woken.keys)
        await until(lambda: len(woken.keys) == before + 1)
        await asyncio.sleep(0.5)
        assert len(woken.keys) == before + 1
        pod.fails = False
        await until(lambda: len(woken.keys) == before + 2)


async def test_nobody_listens_and_nothing_breaks(scraper: Scraper, serve: Serve) -> None:
    await serve()  # sets the port
    target = Target("u", "n", "127.0.0.254", starting=True, draining=True, admin_key="k")
    scraper.watch(KEY, [target])
    await asyncio.sleep(0.3)
    assert scraper.view("u") is None
    assert await scraper.drain(target, on=True) is False


async def test_a_drain_without_key_is_not_tried(serve: Serve, scraper: Scraper) -> None:
    pod = await serve()
    assert await scraper.drain(pod.target(), on=True) is False
    assert pod.asked == []


async def test_an_endless_answer_is_not_read_to_its_end(
    serve: Serve, scraper: Scraper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LONGEST_BODY", 100)
    pod = await serve()
    pod.status = {"phase": "x" * 1000}
    scraper.watch(KEY, [pod.target()])
    await until(lambda: bool(pod.asked))
    await asyncio.sleep(0.1)
    assert scraper.view(pod.target().uid) is None


async def test_a_hundred_idle_pods_cost_next_to_nothing(serve: Serve, scraper: Scraper) -> None:
    pod = await serve()
    for number in range(100):
        uid = f"uid-{number}"
        scraper.watch(("default", f"m{number}"), [Target(uid, "p", pod.host)])
    await until(lambda: len(pod.asked) >= 100, seconds=20)
    count = len(pod.asked)
    await asyncio.sleep(1.0)
    assert len(pod.asked) - count <= 10


async def test_who_no_longer_leads_asks_and_steers_no_pod(scraper: Scraper, serve: Serve) -> None:
    """Its targets are old: another replica may have told the pods to drain meanwhile."""
    pod = await serve()
    scraper.watch(KEY, [pod.target(admin_key="k", starting=True)])
    await until(lambda: "status" in pod.asked)
    scraper.forget_all()
    pod.status = {**pod.status, "draining": True}
    await asyncio.sleep(0.1)  # what was under way ends
    pod.asked.clear()
    await asyncio.sleep(1.5)
    assert pod.asked == []
