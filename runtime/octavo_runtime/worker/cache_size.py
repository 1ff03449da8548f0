"""How many blocks the cache gets and how long a sequence may be, decided before anything is loaded.

Pure arithmetic on the settings, the memory plan and the free memory; every refusal says the figures and what to change.
"""

from dataclasses import dataclass

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.config import ModelConfig
from octavo_runtime.model.memory_plan import MemoryPlan, activation_bytes
from octavo_runtime.worker.config import AUTO_MODEL_LEN, WorkerSettings

DEFAULT_CPU_CACHE_BYTES = 4 << 30
"""On the CPU the memory is everybody's: without a setting the cache takes this much, more only for one full context."""

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class CacheSize:
    """The answer, in blocks and tokens."""

    num_blocks: int
    num_host_blocks: int
    max_model_len: int


def step_bytes(settings: WorkerSettings, config: ModelConfig) -> int:
    """What the largest step needs besides weights and cache."""
    num_logits = settings.max_num_seqs + settings.max_logits_rows
    return activation_bytes(config, settings.max_num_batched_tokens, num_logits)


def size_cache(settings: WorkerSettings, config: ModelConfig, plan: MemoryPlan, available_bytes: int) -> CacheSize:
    """Raises StartError when the model, its cache or the wanted context do not fit."""
    step = step_bytes(settings, config)
    needed = plan.weight_bytes + step + settings.swap_bytes
    if needed > available_bytes:
        swap = f", swap space {_gib(settings.swap_bytes)}" if settings.swap_bytes else ""
        raise StartError(
            StartCause.OUT_OF_MEMORY,
            f"The weights need {_gib(plan.weight_bytes)}, a step {_gib(step)}{swap}, "
            f"but only {_gib(available_bytes)} are free; use a smaller model or a machine with more memory.",
        )
    wanted = _wanted_len(settings, plan)
    num_blocks = _num_blocks(settings, plan, available_bytes, needed, wanted)
    longest = plan.longest_context(num_blocks * plan.block_bytes)
    if longest < 1 or (settings.max_model_len != AUTO_MODEL_LEN and longest < wanted):
        raise StartError(
            StartCause.KV_CACHE_TOO_SMALL,
            f"A context of {wanted} tokens needs {_gib(plan.cache_bytes(wanted))} of cache, "
            f"but {_gib(num_blocks * plan.block_bytes)} are there for it; {_way_out(longest)}.",
        )
    return CacheSize(num_blocks, settings.swap_bytes // plan.block_bytes, min(wanted, longest))


def _way_out(longest: int) -> str:
    more = "give the cache more memory (--gpu-memory-utilization, --kv-cache-memory-bytes)"
    return f"the largest that fits is --max-model-len {longest}, or {more}" if longest else more


def _wanted_len(settings: WorkerSettings, plan: MemoryPlan) -> int:
    wanted = settings.max_model_len
    if wanted is None or wanted == AUTO_MODEL_LEN:
        return plan.max_positions
    if wanted > plan.max_positions:
        raise StartError(
            StartCause.CONTEXT_TOO_LARGE,
            f"--max-model-len {wanted} is more than the {plan.max_positions} tokens that the model was made for; "
            "give at most that.",
        )
    return wanted


def _num_blocks(settings: WorkerSettings, plan: MemoryPlan, available: int, needed: int, wanted: int) -> int:
    """`needed` bytes of the `available` ones go to everything but the cache."""
    if settings.num_blocks is not None:
        return settings.num_blocks
    if settings.kv_cache_memory_bytes is not None:
        room = available - needed
        if settings.kv_cache_memory_bytes > room:
            raise StartError(
                StartCause.OUT_OF_MEMORY,
                f"--kv-cache-memory-bytes asks for {_gib(settings.kv_cache_memory_bytes)}, but {_gib(room)} are free "
                "beside the weights; give less.",
            )
        return settings.kv_cache_memory_bytes // plan.block_bytes
    share = max(0, int(available * settings.gpu_memory_utilization) - needed)
    everything = settings.max_num_seqs * plan.blocks_for(wanted) * plan.block_bytes
    limit = max(DEFAULT_CPU_CACHE_BYTES, plan.cache_bytes(wanted)) if settings.device == "cpu" else share
    return min(share, everything, limit) // plan.block_bytes


def _gib(num_bytes: int) -> str:
    return f"{num_bytes / GIB:.2f} GiB"
