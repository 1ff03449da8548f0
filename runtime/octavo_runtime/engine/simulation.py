"""`SimulatedExecutor`: a model without weights over a paged memory without tensors, for tests and benchmarks.

A slot holds a state that depends on its token and all before it, as real K and V do. The executor writes every row's
states, follows block tables, copies and swaps as the worker must, reads each row's context back through its table and
derives the next tokens from a hash of it. So a wrong block, copy, swap or prefix hit changes the tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from struct import pack

from octavo_runtime.engine.messages import TokenLogprobs
from octavo_runtime.engine.plan import Row, RowResult, RowSampling, StepPlan, StepResult


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """The rule that makes the next token: a function of the whole context (a list of states) and the draw."""

    vocab_size: int = 64

    def state(self, previous: int, token_id: int) -> int:
        """What is stored for a token; `previous` is the state before it, 0 at the beginning."""
        return ((previous + token_id + 1) * 6364136223846793005 + 1442695040888963407) % 2**63

    def context(self, token_ids: Sequence[int]) -> list[int]:
        """The states of a whole token list."""
        states: list[int] = []
        for token_id in token_ids:
            states.append(self.state(states[-1] if states else 0, token_id))
        return states

    def _hash(self, context: Sequence[int], salt: float) -> int:
        digest = blake2b(pack(f"<d{len(context)}q", salt, *context), digest_size=8).digest()
        return int.from_bytes(digest, "little")

    def token(self, context: Sequence[int], uniform: float, banned: Sequence[int] = ()) -> int:
        """The next token; the smallest one after the hashed one that is not banned."""
        token_id = self._hash(context, uniform) % self.vocab_size
        while token_id in banned:
            token_id = (token_id + 1) % self.vocab_size
        return token_id

    def logprob(self, context: Sequence[int], token_id: int) -> float:
        """A made-up log-probability in (-4, 0], different for nearly every context and token."""
        return -4.0 * (self._hash(context, 2.0 + token_id) % 1_000_003) / 1_000_003

    def candidates(self, context: Sequence[int], num: int) -> tuple[tuple[int, float], ...]:
        """The `num` likeliest tokens."""
        ranked = sorted((-self.logprob(context, token_id), token_id) for token_id in range(self.vocab_size))
        return tuple((token_id, -cost) for cost, token_id in ranked[:num])


@dataclass(slots=True)
class SimulatedExecutor:
    """Runs plans on `SimulatedModel`. Unwritten slots read as -1, which no context contains."""

    block_size: int
    num_blocks: int
    num_host_blocks: int = 0
    model: SimulatedModel = SimulatedModel()
    num_steps: int = 0
    device: list[list[int]] = field(init=False)
    host: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.device = [[-1] * self.block_size for _ in range(self.num_blocks)]
        self.host = [[-1] * self.block_size for _ in range(self.num_host_blocks)]

    def execute(self, plan: StepPlan) -> StepResult:
        """Move blocks, write all rows, then read and draw."""
        self.num_steps += 1
        for source, destination in plan.swap_out:
            self.host[destination] = self.device[source].copy()
        for source, destination in plan.swap_in:
            self.device[destination] = self.host[source].copy()
        for source, destination in plan.copy:
            self.device[destination] = self.device[source].copy()
        for row in plan.rows:
            self._write(row)
        return StepResult(tuple(self._run(row) for row in plan.rows))

    def _write(self, row: Row) -> None:
        table, size = row.block_table, self.block_size
        last = row.start - 1
        state = self.device[table[last // size]][last % size] if row.start else 0
        for position, token_id in enumerate(row.token_ids, row.start):
            state = self.model.state(state, token_id)
            self.device[table[position // size]][position % size] = state

    def _read(self, row: Row) -> list[int]:
        end = row.start + len(row.token_ids)
        slots = [state for block in row.block_table for state in self.device[block]]
        return slots[:end]

    def _run(self, row: Row) -> RowResult:
        context = self._read(row)
        prompt_logprobs = None
        if row.prompt_targets is not None:
            prompt_logprobs = tuple(
                self._entry(context[: row.start + offset + 1], target, row.num_prompt_logprobs)
                for offset, target in enumerate(row.prompt_targets)
            )
        if row.sampling is None:
            return RowResult(prompt_logprobs=prompt_logprobs)
        if row.sampling.num_beam_candidates:
            candidates = self.model.candidates(context, row.sampling.num_beam_candidates)
            return RowResult(candidates=candidates, prompt_logprobs=prompt_logprobs)
        return self._draw(context, row.sampling, prompt_logprobs)

    def _draw(
        self, context: list[int], sampling: RowSampling, prompt_logprobs: tuple[TokenLogprobs, ...] | None
    ) -> RowResult:
        token_ids = tuple(self.model.token(context, draw, sampling.banned_token_ids) for draw in sampling.uniforms)
        logprobs = None
        if sampling.num_logprobs is not None:
            logprobs = tuple(self._entry(context, token_id, sampling.num_logprobs) for token_id in token_ids)
        return RowResult(token_ids=token_ids, logprobs=logprobs, prompt_logprobs=prompt_logprobs)

    def _entry(self, context: list[int], token_id: int, num_top: int) -> TokenLogprobs:
        top = list(self.model.candidates(context, num_top)) if num_top > 0 else []
        return TokenLogprobs(token_id=token_id, logprob=self.model.logprob(context, token_id), rank=1, top=top)
