"""Memory figures of the embedded model, from its header."""

import re

import pytest

from octavo_runtime.byte_size import size
from octavo_runtime.cli.main import run
from octavo_runtime.errors import StartError
from octavo_runtime.hub import resolve_model
from octavo_runtime.model.config_reader import read_model_config
from octavo_runtime.model.memory_plan import plan_memory
from octavo_runtime.settings import load_settings
from octavo_runtime.settings_groups import flag_name
from octavo_runtime.worker.cache_size import size_cache


def plan(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, str]:
    """The rows; the exit status says whether it fits."""
    status = run(["plan", "embedded", *arguments])
    rows = {line[:28].strip(): line[28:] for line in capsys.readouterr().out.splitlines()}
    assert status == ("fits" in rows)
    return rows


def test_figures_of_the_embedded_model(capsys: pytest.CaptureFixture[str]) -> None:
    rows = plan(capsys, "--memory", "16GiB")
    assert rows["model"] == "LlamaForCausalLM, 134.5 M parameters"
    assert rows["weights"] == "256.6 MiB as bfloat16"
    assert rows["cache per token"] == "22.5 KiB"  # 2 x 30 layers x 3 heads x 64 x 2 bytes
    assert rows["longest context"] == "8,192 tokens"
    assert rows["memory to use"] == "14.40 GiB of 16.00 GiB"


def test_float32_doubles_weights_and_cache(capsys: pytest.CaptureFixture[str]) -> None:
    rows = plan(capsys, "--memory", "16GiB", "--dtype", "float32")
    assert (rows["weights"], rows["cache per token"]) == ("513.1 MiB as float32", "45.0 KiB")


def test_context_that_does_not_fit_shows_the_longest_that_does(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ("--memory", "16GiB", "--kv-cache-memory-bytes", "90MiB", "--max-model-len")
    assert "the largest that fits is --max-model-len 4096" in plan(capsys, *flags, "8192")["fits"]
    assert plan(capsys, *flags, "4096")["sequences at once"] == "1 of 4,096 tokens"


@pytest.mark.parametrize(
    "flags",
    [
        {},
        {"gpu_memory_utilization": 0.5},
        {"gpu_memory_utilization": 0.2},
        {"swap_space": 0.25},
        {"swap_space": 1},
        {"max_model_len": "auto", "gpu_memory_utilization": 0.46},
        {"max_model_len": 9000},
        {"max_model_len": 512, "max_num_seqs": 3},
        {"kv_cache_memory_bytes": "64MiB", "max_model_len": 1024},
        {"kv_cache_memory_bytes": "2GiB"},
        {"num_gpu_blocks_override": 600},
        {"dtype": "float32", "block_size": 32},
        {"max_num_batched_tokens": 64},
    ],
    ids=str,
)
def test_plan_says_what_a_start_would_do(flags: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [word for field, value in flags.items() for word in (flag_name(field), str(value))]
    rows = plan(capsys, "--memory", "1GiB", *arguments)
    told = load_settings({"model": "embedded", **flags}).worker_settings(resolve_model("embedded"))
    config = read_model_config(told.model_path)
    sizes = plan_memory(config, told.dtype.stored("cpu"), told.block_size)
    if "fits" in rows:
        with pytest.raises(StartError, match=re.escape(rows["fits"].removeprefix("no: "))):
            size_cache(told, config, sizes, 1 << 30)
        return
    started = size_cache(told, config, sizes, 1 << 30)
    assert rows["cache"].endswith(f" {started.num_blocks:,} blocks")
    assert rows["longest context"] == f"{started.max_model_len:,} tokens"
    assert rows["swap space"] == size(told.swap_bytes)


def test_model_that_does_not_fit_says_what_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert plan(capsys, "--memory", "300MB")["fits"].startswith("no: ")
