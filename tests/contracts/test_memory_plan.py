"""The operator's view of a model is the runtime's: architectures, files, digest and memory, byte for byte."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.model import architectures, files
from octavo_operator.model.devices import GIB, cpu_device
from octavo_operator.model.gguf_header import parse_gguf
from octavo_operator.model.memory_plan import CPU_OVERHEAD, MemoryPlan, PlanParameters, plan
from octavo_operator.model.memory_sizes import LOGITS_ROWS
from octavo_operator.model.problem import Refusal
from octavo_operator.model.resolved import ResolvedModel, WeightFacts
from octavo_operator.model.shape import ModelShape, count_parameters, shape_of_config, shape_of_gguf
from octavo_runtime.errors import StartError
from octavo_runtime.fetch.manifest import DEFAULT_PATTERNS, FileChoice, FileSum, manifest_digest
from octavo_runtime.gguf_header import read_gguf_header
from octavo_runtime.hub import embedded_model_path
from octavo_runtime.model import memory_plan as runtime_plan
from octavo_runtime.model.config import Architecture, ModelConfig, parse_config
from octavo_runtime.model.dtype import ModelDtype
from octavo_runtime.model.gguf_config import GGUF_ARCHITECTURES, gguf_config
from octavo_runtime.model.registry import MODELS
from octavo_runtime.worker.cache_size import CacheSize, size_cache
from octavo_runtime.worker.config import AUTO_MODEL_LEN, WorkerSettings

SMALL: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 49152,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}
LARGE: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "vocab_size": 151936,
    "hidden_size": 4096,
    "intermediate_size": 12288,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "max_position_embeddings": 40960,
}
CONFIGS = {
    "small": SMALL,
    "large": LARGE,
    "qwen2": SMALL | {"architectures": ["Qwen2ForCausalLM"]},
    "mistral": SMALL | {"architectures": ["MistralForCausalLM"], "num_key_value_heads": None, "sliding_window": 4096},
    "biased": SMALL | {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False},
    "defaults": {**{name: value for name, value in LARGE.items() if name != "head_dim"}, "attention_bias": True},
}


def both(config: dict[str, Any]) -> tuple[ModelShape, ModelConfig]:
    return shape_of_config(config, "config.json"), parse_config(config, "config.json")


def test_both_serve_the_same_architectures() -> None:
    assert set(architectures.SERVED) == {architecture.value for architecture in MODELS}
    assert {architecture.value for architecture in Architecture} == set(architectures.SERVED)
    assert {name: served.value for name, served in GGUF_ARCHITECTURES.items()} == architectures.SERVED_IN_GGUF


def test_both_fetch_the_same_files_by_default() -> None:
    assert files.WANTED_FILES == DEFAULT_PATTERNS


PATHS = st.lists(
    st.sampled_from(["config.json", "a/b.json", ".hidden.json", "a/.b.json", "x.safetensors", "README.md", "y.gguf"]),
    unique=True,
)
PATTERNS = st.lists(st.sampled_from(["*.json", "a/", "*.gguf", "x*", "*", ".*"]), max_size=3).map(tuple)


@given(paths=PATHS, allow=PATTERNS, ignore=PATTERNS)
def test_both_choose_the_same_files(paths: list[str], allow: tuple[str, ...], ignore: tuple[str, ...]) -> None:
    choice = FileChoice(allow, ignore)
    assert set(files.wanted(paths, allow, ignore)) == {path for path in paths if choice.wants(path)}


@given(st.dictionaries(st.text(min_size=1, max_size=20), st.binary(min_size=32, max_size=32).map(bytes.hex)))
def test_both_compute_the_same_digest(sums: dict[str, str]) -> None:
    theirs = manifest_digest(FileSum(path, 1, digest) for path, digest in sums.items())
    assert files.manifest_digest(sums.items()) == theirs


@pytest.mark.parametrize("name", CONFIGS)
def test_both_count_the_same_parameters(name: str) -> None:
    shape, config = both(CONFIGS[name])
    assert count_parameters(shape) == runtime_plan.count_parameters(config)
    assert shape.max_positions == config.max_positions


def test_both_read_the_same_sizes_from_a_real_gguf_file() -> None:
    path: Path = embedded_model_path()
    header = read_gguf_header(path)
    summary = parse_gguf("x.gguf", path.read_bytes()[: 8 << 20])
    shape, config = shape_of_gguf(summary.metadata, summary.shapes, "x.gguf"), gguf_config(header)
    assert count_parameters(shape) == runtime_plan.count_parameters(config)
    assert summary.total_numbers == count_parameters(shape)
    assert (shape.num_kv_heads, shape.head_dim) == (config.num_kv_heads, config.head_dim)
    assert (shape.max_positions, shape.architecture) == (config.max_positions, config.architecture.value)


def test_both_reserve_for_the_same_step() -> None:
    settings = WorkerSettings(model_path=Path("x"))
    assert settings.max_logits_rows == LOGITS_ROWS
    assert settings.max_num_batched_tokens == PlanParameters().max_num_batched_tokens


def ours(shape: ModelShape, parameters: PlanParameters, available: int) -> MemoryPlan | Refusal:
    weights = WeightFacts(format="safetensors", num_bytes=0, shape=shape)
    model = ResolvedModel(kind="hf", name="org/x", weights=weights)
    answer = plan(model, parameters, cpu_device(available + CPU_OVERHEAD))
    assert answer is not None
    return answer


def theirs(config: ModelConfig, parameters: PlanParameters, available: int) -> tuple[CacheSize, int] | None:
    """And the bytes of a block."""
    settings = WorkerSettings(
        model_path=Path("x"),
        dtype=ModelDtype(parameters.dtype),
        block_size=parameters.block_size,
        max_model_len=parameters.max_model_len or AUTO_MODEL_LEN,
        max_num_seqs=parameters.max_num_seqs,
        gpu_memory_utilization=parameters.gpu_memory_utilization,
    )
    sizes = runtime_plan.plan_memory(config, settings.dtype.stored("cpu"), settings.block_size)
    try:
        return size_cache(settings, config, sizes, available), sizes.block_bytes
    except StartError:
        return None


@given(
    name=st.sampled_from(sorted(CONFIGS)),
    available=st.integers(min_value=0, max_value=64 * GIB),
    max_model_len=st.one_of(st.none(), st.integers(min_value=256, max_value=50_000)),
    dtype=st.sampled_from(["auto", "bfloat16", "float16", "float32"]),
    block_size=st.sampled_from([8, 16, 32, 64]),
    num_seqs=st.integers(min_value=1, max_value=2048),
    utilization=st.floats(min_value=0.1, max_value=0.98),
)
def test_both_give_the_same_cache_or_both_refuse(
    name: str,
    available: int,
    max_model_len: int | None,
    dtype: str,
    block_size: int,
    num_seqs: int,
    utilization: float,
) -> None:
    shape, config = both(CONFIGS[name])
    parameters = PlanParameters(
        max_model_len=max_model_len,
        dtype=dtype,
        block_size=block_size,
        max_num_seqs=num_seqs,
        gpu_memory_utilization=utilization,
    )
    planned, sized = ours(shape, parameters, available), theirs(config, parameters, available)
    if sized is None:
        assert isinstance(planned, Refusal)
        return
    size, block_bytes = sized
    if isinstance(planned, Refusal):  # the runtime would start with a context too short to be of use
        assert max_model_len is None
        assert size.max_model_len < 256
        return
    assert planned.kv_cache == size.num_blocks * block_bytes
    assert planned.max_model_len_that_fits is not None
    assert planned.max_model_len_that_fits >= size.max_model_len
