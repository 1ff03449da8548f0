"""What crosses the border of the engine process: frozen msgspec structs, encoded as msgpack.

Front end -> engine: `AddRequest`, `AbortRequest`, `ResetPrefixCache`, `Shutdown`.
Engine -> front end: `LoadProgress`, `EngineReady`, `StepOutputs`, `EngineFailed`.
Every added request ends with exactly one `RequestFinished` in some `StepOutputs`, whatever happens to it.
Times are seconds measured on the engine's own monotonic clock, so only intervals cross the border.
"""

from enum import StrEnum

import msgspec

from octavo_runtime.engine.sampling_params import SamplingParams


class FinishReason(StrEnum):
    """Why a sequence ended."""

    STOP = "stop"
    LENGTH = "length"
    ABORT = "abort"
    ERROR = "error"


class Struct(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the messages."""


class AddRequest(Struct, frozen=True, tag=True):
    """A tokenized request. `params.max_tokens` None means what `max_model_len` and the cache allow."""

    request_id: str
    prompt_token_ids: list[int]
    params: SamplingParams
    eos_token_ids: tuple[int, ...] = ()
    priority: int = 0  # lower runs earlier (only under the priority policy)
    cache_salt: str | None = None


class AbortRequest(Struct, frozen=True, tag=True):
    """Give the request up, or only its sequence `index` (a stop string was found in its text). Unknown ids are ignored."""

    request_id: str
    index: int | None = None


class ResetPrefixCache(Struct, frozen=True, tag=True):
    """Forget every cached prefix that no running sequence uses."""


class Shutdown(Struct, frozen=True, tag=True):
    """Leave the loop after the current step; running requests end with ABORT."""


ToEngine = AddRequest | AbortRequest | ResetPrefixCache | Shutdown


class TokenLogprobs(Struct, frozen=True, array_like=True):
    """Log-probability of one token (natural log, of the raw distribution) and of the likeliest tokens at its place."""

    token_id: int
    logprob: float
    rank: int  # 1 = the likeliest
    top: list[tuple[int, float]] = []  # (token id, logprob), likeliest first


class SequenceOutput(Struct, frozen=True, array_like=True):
    """New tokens of one sequence. `finish_reason` set: these are its last ones."""

    request_id: str
    index: int
    token_ids: list[int]
    logprobs: list[TokenLogprobs] | None = None
    finish_reason: FinishReason | None = None
    stop_token_id: int | None = None  # the stop token (not EOS) that ended it
    cumulative_logprob: float = 0.0  # filled for beams and when logprobs or best_of ask for it


class PromptLogprobs(Struct, frozen=True, array_like=True):
    """Log-probabilities of prompt tokens 1 ... P-1 (the first has none), sent once, before the first output token."""

    request_id: str
    logprobs: list[TokenLogprobs]


class RequestFinished(Struct, frozen=True, array_like=True):
    """The one terminal event of a request, with what its metrics need."""

    request_id: str
    reason: FinishReason
    error: str | None = None  # with reason ERROR: one sentence for the user
    num_prompt_tokens: int = 0
    num_cached_tokens: int = 0  # prompt tokens taken from the prefix cache
    num_generation_tokens: int = 0
    num_preemptions: int = 0
    queue_time: float = 0.0  # arrival at the engine -> first scheduled
    prefill_time: float = 0.0  # first scheduled -> first token
    decode_time: float = 0.0  # first token -> last token


class SchedulerStats(Struct, frozen=True, array_like=True):
    """State after a step; counters are since the start of the engine."""

    num_running: int = 0
    num_waiting: int = 0
    num_swapped: int = 0
    kv_cache_usage: float = 0.0  # used blocks / all blocks, 0..1; evictable cached blocks count as free
    host_cache_usage: float = 0.0  # the same for swap space
    num_free_blocks: int = 0
    prefix_cache_queries: int = 0  # tokens
    prefix_cache_hits: int = 0  # tokens
    num_preemptions: int = 0
    prompt_tokens: int = 0
    generation_tokens: int = 0
    iteration_tokens: int = 0  # tokens computed by this step
    step_seconds: float = 0.0
    num_deferred: int = 0  # of num_waiting: until a prefix that another request computes is cached


class StepOutputs(Struct, frozen=True, tag=True):
    """All that one step gave."""

    sequences: list[SequenceOutput] = []
    prompts: list[PromptLogprobs] = []
    finished: list[RequestFinished] = []
    stats: SchedulerStats = SchedulerStats()


class LoadProgress(Struct, frozen=True, tag=True):
    """Start-up on its way: `phase` is `weights`, `cache` or `warm-up`."""

    phase: str
    done_bytes: int = 0
    total_bytes: int = 0


class EngineReady(Struct, frozen=True, tag=True):
    """The first real step has run. Sizes in tokens and blocks; timings in seconds per phase."""

    num_blocks: int
    num_host_blocks: int
    block_size: int
    max_model_len: int
    max_num_seqs: int
    vocab_size: int
    backend: str
    dtype: str
    weight_bytes: int
    cache_bytes: int
    timings: dict[str, float]
    activation_bytes: int = 0  # the most that a step takes besides
    tokens_per_second: float | None = None  # decode of a full batch, as measured at start
    device: str = "cpu"
    architecture: str = ""


class EngineFailed(Struct, frozen=True, tag=True):
    """The engine cannot start or go on. `cause` is a fixed word (see errors.py), `message` one sentence with what to do."""

    cause: str
    message: str


FromEngine = LoadProgress | EngineReady | StepOutputs | EngineFailed
