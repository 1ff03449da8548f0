"""Nodes, scheduler and kubelet in one: every pod is bound, then running, then ready, and answers like a runtime that idles.

Each pod has an address of its own in 127.77.0.0/16, where port 8000 gives /status and /metrics. So the operator pays for
as many connections as it would in a cluster.
"""

import asyncio
import socket
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from benchmarks.operator.client import STRATEGIC, Client, Object

NODES = 10
POD_PORT = 8000
AT_ONCE = 4  # pods that are moved at the same time
LOADING_SECONDS = 1.0  # from running to ready

STATUS = {
    "version": "0",
    "phase": "Ready",
    "model": {
        "name": "bench/tiny",
        "revision": "0" * 40,
        "architecture": "LlamaForCausalLM",
        "quantization": None,
        "weight_bytes": 270_000_000,
    },
    "progress": {"done_bytes": 270_000_000, "total_bytes": 270_000_000},
    "in_flight": 0,
    "running": 0,
    "waiting": 0,
    "draining": False,
    "capacity": {
        "kv_blocks": 2048,
        "block_size": 16,
        "max_model_len": 2048,
        "max_tokens_in_cache": 32768,
        "max_concurrency_at_max_len": 16.0,
        "tokens_per_second": None,
    },
    "memory": {"weights_bytes": 270_000_000, "kv_cache_bytes": 750_000_000, "activation_bytes": 100_000_000},
    "timings": {
        "resolve_seconds": 0.1,
        "download_seconds": 0.2,
        "load_seconds": 0.3,
        "compile_seconds": None,
        "warmup_seconds": 0.4,
    },
    "effective": {"max_model_len": 2048, "dtype": "bfloat16", "device": "cpu", "backend": "torch"},
    "heartbeat_age_seconds": None,
}
METRICS = "vllm:num_requests_running 0.0\nvllm:num_requests_waiting 0.0\nvllm:kv_cache_usage_perc 0.0\n"


class Kubelet:
    """`run` until cancelled; `paths` has each pod by the (namespace, name) of its LLMDeployment."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._pages = web.AppRunner(_pages(), access_log=None)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._moved: set[str] = set()
        self.paths: dict[tuple[str, str], str] = {}

    async def start(self) -> None:
        """Nodes, and the runtimes' pages."""
        await self._pages.setup()
        for number in range(NODES):
            await self._client.create("/api/v1/nodes", _node(number))
            await self._client.patch(f"/api/v1/nodes/node-{number}/status", {"status": _node_status()})

    async def close(self) -> None:
        """No page answers any more."""
        await self._pages.cleanup()

    async def run(self) -> None:
        """Move pods until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            async for event, pod in self._client.watch("/api/v1/pods"):
                uid = pod["metadata"]["uid"]
                if event == "ADDED" and uid not in self._moved:
                    self._moved.add(uid)
                    tasks.create_task(self._move(pod, len(self._moved)))

    async def set_ready(self, path: str, ready: bool) -> None:
        """One pod's readiness."""
        await self._client.patch(f"{path}/status", {"status": {"conditions": [_condition("Ready", ready)]}}, STRATEGIC)

    async def _move(self, pod: Object, number: int) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        address = f"127.77.{number // 250}.{number % 250 + 1}"
        async with self._slots:
            await self._listen(address)
            await self._client.create(f"{path}/binding", _binding(metadata["name"], number % NODES))
            await self._client.patch(f"{path}/status", {"status": _running(pod, address)}, STRATEGIC)
        await asyncio.sleep(LOADING_SECONDS)
        async with self._slots:
            await self._client.patch(f"{path}/status", {"status": _ready(pod)}, STRATEGIC)
        self.paths[metadata["namespace"], metadata["labels"]["octavo.dev/deployment"]] = path

    async def _listen(self, address: str) -> None:
        listener = socket.create_server((address, POD_PORT))
        await web.SockSite(self._pages, listener).start()


def _pages() -> web.Application:
    async def status(_: web.Request) -> web.Response:
        return web.json_response(STATUS)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(text=METRICS)

    app = web.Application()
    app.add_routes([web.get("/status", status), web.get("/metrics", metrics)])
    return app


def _node(number: int) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"}}


def _node_status() -> Object:
    room = {"cpu": "1000", "memory": "8Ti", "pods": "1000", "ephemeral-storage": "100Ti"}
    return {"capacity": room, "allocatable": room, "conditions": [_condition("Ready", True)]}


def _binding(pod: str, node: int) -> Object:
    target = {"apiVersion": "v1", "kind": "Node", "name": f"node-{node}"}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}


def _running(pod: Object, address: str) -> Object:
    conditions = [("Initialized", True), ("ContainersReady", False), ("Ready", False)]
    return {
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": _now(),
        "conditions": [_condition(name, value) for name, value in conditions],
        "containerStatuses": [_container(pod, False)],
    }


def _ready(pod: Object) -> Object:
    return {
        "conditions": [_condition("ContainersReady", True), _condition("Ready", True)],
        "containerStatuses": [_container(pod, True)],
    }


def _container(pod: Object, ready: bool) -> Object:
    spec: dict[str, Any] = pod["spec"]["containers"][0]
    return {
        "name": spec["name"],
        "image": spec["image"],
        "imageID": "",
        "ready": ready,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": _now()}},
    }


def _condition(name: str, value: bool) -> Object:
    return {"type": name, "status": str(value), "lastTransitionTime": _now()}


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
