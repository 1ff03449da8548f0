"""What stands around the operator: CRD, namespaces, a hub with one small model, and the LLMDeployments that are created."""

import asyncio
import json
import struct
import time
from pathlib import Path

import yaml
from aiohttp import web
from benchmarks.operator.client import LLMDEPLOYMENTS, Client, Object
from benchmarks.serving.environment import repository
from e2e.mirror import Mirror

Key = tuple[str, str]

REPOSITORY = "bench/tiny"
CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PER_NAMESPACE = 50
CREATORS = 4  # requests at the same time
FINISH_SECONDS = 900.0  # for all to become ready


async def prepare(client: Client) -> None:
    """Before the operator starts."""
    crd = yaml.safe_load((repository() / "crds" / "llmdeployments.yaml").read_text())
    await client.create(CRD, crd)
    await client.create("/api/v1/namespaces", _namespace("octavo-system"))
    path, deadline = f"{CRD}/{crd['metadata']['name']}", time.monotonic() + 30
    while not _is_established(await client.get(path)):
        if time.monotonic() > deadline:
            raise RuntimeError("the CRD is not served")
        await asyncio.sleep(0.1)


async def start_hub(folder: Path) -> tuple[web.AppRunner, str]:
    """The mirror with one model; `cleanup()` of the first ends it, the second is its URL."""
    place = folder / "hub" / REPOSITORY / "main"
    place.mkdir(parents=True)
    _write_model(place)
    runner = web.AppRunner(Mirror(folder / "hub").app(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


async def create_deployments(client: Client, first: int, last: int) -> None:
    """Numbers first to last - 1, with the namespaces that they need."""
    for number in range(-(-first // PER_NAMESPACE), -(-last // PER_NAMESPACE)):
        await client.create("/api/v1/namespaces", _namespace(f"team-{number}"))
    numbers = iter(range(first, last))

    async def create() -> None:
        for number in numbers:
            namespace, name = key_of(number)
            await client.create(f"{LLMDEPLOYMENTS}/namespaces/{namespace}/llmdeployments", _deployment(name))

    await asyncio.gather(*(create() for _ in range(CREATORS)))


def key_of(number: int) -> Key:
    """Namespace and name."""
    return f"team-{number // PER_NAMESPACE}", f"model-{number}"


class Statuses:
    """The newest count of ready replicas of each LLMDeployment, as a client sees it that watches."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._ready: dict[Key, int] = {}
        self._awaited: dict[tuple[Key, int], asyncio.Future[float]] = {}
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        async for _, raw in self._client.watch(f"{LLMDEPLOYMENTS}/llmdeployments"):
            key, at = (raw["metadata"]["namespace"], raw["metadata"]["name"]), time.monotonic()
            ready = self._ready[key] = (raw.get("status") or {}).get("readyReplicas", 0)
            future = self._awaited.pop((key, ready), None)
            if future is not None and not future.done():
                future.set_result(at)
            self._changed.set()

    def expect(self, key: Key, ready: int) -> asyncio.Future[float]:
        """When the count becomes this one."""
        future = self._awaited[key, ready] = asyncio.get_running_loop().create_future()
        return future

    async def wait_until_ready(self, count: int) -> None:
        """Until so many have a replica that is ready."""
        async with asyncio.timeout(FINISH_SECONDS):
            while sum(ready > 0 for ready in self._ready.values()) < count:
                self._changed.clear()
                await self._changed.wait()


def _deployment(name: str) -> Object:
    spec: Object = {
        "model": {"uri": f"hf://{REPOSITORY}"},
        "engine": {"device": "cpu", "maxModelLen": 1024},
        "rollout": {"drain": {"unrouteSeconds": 1, "timeoutSeconds": 30}},
    }
    return {"apiVersion": "octavo.dev/v1alpha1", "kind": "LLMDeployment", "metadata": {"name": name}, "spec": spec}


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def _is_established(crd: Object) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _write_model(place: Path) -> None:
    """A Llama whose weights are zeros: only its config and the header of its weights are read."""
    hidden, layers, vocabulary = 64, 2, 512
    config = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": vocabulary,
        "max_position_embeddings": 2048,
        "tie_word_embeddings": True,
    }
    (place / "config.json").write_text(json.dumps(config))
    (place / "tokenizer.json").write_text("{}")
    tensors, end = {}, 0
    for name, shape in _shapes(hidden, layers, vocabulary).items():
        begin, end = end, end + 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(tensors).encode()
    (place / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(end))


def _shapes(hidden: int, layers: int, vocabulary: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (vocabulary, hidden)}
    for layer in range(layers):
        for name, rows in (("q_proj", hidden), ("k_proj", hidden // 2), ("v_proj", hidden // 2), ("o_proj", hidden)):
            shapes[f"model.layers.{layer}.self_attn.{name}.weight"] = (rows, hidden)
        for name in ("gate_proj", "up_proj"):
            shapes[f"model.layers.{layer}.mlp.{name}.weight"] = (2 * hidden, hidden)
        shapes[f"model.layers.{layer}.mlp.down_proj.weight"] = (hidden, 2 * hidden)
        for name in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"model.layers.{layer}.{name}.weight"] = (hidden,)
    return shapes | {"model.norm.weight": (hidden,)}
