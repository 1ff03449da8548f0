"""Layers, mapping onto the engine's configuration, and sentences that name the flag."""

from pathlib import Path
from typing import Any

import pytest

from octavo_runtime.engine.config import PreemptionMode, SchedulingPolicy
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.hub import ModelKind, ModelSource
from octavo_runtime.settings import Settings, engine_environment, load_settings

SOURCE = ModelSource("m", Path("/models/m.gguf"), ModelKind.GGUF, {}, {})


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OCTAVO_CONFIG", "OCTAVO_PORT", "OCTAVO_API_KEY", "VLLM_API_KEY", "OCTAVO_MAX_NUM_SEQS"):
        monkeypatch.delenv(name, raising=False)


def settings(**flags: Any) -> Settings:
    return load_settings({"model": "m", **flags})


def test_flags_go_before_environment_before_file_before_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "octavo.yaml"
    file.write_text("port: 1\nmax-num-seqs: 11\nmax_model_len: 8k\nserved-model-name: [a, b]\n")
    monkeypatch.setenv("OCTAVO_PORT", "2")
    monkeypatch.setenv("OCTAVO_MAX_NUM_SEQS", "22")
    made = load_settings({"model": "m", "port": "3"}, file)
    assert (made.server.port, made.scheduler.max_num_seqs, made.model.max_model_len) == (3, 22, 8000)
    assert made.served_names == ("a", "b")
    assert made.server.host == "0.0.0.0"


def test_environment_can_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.yaml").write_text("model: from-file\n")
    monkeypatch.setenv("OCTAVO_CONFIG", str(tmp_path / "c.yaml"))
    assert load_settings({}).model.model == "from-file"


def test_variables_that_kubernetes_makes_for_a_service_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_PORT", "tcp://10.0.0.1:8000")
    assert settings().server.port == 8000


@pytest.mark.parametrize("name", ["OCTAVO_API_KEY", "VLLM_API_KEY"])
def test_keys_come_from_the_environment_and_a_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "one,two")
    (tmp_path / "keys").write_text("three\n\n four five \n")
    assert settings(api_key_file=tmp_path / "keys").api_keys() == ("one,two", "three", "four five")


@pytest.mark.parametrize("name", ["OCTAVO_API_KEY", "VLLM_API_KEY"])
def test_a_key_that_is_set_to_nothing_does_not_open_the_server(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "")
    with pytest.raises(StartError, match="--api-key must not be empty"):
        settings()


@pytest.mark.parametrize("key", [["secret", 7], [["secret"]], '["secret"', {"secret": 1}])
def test_a_refused_key_is_not_shown(key: object) -> None:
    with pytest.raises(StartError, match="--api-key must be") as caught:
        settings(api_key=key)
    assert "secret" not in str(caught.value)


def test_keys_are_neither_shown_nor_sent_to_the_engine() -> None:
    made = settings(api_key=["secret"])
    assert "secret" not in repr(made)
    assert "secret" not in made.to_json()


