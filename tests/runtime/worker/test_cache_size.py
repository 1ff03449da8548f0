from dataclasses import replace
from pathlib import Path

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.config import Architecture, ModelConfig, RopeConfig
from octavo_runtime.model.dtype import ModelDtype
from octavo_runtime.model.memory_plan import activation_bytes, plan_memory
from octavo_runtime.worker.cache_size import CacheSize, size_cache, step_bytes
from octavo_runtime.worker.config import AUTO_MODEL_LEN, WorkerSettings

GIB = 1 << 30
CONFIG = ModelConfig(
    Architecture.LLAMA, 32000, 2048, 8192, 16, 32, 8, 64, 1e-5, 131072, RopeConfig(),
    True, False, False, False, False, (None,) * 16,
)  # fmt: skip
PLAN = plan_memory(CONFIG, ModelDtype.BFLOAT16, block_size=16)
SETTINGS = WorkerSettings(Path("model"))


def size(available: int, **changes: object) -> CacheSize:
    return size_cache(replace(SETTINGS, **changes), CONFIG, PLAN, available)


def test_the_default_on_a_cpu_is_four_gibibytes_however_much_is_free() -> None:
    assert size(100 * GIB).num_blocks == 4 * GIB // PLAN.block_bytes


def test_the_cache_is_never_larger_than_all_sequences_at_full_length() -> None:
    assert size(100 * GIB, max_num_seqs=2, max_model_len=100).num_blocks == 2 * PLAN.blocks_for(100)


def test_auto_takes_the_longest_context_that_fits() -> None:
    found = size(6 * GIB, max_model_len=AUTO_MODEL_LEN, max_num_seqs=1)
    assert 0 < found.max_model_len < CONFIG.max_positions
    assert found.max_model_len == found.num_blocks * 16


def test_a_context_that_does_not_fit_names_the_longest_that_does() -> None:
    with pytest.raises(StartError, match=r"131072 tokens needs 4\.00 GiB of cache.*--max-model-len \d+") as caught:
        size(6 * GIB, max_num_seqs=1)
    assert caught.value.cause is StartCause.KV_CACHE_TOO_SMALL
    longest = int(str(caught.value).split("--max-model-len ")[1].split(",")[0])
    assert size(6 * GIB, max_num_seqs=1, max_model_len=longest).max_model_len == longest


def test_a_model_larger_than_memory_is_refused_with_the_figures() -> None:
    with pytest.raises(StartError, match=r"weights need \d\.\d\d GiB.*only 1\.00 GiB are free") as caught:
        size(GIB)
    assert caught.value.cause is StartCause.OUT_OF_MEMORY


def test_a_context_beyond_the_model_is_refused() -> None:
    with pytest.raises(StartError, match="at most that") as caught:
        size(100 * GIB, max_model_len=131073)
    assert caught.value.cause is StartCause.CONTEXT_TOO_LARGE


def test_the_share_counts_weights_step_and_swap_space() -> None:
    step = step_bytes(replace(SETTINGS, max_num_seqs=1), CONFIG)
    for swap_bytes in (0, GIB):
        found = size(7 * GIB, gpu_memory_utilization=0.8, swap_bytes=swap_bytes, max_num_seqs=1, max_model_len=-1)
        taken = PLAN.weight_bytes + step + swap_bytes + found.num_blocks * PLAN.block_bytes
        assert 0 <= int(7 * GIB * 0.8) - taken < PLAN.block_bytes


def test_a_share_that_leaves_nothing_says_how_to_give_more() -> None:
    with pytest.raises(StartError, match=r"0\.00 GiB are there for it; give the cache more memory") as caught:
        size(5 * GIB, gpu_memory_utilization=0.1, max_model_len=AUTO_MODEL_LEN)
    assert "--max-model-len 0" not in str(caught.value)


def test_swap_space_that_does_not_fit_is_refused_with_its_size() -> None:
    with pytest.raises(StartError, match=r"swap space 50\.00 GiB, but only 10\.00 GiB are free"):
        size(10 * GIB, swap_bytes=50 * GIB)


def test_a_given_cache_size_is_taken_or_refused_with_what_is_free() -> None:
    given = size(10 * GIB, kv_cache_memory_bytes=GIB, max_model_len=1000, swap_bytes=GIB)
    assert given.num_blocks == given.num_host_blocks == GIB // PLAN.block_bytes
    with pytest.raises(StartError, match=r"--kv-cache-memory-bytes asks for 50\.00 GiB"):
        size(10 * GIB, kv_cache_memory_bytes=50 * GIB)


def test_a_given_number_of_blocks_overrides_all() -> None:
    assert size(10 * GIB, num_blocks=100, max_model_len=1600).num_blocks == 100
    assert activation_bytes(CONFIG, 2048, 384) < GIB
