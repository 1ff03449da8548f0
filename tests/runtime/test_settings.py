"""Layers, mapping onto the engine's configuration, and sentences that name the flag."""

from pathlib import Path
from typing import Any

import pytest

from octavo_runtime.engine.config import PreemptionMode, SchedulingPolicy
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.manifest import FileChoice
from octavo_runtime.hub import ModelKind, ModelSource
from octavo_runtime.settings import Settings, engine_environment, load_settings, misspelt_variables

SOURCE = ModelSource("m", Path("/models/m.gguf"), ModelKind.GGUF, {}, {})
QUANTIZATIONS = "--quantization must be 'auto', 'none', 'awq', 'gptq', 'squeezellm' or 'fp8', got 'int3'."


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
def test_keys_come_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "one,two")
    assert settings().server.api_key == ("one,two",)


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
    monkeypatch.setenv("HF_TOKEN", "secret-3")
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
        ({"tensor_parallel_size": 0}, "--tensor-parallel-size must be greater than or equal to 1, got '0'."),
        ({"data_parallel_size": 2}, "--data-parallel-size must be 1: run more replicas instead, got 2."),
        ({"digest": "sha256:abc"}, "--digest must be sha256: and 64 hexadecimal digits in lower case."),
        ({"quantization": "int3"}, QUANTIZATIONS),
        (
            {"kv_cache_memory_bytes": "lots"},
            "--kv-cache-memory-bytes must be a size in bytes such as 4GiB, got 'lots'.",
        ),
        ({"max_model_len": "0"}, "--max-model-len must be at least 1, or -1 or auto for what fits into memory, got 0."),
        ({"block_size": "17"}, "--block-size must be 8, 16, 32, 64 or 128, got 17."),
        ({"device": "tpu"}, "--device must be 'auto', 'cuda' or 'cpu', got 'tpu'."),
        ({"kv_cache_dtype": "fp4"}, "--kv-cache-dtype must be 'auto' or 'fp8', got 'fp4'."),
        ({"startup_timeout": -1}, "--startup-timeout must be greater than or equal to 0, got '-1'."),
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


def test_a_wrong_value_says_where_it_came_from_unless_a_flag_gave_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("port: x\n")
    with pytest.raises(StartError, match=r"--port must be a valid integer, got 'x' \(from .*c\.yaml\)\.$"):
        load_settings({"model": "m"}, file)
    monkeypatch.setenv("OCTAVO_PORT", "y")
    with pytest.raises(StartError, match=r"got 'y' \(from OCTAVO_PORT\)\.$"):
        load_settings({"model": "m"}, file)
    with pytest.raises(StartError, match=r"got 'z'\.$"):
        load_settings({"model": "m", "port": "z"}, file)
    monkeypatch.setenv("VLLM_API_KEY", "")
    monkeypatch.delenv("OCTAVO_PORT")
    with pytest.raises(StartError, match="VLLM_API_KEY"):
        load_settings({"model": "m"})


def test_a_variable_that_is_nearly_a_setting_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "OCTAVO_SERVICE_HOST",
        "OCTAVO_PORT_8000_TCP_ADDR",
        "OCTAVO_MAX_MODEL_LEN",
        "OCTAVO_CONFIG",
        "OCTAVO_CACHE",
    ):
        monkeypatch.setenv(name, "1")
    assert misspelt_variables() == []
    monkeypatch.setenv("OCTAVO_MAX_MODEL_LENGTH", "1")
    assert misspelt_variables() == ["OCTAVO_MAX_MODEL_LENGTH is not a setting; did you mean OCTAVO_MAX_MODEL_LEN?"]


def test_what_is_fetched_is_told_as_chosen() -> None:
    digest = "sha256:" + "a" * 64
    made = settings(revision="r", allow_files=["*.json", "a,b"], ignore_files="*.bin", digest=digest, download_dir="/d")
    options = made.fetch_options()
    assert (options.revision, options.digest, options.download_dir) == ("r", digest, Path("/d"))
    assert options.choice == FileChoice(("*.json", "a,b"), ("*.bin",))
    assert made.with_model(Path("/here")).fetch_options().digest is None


def test_the_worker_is_not_told_to_do_what_this_build_cannot() -> None:
    with pytest.raises(StartError) as caught:
        settings(pipeline_parallel_size=2).worker_settings(SOURCE)
    assert caught.value.cause is StartCause.PARALLELISM_UNSUPPORTED


def test_a_user_without_a_home_keeps_tokenizers_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(_: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", homeless)
    assert settings().log.tokenizer_cache.is_absolute()
