"""`plan -f` answers before anything is applied: what is needed, and whether it fits."""

import json
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from octavo_operator.api import LLMDeployment
from octavo_operator.model.hub import HubSettings
from octavo_operator.plugin.manifest import Manifest, read_manifests
from octavo_operator.plugin.plan import DEFAULTS, Gpu, Outcome, imagined, plan

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
apiVersion: octavo.dev/v1alpha1
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


def manifests(tmp_path: Path, text: str = MANIFEST % "") -> list[Manifest]:
    path = tmp_path / "model.yaml"
    path.write_text(text)
    return read_manifests(str(path), "default", DEFAULTS)


def deployment(tmp_path: Path, text: str) -> LLMDeployment:
    [found] = manifests(tmp_path, text)
    assert found.deployment is not None
    return found.deployment


Show = Callable[..., Awaitable[Outcome]]


@pytest.fixture
def show(tmp_path: Path, terminal: Any, hub: HubSettings) -> Show:
    """Plan a manifest with the hub above, or with another."""

    async def run(text: str = MANIFEST % "", gpu: Gpu | None = None, at: HubSettings | None = None) -> Outcome:
        return await plan(manifests(tmp_path, text), at or hub, token=None, gpu=gpu, console=terminal.console)

    return run


async def test_a_model_that_fits_is_told_with_its_numbers(show: Show, terminal: Any) -> None:
    assert await show(gpu=Gpu("NVIDIA-L4")) is Outcome.FITS
    assert COMMIT in terminal.text
    assert "LlamaForCausalLM" in terminal.text
    assert "Weights" in terminal.text
    assert "8,192 tokens" in terminal.text
    assert terminal.text.split("\n\n")[0].rstrip().endswith("Fits.")
    assert terminal.reads_well()


async def test_what_does_not_fit_is_refused_with_the_way_out(show: Show, terminal: Any) -> None:
    assert await show(gpu=Gpu("Tiny", memory_bytes=1280 << 20)) is Outcome.REFUSED
    assert "WeightsTooLarge" in terminal.text
    assert "What to do:" in terminal.text


async def test_heads_that_do_not_divide_are_refused(show: Show, terminal: Any) -> None:
    assert await show(MANIFEST % ", tensorParallelSize: 4", Gpu("NVIDIA-L4")) is Outcome.REFUSED
    assert "ParallelismMismatch" in terminal.text


async def test_what_the_api_server_would_refuse_is_told_and_the_next_is_planned(show: Show, terminal: Any) -> None:
    bad = (MANIFEST % ", maxNumSeqs: 0").replace("spec:", "spec:\n  enigne: {}")
    assert await show(f"{bad}---\n{MANIFEST % ''}", Gpu("NVIDIA-L4")) is Outcome.REFUSED
    assert "It would be refused:" in terminal.text
    assert "spec.engine.maxNumSeqs: 0 is too small; write from 1 to 4096." in terminal.text
    assert "did you mean spec.engine?" in terminal.text
    assert "?." not in terminal.text
    assert "Fits." in terminal.text


async def test_the_remedy_is_told_whole_where_a_secret_is_refused(show: Show, terminal: Any) -> None:
    bad = MANIFEST % ', extraArgs: ["--api-key", "sk-1234567890abcdef", "--api-key=sk-1234567890abcdef"]'
    assert await show(bad) is Outcome.REFUSED
    assert "spec.engine.extraArgs: --api-key: write access.apiKeys." in terminal.text
    assert "1234567890abcdef" not in terminal.text


async def test_an_unknown_version_is_refused_and_the_next_is_planned(show: Show, terminal: Any) -> None:
    later = (MANIFEST % "").replace("/v1alpha1", "/v1")
    assert await show(f"{later}---\n{MANIFEST % ''}", Gpu("NVIDIA-L4")) is Outcome.REFUSED
    assert "apiVersion: octavo.dev/v1 is not known; write octavo.dev/v1alpha1." in terminal.text
    assert "Fits." in terminal.text


async def test_an_unknown_gpu_leaves_the_memory_open(show: Show, terminal: Any) -> None:
    assert await show(gpu=Gpu("Unheard-Of")) is Outcome.OPEN
    assert "write --gpu-memory beside --gpu" in terminal.text


async def test_a_hub_that_is_not_reached_leaves_everything_open(
    show: Show, terminal: Any, unused_tcp_port_factory: Callable[[], int]
) -> None:
    nobody = HubSettings(f"http://127.0.0.1:{unused_tcp_port_factory()}")
    assert await show(at=nobody) is Outcome.OPEN
    assert "HubUnreachable" in terminal.text
    assert "Check the way out of this machine" in terminal.text
    assert "operator" not in terminal.text


async def test_a_hub_of_the_manifest_is_what_was_asked_and_no_flag_helps(
    show: Show, terminal: Any, unused_tcp_port_factory: Callable[[], int]
) -> None:
    nobody = f"http://127.0.0.1:{unused_tcp_port_factory()}"
    assert await show((MANIFEST % "").replace('smollm"', f'smollm", endpoint: "{nobody}"')) is Outcome.OPEN
    told = " ".join(terminal.text.split())
    assert "change model.endpoint of the manifest: that is what was asked" in told
    assert "name a mirror by --endpoint" not in told


async def test_without_a_gpu_the_plan_says_that_it_is_the_cpus(show: Show, terminal: Any) -> None:
    assert await show((MANIFEST % "").replace("device: cuda", "device: auto")) is Outcome.FITS
    assert "CPU (for a cluster with GPUs, name one by --gpu)" in terminal.text


async def test_a_missing_revision_is_the_answer(show: Show, terminal: Any) -> None:
    assert await show((MANIFEST % "").replace('smollm"', 'smollm", revision: v9')) is Outcome.REFUSED
    assert "RevisionNotFound" in terminal.text


async def test_weights_on_a_claim_cannot_be_seen(show: Show, terminal: Any) -> None:
    assert await show((MANIFEST % "").replace("hf://org/smollm", "pvc://weights/smollm")) is Outcome.FITS
    assert "can be seen by pods only" in terminal.text


def test_the_imagined_node_has_the_gpu_that_the_manifest_names(tmp_path: Path) -> None:
    plain = deployment(tmp_path, MANIFEST % "")
    assert imagined(plain, None).cluster.nodes == ()
    [node] = imagined(plain, Gpu("NVIDIA-L4", 24 << 30)).cluster.nodes
    assert node.labels == {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "24576"}
    named = deployment(tmp_path, (MANIFEST % "") + "  resources: {gpuProducts: [NVIDIA-H100-80GB-HBM3]}\n")
    assert imagined(named, None).cluster.nodes[0].labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"


async def test_of_several_gpu_products_the_smallest_decides(show: Show, terminal: Any) -> None:
    both = (MANIFEST % "") + "  resources: {gpuProducts: [NVIDIA-H100-80GB-HBM3, NVIDIA-L4]}\n"
    assert await show(both) is Outcome.FITS
    [line] = [line for line in terminal.text.splitlines() if line.startswith("KV cache")]
    assert float(line.split()[-2]) < 22, "that of the L4"


async def test_a_refusal_counts_more_than_what_could_not_be_told(show: Show) -> None:
    both = f"{MANIFEST % ''}---\n{MANIFEST % ', maxNumSeqs: 0'}"
    assert await show(both, Gpu("Unheard-Of")) is Outcome.REFUSED
