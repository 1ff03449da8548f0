"""Arguments of `octavo serve` and `octavo download`, and where their files are in the container.

A flag whose value would be the runtime's own `auto` or 1 is left out, so that `kubectl get pod -o yaml` shows choices.
No secret is ever an argument: keys come as files.
"""

from collections.abc import Mapping
from typing import Any

from octavo_operator.api import LLMDeployment
from octavo_operator.effective import PORT, Effective
from octavo_operator.sizing import Sizing
from octavo_operator.weights import Download, Weights, place_of, runtime_model, shared_folder

KEYS_FOLDER = "/etc/octavo/keys"
API_KEYS_FILE = "api-keys"
ADMIN_KEYS_FILE = "admin-keys"
TLS_FOLDER = "/etc/octavo/tls"
CHAT_TEMPLATE_FOLDER = "/etc/octavo/chat-template"
DEFAULT_CHAT_TEMPLATE_KEY = "chat_template.jinja"
_RUNTIME_BATCHED_TOKENS = 2048  # its default; it takes no more sequences than tokens in a step


def serve_arguments(deployment: LLMDeployment, effective: Effective, sizing: Sizing, weights: Weights) -> list[str]:
    """The user's extra arguments come last and so go before ours."""
    return [
        "serve",
        *_model(deployment, weights),
        "--served-model-name",
        *effective.served_names,
        "--port",
        str(PORT),
        *_device(effective),
        *_engine(effective),
        *_access(deployment),
        *_times(effective, sizing),
        "--log-format",
        "json",
        *(["--log-prompts"] if effective.log_prompts else []),
        *deployment.spec.engine.extra_args,
    ]


def download_arguments(deployment: LLMDeployment, weights: Weights, mount_path: str) -> list[str]:
    """Into the folder of the claim that serving pods will read."""
    return [
        "download",
        runtime_model(deployment),
        *(["--revision", weights.commit] if weights.commit else []),
        "--dest",
        f"{mount_path}/{shared_folder(deployment, weights.commit)}",
        *_choice(deployment),
        "--status-port",
        str(PORT),
        "--log-format",
        "json",
    ]


def _model(deployment: LLMDeployment, weights: Weights) -> list[str]:
    place = place_of(deployment, weights)
    if not isinstance(place, Download):
        arguments = [place.path]
    else:
        arguments = [place.model, *(["--revision", place.commit] if place.commit else []), *_choice(deployment)]
    if deployment.spec.model.trust_remote_code:
        arguments.append("--trust-remote-code")
    return arguments


def _choice(deployment: LLMDeployment) -> list[str]:
    """Which files are fetched and what they must be."""
    model = deployment.spec.model
    return [
        *(["--allow-files", *model.files.allow] if model.files.allow else []),
        *(["--ignore-files", *model.files.ignore] if model.files.ignore else []),
        *(["--digest", model.digest] if model.digest else []),
    ]


def _device(effective: Effective) -> list[str]:
    engine = effective.engine
    arguments = ["--device", effective.device.value]
    if engine.tensor_parallel_size > 1:
        arguments += ["--tensor-parallel-size", str(engine.tensor_parallel_size)]
    if engine.pipeline_parallel_size > 1:
        arguments += ["--pipeline-parallel-size", str(engine.pipeline_parallel_size)]
    return arguments


def _engine(effective: Effective) -> list[str]:
    engine = effective.engine
    return [
        "--gpu-memory-utilization",
        f"{engine.gpu_memory_utilization:g}",
        *_unless_auto("--quantization", engine.quantization),
        *_unless_auto("--kv-cache-dtype", engine.kv_cache_dtype),
        *_unless_auto("--dtype", engine.dtype),
        "--max-model-len",
        "auto" if engine.max_model_len is None else str(engine.max_model_len),
        "--max-num-seqs",
        str(engine.max_num_seqs),
        *_batched_tokens(engine.max_num_seqs),
        "--block-size",
        str(engine.block_size),
        "--enable-prefix-caching" if engine.prefix_caching else "--no-enable-prefix-caching",
        "--enable-chunked-prefill" if engine.chunked_prefill else "--no-enable-chunked-prefill",
    ]


def _batched_tokens(max_num_seqs: int) -> list[str]:
    return ["--max-num-batched-tokens", str(max_num_seqs)] if max_num_seqs > _RUNTIME_BATCHED_TOKENS else []


def _access(deployment: LLMDeployment) -> list[str]:
    access, template = deployment.spec.access, deployment.spec.model.chat_template
    arguments = ["--admin-key-file", f"{KEYS_FOLDER}/{ADMIN_KEYS_FILE}"]
    if needs_api_key(deployment):
        arguments += ["--api-key-file", f"{KEYS_FOLDER}/{API_KEYS_FILE}"]
    if access.tls:
        arguments += ["--ssl-certfile", f"{TLS_FOLDER}/tls.crt", "--ssl-keyfile", f"{TLS_FOLDER}/tls.key"]
    if template:
        key = template.config_map_key_ref.key or DEFAULT_CHAT_TEMPLATE_KEY
        arguments += ["--chat-template", f"{CHAT_TEMPLATE_FOLDER}/{key}"]
    return arguments


def needs_api_key(deployment: LLMDeployment) -> bool:
    """Whether requests without a key are refused; also while no Secret matches: a door never opens by a missing file."""
    api_keys = deployment.spec.access.api_keys
    return api_keys is not None and api_keys.required is not False


def reads_api_keys(template: Mapping[str, Any]) -> bool:
    """Whether containers of this pod template cannot start without the file of API keys."""
    containers = template.get("spec", {}).get("containers") or ()
    return any(f"{KEYS_FOLDER}/{API_KEYS_FILE}" in (container.get("args") or ()) for container in containers)


def _times(effective: Effective, sizing: Sizing) -> list[str]:
    return [
        "--shutdown-timeout",
        str(effective.rollout.drain_seconds),
        "--startup-timeout",
        str(sizing.startup_seconds),
        "--engine-hang-timeout",
        str(effective.engine.stall_seconds),
    ]


def _unless_auto(flag: str, value: str) -> list[str]:
    return [] if value == "auto" else [flag, value]