def test_key_file_that_is_empty_or_missing_refuses_to_serve_openly(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("\n")
    for file in (tmp_path / "keys", tmp_path / "none"):
        with pytest.raises(StartError, match="--api-key-file"):
            settings(api_key_file=file).api_keys()


def test_settings_survive_the_way_to_the_engine_process() -> None:
    made = settings(max_model_len="auto", kv_cache_memory_bytes="1GiB", preemption_mode="swap", swap_space="0.5")
    assert Settings.from_json(made.to_json()) == made
    assert made.swap_bytes == 1 << 29


def test_engine_configuration_is_typed() -> None:
    made = settings(
        scheduling_policy="priority", preemption_mode="recompute", enable_chunked_prefill=False, block_size="32"
    )
    scheduler, cache = made.scheduler_config(4096), made.cache_config(100, 10)
    assert (scheduler.policy, scheduler.preemption_mode) == (SchedulingPolicy.PRIORITY, PreemptionMode.RECOMPUTE)
    assert (scheduler.chunked_prefill, scheduler.max_model_len) == (False, 4096)
    assert (cache.block_size, cache.num_blocks, cache.num_host_blocks, cache.prefix_caching) == (32, 100, 10, True)


def test_engine_environment_keeps_what_the_user_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TOP_PAD_", "1")
    made = engine_environment(settings(cpu_threads="3"))
    assert (made["MALLOC_TOP_PAD_"], made["OMP_NUM_THREADS"]) == ("1", "3")
    assert "MALLOC_MMAP_THRESHOLD_" in made


def test_engine_environment_has_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_API_KEY", "secret-1")
    monkeypatch.setenv("VLLM_API_KEY", "secret-2")
    assert not [name for name, value in engine_environment(settings()).items() if "secret" in value]


def test_worker_is_told_what_was_chosen() -> None:
    made = settings(swap_space=1, max_num_batched_tokens=64, cpu_threads=3, seed=5)
    told = made.worker_settings(SOURCE)
    assert (told.model_path, told.device, told.num_threads) == (SOURCE.path, "cpu", 3)
    assert (told.max_num_seqs, told.max_num_batched_tokens, told.swap_bytes) == (64, 64, 1 << 30)
    assert (made.scheduler_config(100).seed, settings().scheduler_config(100).seed) == (5, None)


def test_weights_of_another_form_than_load_format_says_are_refused() -> None:
    for chosen in ("auto", "gguf"):
        assert settings(load_format=chosen).worker_settings(SOURCE).model_path == SOURCE.path
    with pytest.raises(StartError, match=r"--load-format is safetensors, but .* holds gguf") as caught:
        settings(load_format="safetensors").worker_settings(SOURCE)
    assert caught.value.cause is StartCause.INVALID_SETTINGS


def test_the_queue_is_bounded_unless_zero_is_asked_for() -> None:
    assert settings().server.max_num_queued_reqs > 0
    assert settings(max_num_queued_reqs="0").server.max_num_queued_reqs == 0


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (
            {"max_num_seqs": 300, "max_num_batched_tokens": 256},
            "--max-num-seqs must be at most --max-num-batched-tokens (256), so that every sequence gets on, got 300.",
        ),
        ({"port": "abc"}, "--port must be a valid integer, got 'abc'."),
        ({"port": "70000"}, "--port must be less than or equal to 65535, got '70000'."),
        ({"tensor_parallel_size": 2}, "--tensor-parallel-size must be 1: more devices come in a later release, got 2."),
        (
            {"trust_remote_code": True},
            "--trust-remote-code is refused: no code of a checkpoint is ever run; leave it out.",
        ),
        (
            {"kv_cache_memory_bytes": "lots"},
            "--kv-cache-memory-bytes must be a size in bytes such as 4GiB, got 'lots'.",
        ),
        ({"max_model_len": "0"}, "--max-model-len must be at least 1, or -1 or auto for what fits into memory, got 0."),
        ({"block_size": "17"}, "--block-size must be 8, 16, 32, 64 or 128, got 17."),
        ({"device": "cuda"}, "--device must be 'auto' or 'cpu', got 'cuda'."),
        ({"kv_cache_dtype": "fp8"}, "--kv-cache-dtype must be 'auto', got 'fp8'."),
        ({"gpu_memory_utilization": "2"}, "--gpu-memory-utilization must be less than or equal to 1, got '2'."),
        ({"no_such": 1}, "There is no setting --no-such."),
    ],
)
def test_wrong_value_is_one_sentence_that_names_the_flag(flags: dict[str, Any], sentence: str) -> None:
    with pytest.raises(StartError) as caught:
        settings(**flags)
    assert str(caught.value) == sentence
    assert caught.value.cause is StartCause.INVALID_SETTINGS


def test_missing_model_says_what_a_model_is() -> None:
    with pytest.raises(StartError, match="No model is given"):
        load_settings({})


@pytest.mark.parametrize("content", ["[1]", "a: [", "port 3", "nope: 1"])
def test_broken_file_is_one_sentence(content: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(content)
    with pytest.raises(StartError) as caught:
        load_settings({"model": "m"}, tmp_path / "c.yaml")
    assert "\n" not in str(caught.value)
