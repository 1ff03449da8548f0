"""`StepPlan` and `StepResult`: the contract between the engine and the worker that runs the model.

A plan says which tokens of which sequences are computed, where their K and V go, which blocks are moved first, and
what is drawn from the logits. All frozen; made by the scheduler, consumed by `Executor.execute`. msgspec structs,
because a step makes two per row and a frozen dataclass costs 2 us where a struct costs 0.1.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from octavo_runtime.engine.messages import TokenLogprobs
from octavo_runtime.engine.sampling_params import SamplingParams


class RowSampling(msgspec.Struct, frozen=True, gc=False):
    """What is drawn from the logits of a row's last token.

    Plain sampling draws one token per entry of `uniforms` (several when n sequences share their first step). With
    `num_beam_candidates` > 0 nothing is drawn; the result holds that many likeliest tokens instead.
    """

    params: SamplingParams
    uniforms: tuple[float, ...]  # in [0, 1), from (seed, sequence index, position): the batch has no influence
    prompt_token_ids: Sequence[int]
    output_token_ids: Sequence[int]  # tokens generated so far
    banned_token_ids: tuple[int, ...] = ()  # EOS and stop tokens while min_tokens is not reached
    num_logprobs: int | None = None  # None: none wanted; 0: the drawn one; k: also the top k; -1: all
    num_beam_candidates: int = 0


class Row(msgspec.Struct, frozen=True, gc=False):
    """One sequence's share of a step: compute `token_ids`, the tokens at positions `start` and up.

    `prompt_targets` has one entry less than `token_ids` where these end with the prompt's last token.
    """

    sequence_id: int  # unique in the engine, stable over the sequence's life
    token_ids: Sequence[int]
    start: int
    block_table: Sequence[int]  # physical blocks that cover positions 0 ... start + len(token_ids) - 1
    sampling: RowSampling | None = None  # None: a prompt chunk that is not the last
    prompt_targets: Sequence[int] | None = (
        None  # log-probabilities wanted: the prompt token after each computed position
    )
    num_prompt_logprobs: int = 0


class StepPlan(msgspec.Struct, frozen=True, gc=False):
    """One step. Block moves happen before the model runs, in the order swap_out, swap_in, copy."""

    rows: tuple[Row, ...]
    swap_out: tuple[tuple[int, int], ...] = ()  # (device block, host block)
    swap_in: tuple[tuple[int, int], ...] = ()  # (host block, device block)
    copy: tuple[tuple[int, int], ...] = ()  # (source, destination) device blocks

    @property
    def num_tokens(self) -> int:
        return sum(len(row.token_ids) for row in self.rows)


class RowResult(msgspec.Struct, frozen=True, gc=False):
    """What a row gave, in the plan's order of rows.

    `token_ids`: one per uniform. `logprobs`: one per drawn token when asked for. For beams `token_ids` is empty and
    `candidates` holds (token id, logprob of the raw distribution), likeliest first. `prompt_logprobs`: one per prompt
    target.
    """

    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenLogprobs, ...] | None = None
    candidates: tuple[tuple[int, float], ...] = ()
    prompt_logprobs: tuple[TokenLogprobs, ...] | None = None


class StepResult(msgspec.Struct, frozen=True, gc=False):
    """One `RowResult` per row of the plan."""

    rows: tuple[RowResult, ...]


class Executor(Protocol):
    """Runs plans: a `Worker` at world size 1, later a fan-out to one worker per rank."""

    def execute(self, plan: StepPlan) -> StepResult: ...
