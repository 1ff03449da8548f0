"""`MemoryPlan`: weights, cache and activations of one device, and the longest context that fits; or a Refusal.

Decided from headers before a pod asks for a GPU. The arithmetic and the refusals are those of `octavo plan` and of the
runtime's start (`worker/cache_size.py` there). Pure.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from octavo_operator.model.devices import GIB, Device, DeviceKind, missing_feature
from octavo_operator.model.memory_sizes import Split, activation_bytes, block_bytes, item_bytes, weight_bytes
from octavo_operator.model.parallelism import MOST_GPUS, gpus_refusal, parallelism_refusal, tensor_sizes
from octavo_operator.model.problem import Refusal
from octavo_operator.model.quantization import AUTO, FP8, READABLE, number_formats_refusal, weight_format
from octavo_operator.model.resolved import ResolvedModel, WeightFacts
from octavo_operator.model.shape import ModelShape
from octavo_operator.quantity import format_bytes
from octavo_operator.reasons import Reason

CPU_OVERHEAD = 1 * GIB  # bytes of a pod that its two processes take before the model is loaded
GPU_OVERHEAD = 1 * GIB  # bytes of a GPU that its driver's context, kernels and graphs take
TENSOR_OVERHEAD = GIB // 2  # bytes of buffers for the exchange between GPUs
DEFAULT_CPU_CACHE = 4 * GIB  # what the cache takes on a CPU, more only for one full context
CPU_CACHE_WANTED = 2 * GIB  # for a CPU pod that does not say its memory
SHORTEST_CONTEXT = 256  # tokens: less than the least engine.maxModelLen is of no use


class PlanSource(StrEnum):
    """Where the figures come from."""

    ESTIMATED = "Estimated"
    MEASURED = "Measured"


@dataclass(frozen=True, slots=True)
class PlanParameters:
    """The fields of `spec.engine` that decide about memory, defaults filled in. `max_model_len` None: what fits."""

    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    gpu_memory_utilization: float = 0.9
    quantization: str = AUTO
    kv_cache_dtype: str = "auto"
    dtype: str = "auto"
    max_model_len: int | None = None
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    block_size: int = 16

    @property
    def split(self) -> Split:
        """Over how many devices."""
        return Split(self.tensor_parallel_size, self.pipeline_parallel_size)

    @property
    def num_devices(self) -> int:
        """GPUs of a replica."""
        return self.tensor_parallel_size * self.pipeline_parallel_size


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes of one GPU (or of the pod's memory on a CPU). None where the device's memory is not known."""

    weights: int
    activations: int
    overhead: int
    per_gpu_bytes: int | None = None  # all that is taken, cache included
    kv_cache: int | None = None
    headroom: int | None = None  # what stays free
    max_model_len_that_fits: int | None = None  # tokens
    source: PlanSource = PlanSource.ESTIMATED


def plan(resolved: ResolvedModel, parameters: PlanParameters, device: Device) -> MemoryPlan | Refusal | None:
    """None when nothing is known of the model before a pod runs (pvc://, file://) and the device is no hindrance."""
    refusal = gpus_refusal(parameters.num_devices, device) or number_formats_refusal(
        parameters.dtype, parameters.kv_cache_dtype, device
    )
    if refusal is not None:
        return refusal
    # a checkpoint that cannot be seen is taken to be what the spec says
    stored = resolved.quantization if resolved.weights else _assumed(parameters.quantization)
    chosen = weight_format(parameters.quantization, stored, device)
    if isinstance(chosen, Refusal):
        return chosen
    facts, shape = resolved.weights, resolved.shape
    if facts is None or shape is None:
        return None
    refusal = parallelism_refusal(
        shape, parameters.tensor_parallel_size, parameters.pipeline_parallel_size
    ) or _context_refusal(shape, parameters)
    if refusal is not None:
        return refusal
    return _Sizing(facts, shape, chosen, parameters, device).plan()


