"""`Sequence` and `SequenceGroup`: the only mutable state of a request.

A sequence is a token list of which the first `num_computed` have their K and V in the blocks of `block_table`; prefill,
decode, prefix hits and recompute differ only in how far the two numbers are apart. A group is one request's sequences.
Knows no queue and allocates no block: `scheduler.py` and `block_manager.py` do.
"""

import sys
from dataclasses import dataclass, field
from enum import StrEnum

from octavo_runtime.engine.beam import BeamSearch
from octavo_runtime.engine.messages import AddRequest, FinishReason, TokenLogprobs
from octavo_runtime.engine.plan import RowSampling
from octavo_runtime.engine.sampling_params import SamplingParams

NEVER_REGISTER = sys.maxsize
"""`Sequence.register_at` of a sequence whose blocks do not go into the prefix cache."""


class GroupState(StrEnum):
    """Where a group is: in one of the scheduler's three queues, or gone."""

    WAITING = "waiting"
    RUNNING = "running"
    SWAPPED = "swapped"
    FINISHED = "finished"


@dataclass(slots=True, eq=False)
class Sequence:
    """One token list with its block table."""

    sequence_id: int
    index: int  # place in the group: the `index` of its outputs
    token_ids: list[int]  # prompt and output
    output_token_ids: list[int] = field(default_factory=list)
    num_computed: int = 0  # tokens whose K and V are in the cache
    block_table: list[int] = field(default_factory=list)  # device blocks, logical order
    host_table: list[int] = field(default_factory=list)  # host blocks while swapped out
    block_hashes: list[bytes] = field(default_factory=list)  # hash chain of the full blocks, as far as computed
    num_registered: int = 0  # leading blocks that were offered to the prefix cache
    register_at: int = NEVER_REGISTER  # num_computed from which the next block can be offered
    cumulative_logprob: float = 0.0
    uniforms: tuple[float, ...] = ()  # one block of draws, see seeds.py
    uniforms_block: int = -1
    constant_sampling: RowSampling | None = None  # what every step asks when nothing in it changes (greedy)

    @property
    def num_pending(self) -> int:
        """Tokens whose K and V are not in the cache yet."""
        return len(self.token_ids) - self.num_computed

    def append(self, token_id: int) -> None:
        self.token_ids.append(token_id)
        self.output_token_ids.append(token_id)

    def copy(self, sequence_id: int, index: int) -> "Sequence":
        """A sequence with the same history and no blocks yet (`BlockManager.fork` shares them)."""
        return Sequence(
            sequence_id=sequence_id,
            index=index,
            token_ids=self.token_ids.copy(),
            output_token_ids=self.output_token_ids.copy(),
            cumulative_logprob=self.cumulative_logprob,
        )


@dataclass(frozen=True, slots=True)
class StopRules:
    """When a sequence of the group ends, resolved once from the request and the model's limits."""

    max_tokens: int
    min_tokens: int
    eos_token_ids: frozenset[int]  # empty with ignore_eos
    stop_token_ids: frozenset[int]

    @property
    def terminators(self) -> frozenset[int]:
        """Every token that ends a sequence."""
        return self.eos_token_ids | self.stop_token_ids


@dataclass(slots=True, eq=False)
class SequenceGroup:
    """One request: its sequences, its place in the queues, and what its `RequestFinished` will say."""

    request_id: str
    params: SamplingParams
    prompt_token_ids: list[int]
    stop: StopRules
    order: tuple[int, int]  # (priority, arrival number): the smaller runs first
    seed: int  # unsigned 64 bit
    arrival_time: float
    root_hash: bytes  # what the hash chain of its blocks starts from (salt)
    live: list[Sequence]  # sequences that are not finished; the first one leads until the group is forked
    num_seats: int  # sequences it occupies or will occupy of `max_num_seqs`
    beams: BeamSearch | None = None
    state: GroupState = GroupState.WAITING
    forked: bool = True  # False: the leader still computes the prompt for all of the group
    decoding: bool = False  # every live sequence has exactly one token pending
    banned_token_ids: tuple[int, ...] = ()  # while min_tokens is not reached
    num_logprobs: int | None = None  # what rows ask for; may be more than the user did (best_of)
    prompt_logprobs: list[TokenLogprobs] | None = None  # gathered so far; None: not wanted, or sent
    num_hit_blocks: int = 0  # found by the last `can_allocate`
    num_cached_tokens: int | None = None  # prompt tokens from the prefix cache at the first admission
    num_generated: int = 0
    num_preemptions: int = 0
    first_reason: FinishReason | None = None  # of the lowest index that has ended
    first_reason_index: int = 0
    first_scheduled_time: float | None = None
    first_token_time: float | None = None
    last_token_time: float | None = None

    @property
    def num_prompt(self) -> int:
        return len(self.prompt_token_ids)

    @property
    def leader(self) -> Sequence:
        return self.live[0]

    @property
    def never_sampled(self) -> bool:
        """Whether the first token is still to be drawn."""
        return not self.leader.output_token_ids

    @property
    def priority(self) -> int:
        return self.order[0]

    def target(self, sequence: Sequence) -> int:
        """Tokens that `sequence` may compute now: all, or only the prompt while the group is not forked."""
        if self.forked:
            return len(sequence.token_ids)
        return self.num_prompt if sequence is self.live[0] else sequence.num_computed

    def restart(self) -> None:
        """Nothing is computed any more (its blocks were freed): back to the prompt, with all tokens kept."""
        for sequence in self.live:
            sequence.num_computed = 0
        self.forked = len(self.live) == 1 and self.num_seats == 1
        self.decoding = False
        if self.prompt_logprobs is not None:
            self.prompt_logprobs = []


def resolve_stop_rules(request: AddRequest, max_model_len: int) -> StopRules:
    """The request's own limits and those of the context; `max_tokens` None means as many as fit."""
    params = request.params
    room = max_model_len - len(request.prompt_token_ids)
    return StopRules(
        max_tokens=room if params.max_tokens is None else min(params.max_tokens, room),
        min_tokens=params.min_tokens,
        eos_token_ids=frozenset() if params.ignore_eos else frozenset(request.eos_token_ids),
        stop_token_ids=frozenset(params.stop_token_ids),
    )
