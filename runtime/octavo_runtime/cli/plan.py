"""`octavo plan MODEL`: weights, cache and longest context in bytes and tokens, from headers only; nothing is loaded.

The figures and refusals are those of `octavo serve`: the same arithmetic (`worker/cache_size.py`) on the same settings.
"""

import sys

from octavo_runtime.byte_size import size
from octavo_runtime.cli.flags import Parser, add_settings, settings_of
from octavo_runtime.cli.verb import Arguments
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.hub import resolve_model
from octavo_runtime.model.config import ModelConfig
from octavo_runtime.model.memory_plan import MemoryPlan, count_parameters, plan_memory
from octavo_runtime.settings_values import byte_size
from octavo_runtime.worker.cache_size import size_cache, step_bytes
from octavo_runtime.worker.config import WorkerSettings
from octavo_runtime.worker.memory import available_memory

_GROUPS = ("model", "device", "cache", "scheduler", "log")
_REFUSAL = "fits"


def add_arguments(parser: Parser) -> None:
    """The engine's settings, and the memory to plan for."""
    add_settings(parser, _GROUPS)
    parser.add_argument(
        "--memory", metavar="SIZE", help="plan for this much memory, such as 16GiB, instead of what is free"
    )


def run(arguments: Arguments) -> int:
    """Print the plan; the exit status: 1 when the model does not fit."""
    settings = settings_of(arguments.parsed)
    arguments.begin_logging(settings, quiet=True)
    source = resolve_model(settings.model.model, settings.fetch_options())
    from octavo_runtime.model.config_reader import read_model_config  # brings numpy, which no other verb needs here

    config = read_model_config(source.path)
    memory = _memory(arguments.parsed.memory)
    rows = _rows(config, settings.worker_settings(source), memory)
    for name, value in rows:
        sys.stdout.write(f"{name:<28}{value}\n")
    return 1 if _REFUSAL in dict(rows) else 0


def _rows(config: ModelConfig, settings: WorkerSettings, memory: int) -> list[tuple[str, str]]:
    """What is printed, in order. `memory` in bytes, before the share of --gpu-memory-utilization is taken."""
    dtype = settings.dtype.stored(settings.device)
    plan = plan_memory(config, dtype, settings.block_size)
    cache_is_given = settings.num_blocks is not None or settings.kv_cache_memory_bytes is not None
    usable = memory if cache_is_given else int(memory * settings.gpu_memory_utilization)
    rows = [
        ("model", f"{config.architecture.value}, {count_parameters(config) / 1e6:,.1f} M parameters"),
        ("weights", f"{size(plan.weight_bytes)} as {dtype.value}"),
        ("activations of a step", f"at most {size(step_bytes(settings, config))}"),
        ("swap space", size(settings.swap_bytes)),
        ("cache per token", size(plan.block_bytes // plan.block_size)),
        ("cache per block", f"{size(plan.block_bytes)} ({plan.block_size} tokens)"),
        (f"cache for {plan.max_positions:,} tokens", size(plan.cache_bytes(plan.max_positions))),
        ("memory to use", f"{size(usable)} of {size(memory)}"),
    ]
    return rows + _what_fits(config, settings, plan, memory)


def _what_fits(config: ModelConfig, settings: WorkerSettings, plan: MemoryPlan, memory: int) -> list[tuple[str, str]]:
    try:
        cache = size_cache(settings, config, plan, memory)
    except StartError as error:
        return [(_REFUSAL, f"no: {error}")]
    at_once = cache.num_blocks // plan.blocks_for(cache.max_model_len)
    return [
        ("cache", f"{size(cache.num_blocks * plan.block_bytes)}, {cache.num_blocks:,} blocks"),
        ("longest context", f"{cache.max_model_len:,} tokens"),
        ("sequences at once", f"{min(at_once, settings.max_num_seqs):,} of {cache.max_model_len:,} tokens"),
    ]


def _memory(written: str | None) -> int:
    if written is None:
        return available_memory()
    try:
        return int(byte_size(written))
    except ValueError as error:
        raise StartError(StartCause.INVALID_SETTINGS, f"--memory {error}.") from error
