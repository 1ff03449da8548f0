from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.model.devices import GIB, Device, DeviceKind, cpu_device
from octavo_operator.model.memory_plan import (
    CPU_OVERHEAD,
    DEFAULT_CPU_CACHE,
    MemoryPlan,
    PlanParameters,
    PlanSource,
    cpu_memory_wanted,
    plan,
)
from octavo_operator.model.problem import Refusal
from octavo_operator.model.resolved import ResolvedModel, WeightFacts
from octavo_operator.model.shape import ModelShape, count_parameters
from octavo_operator.reasons import Reason

LLAMA_8B = ModelShape(
    architecture="LlamaForCausalLM",
    vocab_size=128256,
    hidden_size=4096,
    intermediate_size=14336,
    num_layers=32,
    num_heads=32,
    num_kv_heads=8,
    head_dim=128,
    max_positions=131072,
    tie_word_embeddings=False,
    qkv_bias=False,
    o_bias=False,
    mlp_bias=False,
    qk_norm=False,
)
LLAMA_BYTES = 2 * count_parameters(LLAMA_8B)
H100 = Device(DeviceKind.CUDA, "NVIDIA-H100-80GB-HBM3", 80 * GIB, (9, 0))
L4 = Device(DeviceKind.CUDA, "NVIDIA-L4", 22 * GIB, (8, 9))
T4 = Device(DeviceKind.CUDA, "Tesla-T4", 15 * GIB, (7, 5))
AUTO = PlanParameters()


def model(shape: ModelShape | None = LLAMA_8B, quantization: str | None = None) -> ResolvedModel:
    weights = WeightFacts(format="safetensors", num_bytes=LLAMA_BYTES, quantization=quantization, shape=shape)
    return ResolvedModel(kind="hf", name="org/x", weights=weights)


def planned(resolved: ResolvedModel, parameters: PlanParameters, device: Device) -> MemoryPlan:
    answer = plan(resolved, parameters, device)
    assert isinstance(answer, MemoryPlan), answer
    return answer


def refused(resolved: ResolvedModel, parameters: PlanParameters, device: Device) -> Refusal:
    answer = plan(resolved, parameters, device)
    assert isinstance(answer, Refusal), answer
    return answer


def test_a_model_that_fits_is_planned_to_the_byte() -> None:
    answer = planned(model(), AUTO, H100)
    assert answer.weights == LLAMA_BYTES
    assert answer.kv_cache is not None
    assert answer.per_gpu_bytes == answer.weights + answer.kv_cache + answer.activations + answer.overhead
    assert answer.headroom == 80 * GIB - answer.per_gpu_bytes
    assert answer.headroom >= 7 * GIB  # what gpuMemoryUtilization leaves
    assert answer.max_model_len_that_fits == 131072
    assert answer.source is PlanSource.ESTIMATED


def test_the_longest_context_that_fits_is_told_before_a_gpu_is_asked_for() -> None:
    answer = planned(model(), AUTO, L4)
    assert answer.max_model_len_that_fits is not None
    assert 256 <= answer.max_model_len_that_fits < 131072
    # exactly that much is accepted, one block more is not
    assert planned(model(), replace(AUTO, max_model_len=answer.max_model_len_that_fits), L4)
    refusal = refused(model(), replace(AUTO, max_model_len=answer.max_model_len_that_fits + 1), L4)
    assert refusal.reason is Reason.KV_CACHE_TOO_SMALL
    assert f"enough for {answer.max_model_len_that_fits} tokens" in refusal.message
    assert refusal.advice.startswith(f"Lower engine.maxModelLen to {answer.max_model_len_that_fits} or raise ")


def test_weights_that_do_not_fit_are_refused_with_the_figures_and_ways_out() -> None:
    refusal = refused(model(), AUTO, T4)
    assert refusal.reason is Reason.WEIGHTS_TOO_LARGE
    for part in ("15.0 GiB per GPU", "Tesla-T4", "15.0 GiB of", "engine.gpuMemoryUtilization: 0.9 of"):
        assert part in refusal.message
    assert refusal.advice == "Raise engine.tensorParallelSize to 2."  # fp8 this GPU cannot


