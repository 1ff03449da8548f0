"""The spec as flags of the runtime."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.desired.arguments import download_arguments, needs_api_key, reads_api_keys, serve_arguments
from octavo_operator.weights import Weights

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SHARED = {"mode": "SharedPVC", "sharedPVC": {"claimName": "models"}}
KEYS = {"secretSelector": {"team": "a"}}


def flags(arguments: list[str]) -> dict[str, list[str]]:
    """Flag -> its values; the words before the first flag under ''."""
    found: dict[str, list[str]] = {"": []}
    flag = ""
    for argument in arguments:
        if argument.startswith("--"):
            flag = argument
            found[flag] = []
        else:
            found[flag].append(argument)
    return found


@pytest.fixture
def serve(render: Callable[..., Any]) -> Callable[..., dict[str, list[str]]]:
    return lambda spec, **options: flags(render(spec, **options).container["args"])


def test_a_minimal_spec_says_what_was_chosen_and_no_more(render: Callable[..., Any]) -> None:
    assert render({}).container["args"] == [
        *("serve", "acme/small-1b", "--revision", COMMIT, "--served-model-name", "small", "--port", "8000"),
        *("--device", "cpu", "--gpu-memory-utilization", "0.9", "--max-model-len", "auto", "--max-num-seqs", "256"),
        *("--block-size", "16", "--enable-prefix-caching", "--enable-chunked-prefill"),
        *("--admin-key-file", "/etc/octavo/keys/admin-keys", "--shutdown-timeout", "300"),
        *("--startup-timeout", "600", "--engine-hang-timeout", "120", "--log-format", "json"),
    ]


def test_every_engine_field_is_a_flag(serve: Callable[..., dict[str, list[str]]]) -> None:
    engine = {
        "tensorParallelSize": 4,
        "pipelineParallelSize": 2,
        "gpuMemoryUtilization": 0.85,
        "quantization": "awq",
        "kvCacheDtype": "fp8",
        "dtype": "bfloat16",
        "maxModelLen": 8192,
        "maxNumSeqs": 64,
        "blockSize": 32,
        "prefixCaching": False,
        "chunkedPrefill": False,
        "extraArgs": ["--seed", "7"],
    }
    found = serve({"engine": engine}, gpus=8)
    assert (
        found.items()
        >= {
            "--device": ["cuda"],
            "--tensor-parallel-size": ["4"],
            "--pipeline-parallel-size": ["2"],
            "--gpu-memory-utilization": ["0.85"],
            "--quantization": ["awq"],
            "--kv-cache-dtype": ["fp8"],
            "--dtype": ["bfloat16"],
            "--max-model-len": ["8192"],
            "--max-num-seqs": ["64"],
            "--block-size": ["32"],
            "--no-enable-prefix-caching": [],
            "--no-enable-chunked-prefill": [],
            "--seed": ["7"],
        }.items()
    )


def test_extra_arguments_come_last_so_that_they_win(render: Callable[..., Any]) -> None:
    assert render({"engine": {"extraArgs": ["--seed", "7"]}}).container["args"][-2:] == ["--seed", "7"]


def test_more_sequences_than_a_step_has_tokens_get_a_longer_step(serve: Callable[..., dict[str, list[str]]]) -> None:
    assert serve({"engine": {"maxNumSeqs": 4096}})["--max-num-batched-tokens"] == ["4096"]
    assert "--max-num-batched-tokens" not in serve({"engine": {"maxNumSeqs": 2048}})


def test_every_model_field_that_the_runtime_needs_is_a_flag(serve: Callable[..., dict[str, list[str]]]) -> None:
    model = {
        "uri": "hf://acme/small-1b",
        "revision": COMMIT,
        "servedNames": ["a", "b"],
        "digest": f"sha256:{'a' * 64}",
        "files": {"allow": ["*.json", "*.safetensors"], "ignore": ["*.bin"]},
        "trustRemoteCode": True,
        "chatTemplate": {"configMapKeyRef": {"name": "templates", "key": "mine.jinja"}},
    }
    found = serve({"model": model})
    assert (
        found.items()
        >= {
            "--served-model-name": ["a", "b"],
            "--digest": [f"sha256:{'a' * 64}"],
            "--allow-files": ["*.json", "*.safetensors"],
            "--ignore-files": ["*.bin"],
            "--trust-remote-code": [],
            "--chat-template": ["/etc/octavo/chat-template/mine.jinja"],
        }.items()
    )


def test_a_mounted_model_is_a_path_and_nothing_is_chosen_or_verified_again(
    serve: Callable[..., dict[str, list[str]]],
) -> None:
    model = {"uri": "hf://acme/small-1b", "digest": f"sha256:{'a' * 64}", "files": {"allow": ["*.json"]}}
    found = serve({"model": model, "cache": SHARED})
    assert found[""][1].startswith(f"/models/acme--small-1b/{COMMIT}-")
    assert not found.keys() & {"--revision", "--digest", "--allow-files"}


def test_the_downloader_is_told_what_to_fetch_and_where_pods_will_look(
    deployment: Callable[..., Any], render: Callable[..., Any]
) -> None:
    model = {"uri": "hf://acme/small-1b", "digest": f"sha256:{'a' * 64}", "files": {"ignore": ["*.bin"]}}
    spec = {"model": model, "cache": SHARED}
    found = flags(download_arguments(deployment(**spec), Weights(COMMIT), "/models"))
    assert found[""] == ["download", "acme/small-1b"]
    assert found["--dest"] == [flags(render(spec).container["args"])[""][1]]
    assert found["--revision"] == [COMMIT]
    assert found["--digest"] == [f"sha256:{'a' * 64}"]
    assert found["--ignore-files"] == ["*.bin"]
    assert found["--status-port"] == ["8000"]
    assert found["--log-format"] == ["json"]


@pytest.mark.parametrize(
    ("access", "needed"),
    [
        ({}, False),
        ({"apiKeys": KEYS}, True),
        ({"apiKeys": KEYS | {"required": True}}, True),
        ({"apiKeys": KEYS | {"required": False}}, False),
    ],
)
def test_keys_are_asked_for_unless_they_are_not_required(
    access: dict[str, Any], needed: bool, deployment: Callable[..., Any], serve: Callable[..., dict[str, list[str]]]
) -> None:
    assert needs_api_key(deployment(access=access)) is needed
    assert serve({"access": access}).get("--api-key-file") == (["/etc/octavo/keys/api-keys"] if needed else None)


def test_a_template_tells_whether_its_pods_need_the_file_of_keys(render: Callable[..., Any]) -> None:
    keys = {"secretSelector": {"team": "a"}}
    assert reads_api_keys(render({"access": {"apiKeys": keys}}).template)
    assert not reads_api_keys(render({"access": {"apiKeys": {**keys, "required": False}}}).template)
    assert not reads_api_keys(render({}).template)
    assert not reads_api_keys({})


def test_certificates_are_files(serve: Callable[..., dict[str, list[str]]]) -> None:
    found = serve({"access": {"tls": {"secretName": "cert"}}})
    assert found["--ssl-certfile"] == ["/etc/octavo/tls/tls.crt"]
    assert found["--ssl-keyfile"] == ["/etc/octavo/tls/tls.key"]


def test_times_are_the_specs(serve: Callable[..., dict[str, list[str]]]) -> None:
    spec = {
        "rollout": {"drain": {"timeoutSeconds": 42}},
        "startup": {"timeoutSeconds": 77},
        "liveness": {"engineStallSeconds": 0},
    }
    found = serve(spec)
    assert found["--shutdown-timeout"] == ["42"]
    assert found["--startup-timeout"] == ["77"]
    assert found["--engine-hang-timeout"] == ["0"]


def test_prompts_are_logged_only_on_demand(serve: Callable[..., dict[str, list[str]]]) -> None:
    assert "--log-prompts" not in serve({})
    assert "--log-prompts" in serve({"observability": {"logPrompts": True}})


def test_arguments_depend_on_nothing_but_what_is_given(render: Callable[..., Any]) -> None:
    one = render({})
    assert serve_arguments(one.deployment, one.effective, one.sizing, one.weights) == one.container["args"]
