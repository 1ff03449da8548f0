"""`AddRequest` -> `SequenceGroup`, or the sentence that refuses it.

The server has checked all this before, with better knowledge of the fields; here it keeps one bad request from
harming others.
"""

from collections.abc import Iterable
from dataclasses import replace

from octavo_runtime.engine.beam import BeamSearch
from octavo_runtime.engine.block_manager import BlockManager
from octavo_runtime.engine.cache_demand import longest_output
from octavo_runtime.engine.config import SchedulerConfig, SchedulingPolicy
from octavo_runtime.engine.messages import AddRequest
from octavo_runtime.engine.prefix_cache import root_hash
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.engine.seeds import request_seed
from octavo_runtime.engine.sequence import Sequence, SequenceGroup, StopRules, resolve_stop_rules


def check_request(request: AddRequest, config: SchedulerConfig) -> str | None:
    """What is wrong with the request itself, or None."""
    prompt, params = request.prompt_token_ids, request.params
    if not prompt:
        return "The prompt is empty; send at least one token."
    for name, ids in _token_ids(prompt, params):
        if not all(0 <= token_id < config.vocab_size for token_id in (min(ids), max(ids))):
            return f"{name} has a token id that the model lacks; its ids are 0 ... {config.vocab_size - 1}."
    if len(prompt) >= config.max_model_len:
        return (
            f"The prompt has {len(prompt)} tokens, and at least one must be generated, but the context is "
            f"{config.max_model_len} tokens (--max-model-len); shorten the prompt."
        )
    width = params.num_sequences
    if width > config.max_num_seqs:
        return f"The request runs {width} sequences, but at most {config.max_num_seqs} run at once; lower n or best_of."
    if params.use_beam_search and width > config.max_num_batched_tokens:
        return (
            f"The request has {width} beams, but a step computes at most {config.max_num_batched_tokens} tokens "
            "(--max-num-batched-tokens); lower n or best_of."
        )
    return None


def _token_ids(prompt: list[int], params: SamplingParams) -> Iterable[tuple[str, Iterable[int]]]:
    """What a tensor of the vocabulary's size is indexed with, by name; stop tokens only end what was generated."""
    yield "The prompt", prompt
    if params.allowed_token_ids:
        yield "allowed_token_ids", params.allowed_token_ids
    if params.logit_bias:
        yield "logit_bias", params.logit_bias


def cut_default_length(group: SequenceGroup, blocks: BlockManager) -> None:
    """Without max_tokens a request generates what the context allows, and the cache for all of its sequences."""
    if group.params.max_tokens is None:
        fits = longest_output(group.num_prompt, group.params.num_sequences, blocks.num_blocks, blocks.block_size)
        group.stop = replace(group.stop, max_tokens=min(group.stop.max_tokens, fits))


def check_size(group: SequenceGroup, blocks: BlockManager) -> str | None:
    """Why the group can never run in this cache, or None."""
    worst = blocks.worst_case(group)
    if worst <= blocks.num_blocks:
        return None
    size = blocks.block_size
    return (
        f"The request may need {worst * size} tokens of KV cache ({group.num_prompt} prompt tokens, "
        f"{group.params.num_sequences} x up to {group.stop.max_tokens} generated tokens, in blocks of {size}), but the "
        f"whole cache holds {blocks.num_blocks * size}; lower max_tokens, n or best_of, shorten the prompt, or give "
        "the server more cache memory (--gpu-memory-utilization, --kv-cache-memory-bytes)."
    )


def make_group(
    request: AddRequest, config: SchedulerConfig, sequence_id: int, arrival: int, now: float
) -> SequenceGroup:
    """The request as the scheduler sees it, with its first sequence. `arrival` numbers requests as they come."""
    params = request.params
    stop = resolve_stop_rules(request, config.max_model_len)
    priority = request.priority if config.policy is SchedulingPolicy.PRIORITY else 0
    num_logprobs = params.logprobs
    if num_logprobs is None and params.num_sequences > params.n:
        num_logprobs = 0  # the best n are chosen by cumulative log-probability
    prompt = list(request.prompt_token_ids)
    return SequenceGroup(
        request_id=request.request_id,
        params=params,
        prompt_token_ids=prompt,
        stop=stop,
        order=(priority, arrival),
        seed=request_seed(params.seed, config.seed, arrival),
        arrival_time=now,
        root_hash=root_hash(request.cache_salt),
        live=[Sequence(sequence_id=sequence_id, index=0, token_ids=prompt.copy())],
        num_seats=params.num_sequences,
        beams=_make_beams(request, stop),
        forked=params.num_sequences == 1,
        banned_token_ids=_known(stop.terminators, config) if stop.min_tokens else (),
        num_logprobs=None if params.use_beam_search else num_logprobs,
        prompt_logprobs=None if params.prompt_logprobs is None else [],
    )


def _known(token_ids: Iterable[int], config: SchedulerConfig) -> tuple[int, ...]:
    """Those that the model can generate; clients name stop tokens of other models too."""
    return tuple(sorted(token_id for token_id in token_ids if 0 <= token_id < config.vocab_size))


def _make_beams(request: AddRequest, stop: StopRules) -> BeamSearch | None:
    params = request.params
    if not params.use_beam_search:
        return None
    return BeamSearch(params.num_sequences, params.length_penalty, params.early_stopping, stop.terminators)
