"""A server over fakes, on a real socket: `serve(...)` starts one, `Served` talks to it."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry, generate_latest

from octavo_runtime.metrics import ServerMetrics
from octavo_runtime.server.app import make_app
from octavo_runtime.server.config import ServerConfig
from octavo_runtime.server.drain import Drain
from octavo_runtime.server.interfaces import ChatTemplate, SamplingDefaults, TextLayer
from octavo_runtime.server.keys import Keys, KeySet
from octavo_runtime.server.service import SERVICE, Service
from octavo_runtime.server.testing import EOS, ByteTokenizer, FakeEngine, PlainTemplate
from octavo_runtime.start_state import StartState

USER = [{"role": "user", "content": "hi"}]


@dataclass
class Served:
    """A running server and its engine."""

    client: TestClient
    engine: FakeEngine
    registry: CollectorRegistry
    service: Service

    @property
    def drain(self) -> Drain:
        return self.service.drain

    async def post(self, path: str, body: Any, **kwargs: Any) -> tuple[int, Any]:
        async with self.client.post(path, json=body, **kwargs) as response:
            return response.status, await response.json()

    async def raw(self, path: str, data: bytes) -> tuple[int, Any]:
        async with self.client.post(path, data=data, headers={"Content-Type": "application/json"}) as response:
            return response.status, await response.json()

    async def complete(self, **body: Any) -> Any:
        status, reply = await self.post("/v1/completions", {"prompt": "hi", **body})
        assert status == 200, reply
        return reply

    async def chat(self, **body: Any) -> Any:
        status, reply = await self.post("/v1/chat/completions", {"messages": USER, **body})
        assert status == 200, reply
        return reply

    async def stream(self, path: str, **body: Any) -> list[Any]:
        """Events without [DONE], which must be the last."""
        prompt = {"messages": USER} if "chat" in path else {"prompt": "hi"}
        async with self.client.post(path, json={**prompt, "stream": True, **body}) as response:
            assert response.status == 200, await response.text()
            assert response.content_type == "text/event-stream"
            events = (await response.text()).split("\n\n")
        assert events[-2:] == ["data: [DONE]", ""]
        return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, {"model_name": "tiny", "engine": "0", **labels})

    def metrics_text(self) -> str:
        return generate_latest(self.registry).decode()


Serve = Callable[..., Awaitable[Served]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    clients = []

    async def start(
        engine: FakeEngine | None = None,
        template: ChatTemplate | None = PlainTemplate(),  # noqa: B008  it has no state
        defaults: SamplingDefaults = SamplingDefaults(),  # noqa: B008  frozen
        loaded: bool = True,
        api_keys: tuple[str, ...] = (),
        admin_keys: tuple[str, ...] = (),
        **config: Any,
    ) -> Served:
        engine = engine or FakeEngine()
        registry = CollectorRegistry()
        metrics = ServerMetrics(registry, "tiny")
        engine.on_step.append(metrics.step)
        text = TextLayer(ByteTokenizer(), template, (EOS,), defaults)
        keys = Keys(*(KeySet.parse(some) if some else None for some in (api_keys, admin_keys)))
        config = {"served_model_names": ("tiny", "alias"), **config}
        app = make_app(engine, ServerConfig(**config), metrics, registry, keys, StartState("tiny"))
        if loaded:
            app[SERVICE].load(text, "/models/tiny")
        server = TestServer(app)
        await server.start_server()
        client = TestClient(server)
        clients.append(client)
        return Served(client, engine, registry, app[SERVICE])

    yield start
    for client in clients:
        await client.close()
