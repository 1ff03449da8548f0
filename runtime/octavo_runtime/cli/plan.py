"""`octavo plan MODEL`: weights, cache and longest context in bytes and tokens, from headers only; nothing is loaded."""

import sys

from octavo_runtime.cli.flags import Parser, add_settings, settings_of
from octavo_runtime.cli.verb import Arguments
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.hub import resolve_model
from octavo_runtime.model.config import ModelConfig
from octavo_runtime.model.memory_plan import MemoryPlan, activation_bytes, count_parameters, plan_memory
from octavo_runtime.settings import Settings
from octavo_runtime.settings_values import byte_size
from octavo_runtime.worker.memory import available_memory

_GROUPS = ("model", "device", "cache", "scheduler", "log")
_AUTO_LENGTH = -1


def add_arguments(parser: Parser) -> None:
    """The engine's settings, and the memory to plan for."""
    add_settings(parser, _GROUPS)
    parser.add_argument(
        "--memory", metavar="SIZE", help="plan for this much memory, such as 16GiB, instead of what is free"
    )


def run(arguments: Arguments) -> int:
    """Print the plan; the exit status, 0 even when the model does not fit: that is an answer too."""
    settings = settings_of(arguments.parsed)
    arguments.begin_logging(settings, quiet=True)
    source = resolve_model(settings.model.model, settings.model.revision, settings.model.download_dir)
    from octavo_runtime.model.config_reader import read_model_config  # brings numpy, which no other verb needs here

    config = read_model_config(source.path)
    memory = _memory(arguments.parsed.memory)
    for name, value in _rows(config, settings, memory):
        sys.stdout.write(f"{name:<28}{value}\n")
    return 0


def _rows(config: ModelConfig, settings: Settings, memory: int) -> list[tuple[str, str]]:
    """What is printed, in order. `memory` in bytes, before the share of --gpu-memory-utilization is taken."""
    dtype = settings.model.dtype.stored("cpu")
    plan = plan_memory(config, dtype, settings.cache.block_size)
    scheduler = settings.scheduler
    activations = activation_bytes(config, scheduler.max_num_batched_tokens, scheduler.max_num_seqs)
    share = int(memory * settings.cache.gpu_memory_utilization)
    cache = settings.cache.kv_cache_memory_bytes or share - plan.weight_bytes - activations
    asked = settings.model.max_model_len
    context = config.max_positions if asked is None or asked == _AUTO_LENGTH else min(asked, config.max_positions)
    rows = [
        ("model", f"{config.architecture.value}, {count_parameters(config) / 1e6:,.1f} M parameters"),
        ("weights", f"{size(plan.weight_bytes)} as {dtype.value}"),
        ("activations of a step", f"at most {size(activations)}"),
        ("cache per token", size(plan.block_bytes // plan.block_size)),
        ("cache per block", f"{size(plan.block_bytes)} ({plan.block_size} tokens)"),
        (f"cache for {context:,} tokens", size(plan.cache_bytes(context))),
        ("memory to use", f"{size(share)} of {size(memory)}"),
    ]
    return rows + _what_fits(plan, cache, context, plan.weight_bytes + activations)


def _what_fits(plan: MemoryPlan, cache: int, context: int, before_cache: int) -> list[tuple[str, str]]:
    if cache < plan.block_bytes:
        needed = before_cache + plan.cache_bytes(context)
        return [("fits", f"no: {size(needed)} are needed for one sequence of {context:,} tokens")]
    longest = plan.longest_context(cache)
    at_once = cache // plan.block_bytes // max(1, plan.blocks_for(min(context, longest)))
    return [
        ("left for the cache", f"{size(cache)}, {cache // plan.block_bytes:,} blocks"),
        ("longest context", f"{longest:,} tokens" + ("" if longest >= context else " (use it as --max-model-len)")),
        ("sequences at once", f"{at_once:,} of {min(context, longest):,} tokens"),
    ]


def _memory(written: str | None) -> int:
    if written is None:
        return available_memory()
    try:
        return int(byte_size(written))
    except ValueError as error:
        raise StartError(StartCause.INVALID_SETTINGS, f"--memory {error}.") from error


def size(number: int) -> str:
    """Bytes for people: 270.0 MiB."""
    amount = float(number)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:,.0f} {unit}" if unit == "B" else f"{amount:,.1f} {unit}"
        amount /= 1024
    return f"{amount:,.2f} GiB"
