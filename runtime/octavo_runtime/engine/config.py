"""What the engine is told at start: frozen, made by `settings.py` from flags and completed with measured sizes by the worker."""

from dataclasses import dataclass
from enum import StrEnum


class SchedulingPolicy(StrEnum):
    """Order of the queues. PRIORITY: lower value first, arrival breaks ties."""

    FCFS = "fcfs"
    PRIORITY = "priority"


class PreemptionMode(StrEnum):
    """What happens to a preempted group. AUTO: one sequence is recomputed, several are swapped while swap space lasts."""

    AUTO = "auto"
    RECOMPUTE = "recompute"
    SWAP = "swap"


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """Limits of one step and the rules of the queues."""

    max_num_batched_tokens: int = 2048
    max_num_seqs: int = 128
    max_model_len: int = 2048
    vocab_size: int = 2**31  # the model's; the default is what int32 token ids allow
    chunked_prefill: bool = True  # False: prefill-first, whole prompts, decodes wait
    delay_factor: float = 0.0  # prefill-first: wait delay_factor * last prompt latency before the next prompt
    long_prefill_token_threshold: int = 0  # 0 = off; else a prompt takes at most this many tokens of a step
    policy: SchedulingPolicy = SchedulingPolicy.FCFS
    preemption_mode: PreemptionMode = PreemptionMode.AUTO
    watermark: float = 0.01  # share of blocks kept free when a prompt is admitted
    max_logits_rows: int = 256  # prompt-log-probability positions per step, bounds logits memory
    seed: int | None = None  # where requests without a seed get theirs from; None: each a random one


@dataclass(frozen=True, slots=True)
class CacheConfig:
    """The paged cache as the block manager sees it."""

    block_size: int = 16
    num_blocks: int = 0
    num_host_blocks: int = 0  # swap space
    prefix_caching: bool = True
