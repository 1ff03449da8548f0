"""Every argument that the operator gives to a pod is one that the runtime takes, with the value that the spec has."""

from pathlib import Path
from typing import Any

import pytest

from octavo_operator.api import parse as parse_resource
from octavo_operator.desired.arguments import download_arguments, serve_arguments
from octavo_operator.effective import RenderDefaults, decide
from octavo_operator.observed import ClusterView, NodeView
from octavo_operator.sizing import size
from octavo_operator.weights import Weights
from octavo_runtime.cli import download, serve
from octavo_runtime.cli.flags import Parser, parse, settings_of
from octavo_runtime.settings import Settings

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DIGEST = f"sha256:{'a' * 64}"
EVERYTHING: dict[str, Any] = {
    "model": {
        "uri": "hf://acme/small-1b",
        "revision": COMMIT,
        "servedNames": ["a", "b"],
        "digest": DIGEST,
        "files": {"allow": ["*.json", "*.safetensors"], "ignore": ["*.bin", "original/*"]},
        "trustRemoteCode": True,
        "chatTemplate": {"configMapKeyRef": {"name": "templates", "key": "mine.jinja"}},
    },
    "engine": {
        "tensorParallelSize": 2,
        "pipelineParallelSize": 2,
        "gpuMemoryUtilization": 0.85,
        "quantization": "squeezellm",
        "kvCacheDtype": "fp8",
        "dtype": "bfloat16",
        "maxModelLen": 8192,
        "maxNumSeqs": 4096,
        "blockSize": 32,
        "prefixCaching": False,
        "chunkedPrefill": False,
        "extraArgs": ["--seed", "7"],
    },
    "access": {"apiKeys": {"secretSelector": {"a": "b"}}, "tls": {"secretName": "cert"}},
    "observability": {"logPrompts": True},
    "liveness": {"engineStallSeconds": 0},
}
SHARED: dict[str, Any] = {"cache": {"mode": "SharedPVC", "sharedPVC": {"size": "1Gi"}}}


def rendered(spec: dict[str, Any], gpus: int = 0) -> tuple[list[str], list[str]]:
    """Arguments of a serving pod and of a downloader."""
    metadata = {"name": "small", "namespace": "models", "uid": "u-1"}
    deployment = parse_resource({"metadata": metadata, "spec": {"model": {"uri": "hf://acme/small-1b"}} | spec})
    defaults, weights = RenderDefaults(image="i", operator_version="1"), Weights(COMMIT, 1 << 30)
    node = NodeView("node-1", True, {}, (), {"nvidia.com/gpu": gpus}, {})
    effective = decide(deployment, ClusterView(nodes=(node,)), defaults)
    sizing = size(deployment, effective, weights, defaults)
    return serve_arguments(deployment, effective, sizing, weights), download_arguments(deployment, weights, "/models")


def taken(verb: Any, arguments: list[str]) -> tuple[Settings, Any]:
    parser = Parser(prog="octavo", allow_abbrev=False)
    verb.add_arguments(parser)
    parsed, warnings = parse(parser, arguments[1:])
    assert warnings == []
    return settings_of(parsed), parsed


@pytest.mark.parametrize(
    ("spec", "model"),
    [
        ({}, "acme/small-1b"),
        (SHARED, f"/models/acme--small-1b/{COMMIT}"),
        ({"model": {"uri": "pvc://weights/a"}}, "/model/a"),
        ({"model": {"uri": "file:///models/a"}}, "/models/a"),
        ({"model": {"uri": "https://files.example/m.gguf"}}, "https://files.example/m.gguf"),
    ],
)
def test_the_runtime_takes_what_a_serving_pod_is_given(spec: dict[str, Any], model: str) -> None:
    settings, _ = taken(serve, rendered(spec)[0])
    assert settings.model.model == model
    assert settings.model.served_model_name == ("small",)
    assert (settings.device.device, settings.server.port, settings.log.log_format) == ("cpu", 8000, "json")
    assert settings.server.admin_key_file == Path("/etc/octavo/keys/admin-keys")


def test_every_field_of_the_spec_reaches_the_runtime() -> None:
    settings, _ = taken(serve, rendered(EVERYTHING, gpus=8)[0])
    model, device, cache, scheduler, server = (
        settings.model,
        settings.device,
        settings.cache,
        settings.scheduler,
        settings.server,
    )
    assert (model.revision, model.digest, model.served_model_name) == (COMMIT, DIGEST, ("a", "b"))
    assert model.allow_files == ("*.json", "*.safetensors")
    assert model.ignore_files == ("*.bin", "original/*")
    assert (model.trust_remote_code, model.quantization, model.dtype.value) == (True, "squeezellm", "bfloat16")
    assert (model.max_model_len, model.seed) == (8192, 7)
    assert str(model.chat_template) == "/etc/octavo/chat-template/mine.jinja"
    assert (device.device, device.tensor_parallel_size, device.pipeline_parallel_size) == ("cuda", 2, 2)
    assert (cache.gpu_memory_utilization, cache.kv_cache_dtype, cache.block_size) == (0.85, "fp8", 32)
    assert not cache.enable_prefix_caching
    assert (scheduler.max_num_seqs, scheduler.enable_chunked_prefill) == (4096, False)
    assert server.api_key_file == Path("/etc/octavo/keys/api-keys")
    assert (server.ssl_certfile, server.ssl_keyfile) == (
        Path("/etc/octavo/tls/tls.crt"),
        Path("/etc/octavo/tls/tls.key"),
    )
    assert (server.shutdown_timeout, server.startup_timeout, server.engine_hang_timeout) == (300, 600, 0)
    assert settings.log.log_prompts


def test_the_runtime_takes_what_a_downloader_is_given() -> None:
    settings, parsed = taken(download, rendered(EVERYTHING | SHARED)[1])
    assert (settings.model.model, settings.model.revision, settings.model.digest) == ("acme/small-1b", COMMIT, DIGEST)
    assert settings.model.allow_files == ("*.json", "*.safetensors")
    assert parsed.dest.parts[:3] == ("/", "models", "acme--small-1b")
    assert parsed.status_port == "8000"
