"""`plan -f` answers before anything is applied: what is needed, and whether it fits."""

import json
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from octavo_operator.model.hub import HubSettings
from octavo_operator.plugin.manifest import read_manifests
from octavo_operator.plugin.plan import Gpu, imagined, plan

COMMIT = "0123456789abcdef0123456789abcdef01234567"
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}
WEIGHT_BYTES = 269_000_000
MANIFEST = """\
kind: LLMDeployment
metadata: {name: smollm}
spec:
  model: {uri: "hf://org/smollm"}
  engine: {device: cuda%s}
"""


def safetensors(num_bytes: int) -> tuple[bytes, int]:
    """The head of a file with one tensor, and the size of the whole."""
    header = json.dumps(
        {"weight": {"dtype": "BF16", "shape": [num_bytes // 2], "data_offsets": [0, num_bytes]}}
    ).encode()
    return struct.pack("<Q", len(header)) + header, 8 + len(header) + num_bytes


@pytest.fixture
async def hub(unused_tcp_port: int) -> AsyncIterator[HubSettings]:
    """One repository of which only the heads of files are ever read."""
    head, size = safetensors(WEIGHT_BYTES)
    files = {"config.json": json.dumps(CONFIG).encode(), "model.safetensors": head}
    sizes = {"config.json": len(files["config.json"]), "model.safetensors": size}

    async def listing(request: web.Request) -> web.Response:
        if request.match_info["revision"] not in ("main", COMMIT):
            return web.json_response({"error": "no"}, status=404, headers={"X-Error-Code": "RevisionNotFound"})
        siblings = [{"rfilename": name, "size": number} for name, number in sizes.items()]
        return web.json_response({"sha": COMMIT, "siblings": siblings})

    async def resolve(request: web.Request) -> web.Response:
        name = request.match_info["file"]
        given = request.http_range
        start, stop = given.start or 0, given.stop if given.stop is not None else sizes[name]
        stop = min(stop, sizes[name])
        body = files[name][start:stop].ljust(stop - start, b"\0")
        headers = {"Content-Range": f"bytes {start}-{start + len(body) - 1}/{sizes[name]}"}
        return web.Response(body=body, status=206, headers=headers)

    app = web.Application()
    app.router.add_get("/api/models/org/smollm/revision/{revision}", listing)
    app.router.add_get("/org/smollm/resolve/{commit}/{file}", resolve)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    yield HubSettings(endpoint=f"http://127.0.0.1:{unused_tcp_port}")
    await runner.cleanup()


def manifests(tmp_path: Path, more: str = "") -> list[Any]:
    path = tmp_path / "model.yaml"
    path.write_text(MANIFEST % more)
    return read_manifests(str(path), "default")


async def show(tmp_path: Path, terminal: Any, hub: HubSettings, more: str = "", gpu: Gpu | None = None) -> int:
    return await plan(manifests(tmp_path, more), token=None, gpu=gpu, console=terminal.console, hub=hub)


async def test_a_model_that_fits_is_told_with_its_numbers(tmp_path: Path, terminal: Any, hub: HubSettings) -> None:
    assert await show(tmp_path, terminal, hub, gpu=Gpu("NVIDIA-L4")) == 0
    assert COMMIT in terminal.text
    assert "LlamaForCausalLM" in terminal.text
    assert "Weights" in terminal.text
    assert "8,192 tokens" in terminal.text
    assert terminal.text.split("\n\n")[0].rstrip().endswith("Fits.")
    assert terminal.reads_well()


async def test_what_does_not_fit_is_refused_with_the_way_out(tmp_path: Path, terminal: Any, hub: HubSettings) -> None:
    gpu = Gpu("Tiny", memory_bytes=1280 << 20)
    assert await show(tmp_path, terminal, hub, gpu=gpu) == 1
    assert "WeightsTooLarge" in terminal.text
    assert "What to do:" in terminal.text


async def test_heads_that_do_not_divide_are_refused(tmp_path: Path, terminal: Any, hub: HubSettings) -> None:
    assert await show(tmp_path, terminal, hub, ", tensorParallelSize: 4", Gpu("NVIDIA-L4")) == 1
    assert "ParallelismMismatch" in terminal.text


async def test_an_unknown_gpu_leaves_the_memory_open(tmp_path: Path, terminal: Any, hub: HubSettings) -> None:
    assert await show(tmp_path, terminal, hub) == 0
    assert "name it by --gpu" in terminal.text


async def test_a_missing_revision_is_the_answer(tmp_path: Path, terminal: Any, hub: HubSettings) -> None:
    [given] = manifests(tmp_path)
    path = tmp_path / "model.yaml"
    path.write_text((MANIFEST % "").replace('"hf://org/smollm"', '"hf://org/smollm", revision: v9'))
    assert given.spec.model.revision is None
    found = read_manifests(str(path), "default")
    assert await plan(found, token=None, gpu=None, console=terminal.console, hub=hub) == 1
    assert "RevisionNotFound" in terminal.text


async def test_weights_on_a_claim_cannot_be_seen(tmp_path: Path, terminal: Any, hub: HubSettings) -> None:
    path = tmp_path / "model.yaml"
    path.write_text((MANIFEST % "").replace("hf://org/smollm", "pvc://weights/smollm"))
    found = read_manifests(str(path), "default")
    assert await plan(found, token=None, gpu=None, console=terminal.console, hub=hub) == 0
    assert "can be seen by pods only" in terminal.text


def test_the_imagined_node_has_the_gpu_that_the_manifest_names(tmp_path: Path) -> None:
    [plain] = manifests(tmp_path)
    assert imagined(plain, None).cluster.nodes == ()
    [node] = imagined(plain, Gpu("NVIDIA-L4", 24 << 30)).cluster.nodes
    assert node.labels == {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "24576"}
    path = tmp_path / "named.yaml"
    path.write_text((MANIFEST % "") + "  resources: {gpuProducts: [NVIDIA-H100-80GB-HBM3]}\n")
    [named] = read_manifests(str(path), "default")
    assert imagined(named, None).cluster.nodes[0].labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