def test_fp8_is_offered_where_the_gpu_has_it() -> None:
    small = replace(L4, memory_bytes=17 * GIB)
    refusal = refused(model(), AUTO, small)
    assert "set engine.quantization to fp8" in refusal.advice
    assert planned(model(), replace(AUTO, quantization="fp8"), small)


def test_nothing_is_offered_that_does_not_help() -> None:
    tiny = replace(T4, memory_bytes=2 * GIB)
    assert "larger GPU" in refused(model(), AUTO, tiny).advice


def test_the_size_that_is_offered_does_fit() -> None:
    assert planned(model(), replace(AUTO, tensor_parallel_size=2), T4)


def test_heads_are_looked_at_before_memory() -> None:
    refusal = refused(model(), replace(AUTO, tensor_parallel_size=3), T4)
    assert refusal.reason is Reason.PARALLELISM_MISMATCH
    assert refusal.advice == "Set engine.tensorParallelSize to 1, 2, 4 or 8."


def test_a_context_beyond_the_models_own_is_refused() -> None:
    refusal = refused(model(), replace(AUTO, max_model_len=131073), H100)
    assert refusal.reason is Reason.CONTEXT_TOO_LARGE
    assert "131072" in refusal.message
    assert refusal.advice == "Set engine.maxModelLen to 131072 or less, or to auto."


def test_formats_are_looked_at_first() -> None:
    assert refused(model(), replace(AUTO, quantization="awq"), T4).reason is Reason.QUANTIZATION_UNSUPPORTED
    assert refused(model(), replace(AUTO, kv_cache_dtype="fp8"), T4).reason is Reason.QUANTIZATION_UNSUPPORTED
    assert refused(model(quantization="fp8"), AUTO, T4).reason is Reason.QUANTIZATION_UNSUPPORTED


def test_an_fp8_cache_holds_twice_the_context() -> None:
    plain = planned(model(), AUTO, L4).max_model_len_that_fits
    small = planned(model(), replace(AUTO, kv_cache_dtype="fp8"), L4).max_model_len_that_fits
    assert plain is not None
    assert small is not None
    assert 2 * plain <= small <= 2 * plain + 32


def test_an_unknown_gpu_gives_sizes_but_no_verdict() -> None:
    answer = planned(model(), AUTO, Device(DeviceKind.CUDA, "GPU"))
    assert answer.weights == LLAMA_BYTES
    assert (answer.kv_cache, answer.headroom, answer.max_model_len_that_fits) == (None, None, None)


def test_a_model_that_cannot_be_seen_is_not_planned_but_its_device_is_checked() -> None:
    unseen = ResolvedModel(kind="pvc", name="x")
    assert plan(unseen, AUTO, T4) is None
    assert plan(unseen, replace(AUTO, quantization="awq"), T4) is None
    assert refused(unseen, replace(AUTO, quantization="fp8"), T4).reason is Reason.QUANTIZATION_UNSUPPORTED
    assert refused(unseen, replace(AUTO, tensor_parallel_size=2), cpu_device(GIB)).reason is Reason.DEVICE_UNAVAILABLE
    assert plan(model(shape=None), AUTO, T4) is None


def test_on_a_cpu_the_pods_memory_counts_and_the_cache_takes_4_gib_of_it() -> None:
    short = replace(AUTO, max_model_len=8192)
    answer = planned(model(), short, cpu_device(64 * GIB))
    assert answer.kv_cache is not None
    assert DEFAULT_CPU_CACHE - answer.kv_cache < 2 * GIB // 1024  # whole blocks
    refusal = refused(model(), AUTO, cpu_device(10 * GIB))
    assert refusal.reason is Reason.WEIGHTS_TOO_LARGE
    assert refusal.advice.startswith("Raise resources.memory to ")