def cpu_memory_wanted(resolved: ResolvedModel, parameters: PlanParameters) -> int | None:
    """Memory of a CPU pod in which the plan fits with a cache of 2 GiB, where so much is of use; None when not known."""
    facts, shape = resolved.weights, resolved.shape
    if facts is None or shape is None:
        return None
    sizing = _Sizing(facts, shape, None, parameters, Device(DeviceKind.CPU, "CPU"))
    asked_for = sizing.cache_bytes(parameters.max_model_len or 0)
    return sizing.memory_for(min(sizing.useful_cache, max(CPU_CACHE_WANTED, asked_for)))


def _assumed(quantization: str) -> str | None:
    return quantization if quantization in READABLE else None


def _context_refusal(shape: ModelShape, parameters: PlanParameters) -> Refusal | None:
    wanted = parameters.max_model_len
    if wanted is None or wanted <= shape.max_positions:
        return None
    return Refusal(
        Reason.CONTEXT_TOO_LARGE,
        f"engine.maxModelLen is {wanted}, but the model was made for {shape.max_positions} tokens.",
        f"Set engine.maxModelLen to {shape.max_positions} or less, or to auto.",
    )


@dataclass(frozen=True, slots=True)
class _Sizing:
    """One model on one device, checked for everything but memory."""

    facts: WeightFacts
    shape: ModelShape
    weight_format: str | None
    parameters: PlanParameters
    device: Device

    @property
    def wanted(self) -> int:
        """Tokens of the longest sequence that is wished for."""
        return self.parameters.max_model_len or self.shape.max_positions

    @property
    def weights(self) -> int:
        item = item_bytes(self.parameters.dtype, self.device.kind)
        return weight_bytes(self.facts, self.shape, self.weight_format, item, self.parameters.split)

    @property
    def activations(self) -> int:
        parameters = self.parameters
        return activation_bytes(
            self.shape, parameters.max_num_batched_tokens, parameters.max_num_seqs, parameters.split
        )

    @property
    def overhead(self) -> int:
        if self.device.kind is DeviceKind.CPU:
            return CPU_OVERHEAD
        return GPU_OVERHEAD + (TENSOR_OVERHEAD if self.parameters.tensor_parallel_size > 1 else 0)

    @property
    def block(self) -> int:
        """Bytes of a block."""
        item = 1 if self.parameters.kv_cache_dtype == FP8 else item_bytes(self.parameters.dtype, self.device.kind)
        return block_bytes(self.shape, self.parameters.block_size, item, self.parameters.split)

    @property
    def useful_cache(self) -> int:
        """Bytes with which every sequence that may run at once has the whole context."""
        return self.parameters.max_num_seqs * self.cache_bytes(self.wanted)

    def cache_bytes(self, num_tokens: int) -> int:
        return -(-num_tokens // self.parameters.block_size) * self.block

    def usable(self, memory: int) -> int:
        """What weights, activations and cache may take of a device's memory."""
        return int(max(0, memory - self.overhead) * self.parameters.gpu_memory_utilization)

    def memory_for(self, cache: int) -> int:
        """Memory of a device that leaves so much for the cache."""
        needed = self.weights + self.activations + cache
        return -(-needed * 10000 // int(self.parameters.gpu_memory_utilization * 10000)) + self.overhead

    def cache(self, memory: int) -> int:
        """Whole blocks, as the runtime sizes its cache."""
        share = max(0, self.usable(memory) - self.weights - self.activations)
        limit = share
        if self.device.kind is DeviceKind.CPU:
            limit = max(DEFAULT_CPU_CACHE, self.cache_bytes(self.wanted))
        return min(share, self.useful_cache, limit) // self.block * self.block

    def longest(self, memory: int) -> int:
        """Tokens of the longest sequence that the cache holds, at most what the model was made for."""
        share = max(0, self.usable(memory) - self.weights - self.activations)
        return min(self.shape.max_positions, share // self.block * self.parameters.block_size)

    def fits(self, memory: int) -> bool:
        return self.longest(memory) >= self.least

    @property
    def least(self) -> int:
        """Tokens that have to fit: those asked for, or with `auto` enough to be of use."""
        return self.parameters.max_model_len or min(self.shape.max_positions, SHORTEST_CONTEXT)

    def plan(self) -> MemoryPlan | Refusal:
        estimate = MemoryPlan(self.weights, self.activations, self.overhead)
        memory = self.device.memory_bytes
        if memory is None:
            return estimate
        if self.weights + self.activations > self.usable(memory):
            return self._weights_too_large(memory)
        if not self.fits(memory):
            return self._cache_too_small(memory)
        cache = self.cache(memory)
        taken = self.weights + self.activations + self.overhead + cache
        return replace(
            estimate,
            per_gpu_bytes=taken,
            kv_cache=cache,
            headroom=memory - taken,
            max_model_len_that_fits=self.longest(memory),
        )

    def _weights_too_large(self, memory: int) -> Refusal:
        share = f"{self.parameters.gpu_memory_utilization:g} of what the server itself leaves"
        each = ""
        if self.device.kind is DeviceKind.CUDA:
            each = " per GPU"
            share = f"engine.gpuMemoryUtilization: {self.parameters.gpu_memory_utilization:g} of what the driver leaves"
        need = f"The weights need {format_bytes(self.weights)}{each} and a step {format_bytes(self.activations)}"
        return Refusal(
            Reason.WEIGHTS_TOO_LARGE,
            f"{need}, but of the {format_bytes(memory)} of {self._device_name} only {format_bytes(self.usable(memory))} may "
            f"be used ({share}).",
            self._advice(memory),
        )

    def _cache_too_small(self, memory: int) -> Refusal:
        room = max(0, self.usable(memory) - self.weights - self.activations)
        return Refusal(
            Reason.KV_CACHE_TOO_SMALL,
            f"A context of {self.least} tokens needs {format_bytes(self.cache_bytes(self.least))} of KV cache, but beside the "
            f"weights {format_bytes(room)} of {self._device_name} are left for it, enough for {self.longest(memory)} tokens.",
            self._advice(memory),
        )

    @property
    def _device_name(self) -> str:
        return "the pod's memory" if self.device.kind is DeviceKind.CPU else self.device.name

    def _advice(self, memory: int) -> str:
        """All that makes it fit, each by itself: a shorter context, more memory, more GPUs, smaller weights."""
        longest = self.longest(memory)
        ways = [f"lower engine.maxModelLen to {longest}"] if longest >= SHORTEST_CONTEXT else []
        ways += self._on_cpu() if self.device.kind is DeviceKind.CPU else self._on_gpus(memory)
        advice = " or ".join(ways) if ways else "choose a smaller model or a larger GPU in resources.gpuProducts"
        return f"{advice[0].upper()}{advice[1:]}."

    def _on_cpu(self) -> list[str]:
        return [f"raise resources.memory to {-(-self.memory_for(self.cache_bytes(self.least)) // GIB)}Gi"]

    def _on_gpus(self, memory: int) -> list[str]:
        ways = []
        size = self._tensor_size_that_fits(memory)
        if size is not None:
            ways.append(f"raise engine.tensorParallelSize to {size}")
        if self._fp8_fits(memory):
            ways.append("set engine.quantization to fp8")
        return ways

    def _tensor_size_that_fits(self, memory: int) -> int | None:
        for size in tensor_sizes(self.shape):
            if (
                size > self.parameters.tensor_parallel_size
                and size * self.parameters.pipeline_parallel_size <= MOST_GPUS
            ):
                larger = replace(self, parameters=replace(self.parameters, tensor_parallel_size=size))
                if larger.fits(memory):
                    return size
        return None

    def _fp8_fits(self, memory: int) -> bool:
        if self.weight_format is not None or missing_feature(self.device, FP8) is not None:
            return False
        return replace(self, weight_format=FP8).fits(memory)