def test_the_memory_that_is_offered_on_a_cpu_does_fit() -> None:
    advice = refused(model(), AUTO, cpu_device(10 * GIB)).advice
    offered = int(advice.partition("resources.memory to ")[2].partition("Gi")[0])
    assert planned(model(), AUTO, cpu_device(offered * GIB))
    assert refused(model(), AUTO, cpu_device((offered - 1) * GIB))


@given(
    memory=st.integers(min_value=GIB, max_value=40 * GIB),
    max_model_len=st.one_of(st.none(), st.integers(min_value=256, max_value=140000)),
    quantization=st.sampled_from(["auto", "fp8"]),
)
def test_whatever_is_refused_on_a_cpu_no_gpu_is_spoken_of_as_a_way_out(
    memory: int, max_model_len: int | None, quantization: str
) -> None:
    answer = plan(model(), replace(AUTO, max_model_len=max_model_len, quantization=quantization), cpu_device(memory))
    if isinstance(answer, Refusal):
        told = f"{answer.message} {answer.advice}"
        assert not any(word in told for word in ("GPU", "gpu", "Parallel", "fp8.", "to fp8"))


def test_a_context_too_long_for_a_cpu_may_be_lowered_or_get_more_memory() -> None:
    refusal = refused(model(), replace(AUTO, max_model_len=131072), cpu_device(20 * GIB))
    lower, _, more = refusal.advice.partition(" or ")
    assert lower.startswith("Lower engine.maxModelLen to ")
    assert more.startswith("raise resources.memory to ")


@pytest.mark.parametrize("max_model_len", [None, 256, 4096, 131072])
def test_the_memory_wanted_of_a_cpu_pod_is_enough(max_model_len: int | None) -> None:
    parameters = replace(AUTO, max_model_len=max_model_len)
    wanted = cpu_memory_wanted(model(), parameters)
    assert wanted is not None
    answer = planned(model(), parameters, cpu_device(wanted))
    assert answer.kv_cache is not None
    assert answer.kv_cache > GIB
    assert cpu_memory_wanted(ResolvedModel(kind="pvc", name="x"), AUTO) is None


def test_a_small_model_wants_no_more_than_its_cache_can_use() -> None:
    wanted = cpu_memory_wanted(model(), replace(AUTO, max_model_len=256, max_num_seqs=1))
    assert wanted is not None
    assert wanted < (LLAMA_BYTES + 2 * GIB) / 0.9 + CPU_OVERHEAD


@given(
    memory=st.integers(min_value=GIB, max_value=200 * GIB),
    tensor=st.sampled_from([1, 2, 4, 8]),
    utilization=st.floats(min_value=0.1, max_value=0.98),
    max_model_len=st.one_of(st.none(), st.integers(min_value=256, max_value=131072)),
    num_seqs=st.integers(min_value=1, max_value=4096),
)
def test_a_plan_never_takes_more_than_there_is(
    memory: int, tensor: int, utilization: float, max_model_len: int | None, num_seqs: int
) -> None:
    parameters = PlanParameters(
        tensor_parallel_size=tensor,
        gpu_memory_utilization=utilization,
        max_model_len=max_model_len,
        max_num_seqs=num_seqs,
    )
    answer = plan(model(), parameters, replace(H100, memory_bytes=memory))
    if isinstance(answer, Refusal):
        assert answer.reason in (Reason.WEIGHTS_TOO_LARGE, Reason.KV_CACHE_TOO_SMALL)
        return
    assert answer is not None
    assert answer.per_gpu_bytes is not None
    assert answer.headroom is not None
    assert answer.max_model_len_that_fits is not None
    assert answer.headroom >= 0
    assert answer.per_gpu_bytes - answer.overhead <= utilization * (memory - answer.overhead)
    assert (max_model_len or 256) <= answer.max_model_len_that_fits <= 131072
