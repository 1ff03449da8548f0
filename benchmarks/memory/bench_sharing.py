"""Blocks of KV cache that requests need: waste on a mixed load, and what sharing saves.

    python benchmarks/memory/bench_sharing.py

Runs the engine on a simulated model (tokens do not matter here) and counts blocks after every step. Writes
`benchmarks/results/sharing.json` and `.md`.
"""

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

from octavo_runtime.engine.config import CacheConfig, SchedulerConfig
from octavo_runtime.engine.llm_engine import LLMEngine
from octavo_runtime.engine.messages import AddRequest
from octavo_runtime.engine.plan import RowResult, StepPlan, StepResult
from octavo_runtime.engine.sampling_params import SamplingParams

RESULTS = Path(__file__).parent.parent / "results"
BLOCK_SIZE = 16
NUM_BLOCKS = 16_384


class ConstantExecutor:
    """Draws the same token always."""

    def execute(self, plan: StepPlan) -> StepResult:
        return StepResult(
            tuple(RowResult(token_ids=(7,) * len(row.sampling.uniforms) if row.sampling else ()) for row in plan.rows)
        )


@dataclass(frozen=True, slots=True)
class Saving:
    """Peak blocks with and without sharing."""

    case: str
    shared_blocks: int
    unshared_blocks: int

    @property
    def saved(self) -> float:
        return 1 - self.shared_blocks / self.unshared_blocks


def make_engine(sharing: bool, max_num_seqs: int = 256, max_num_batched_tokens: int = 2048) -> LLMEngine:
    scheduler = SchedulerConfig(max_num_batched_tokens, max_num_seqs, max_model_len=8192)
    return LLMEngine(scheduler, CacheConfig(BLOCK_SIZE, NUM_BLOCKS, 0, sharing), ConstantExecutor(), count().__next__)


def request(number: int, prompt: Sequence[int], max_tokens: int) -> AddRequest:
    params = SamplingParams(temperature=0, max_tokens=max_tokens, ignore_eos=True)
    return AddRequest(request_id=str(number), prompt_token_ids=list(prompt), params=params)


def random_ids(source: random.Random, num: int) -> list[int]:
    return [source.randrange(100, 40_000) for _ in range(num)]


def mixed_load() -> list[tuple[list[int], int]]:
    """The prompt and output lengths of load.py's `mixed32`: log-normal, 96 requests, 32 at a time."""
    source = random.Random(7)
    load = []
    for _ in range(96):
        num_prompt = min(768, max(16, int(source.lognormvariate(4.6, 0.9))))
        num_output = min(384, max(8, int(source.lognormvariate(4.2, 0.9))))
        load.append((random_ids(source, num_prompt), num_output))
    return load


def measure_waste() -> float:
    """Share of allocated token slots that hold no token, summed over all steps of `mixed32`."""
    engine = make_engine(sharing=True, max_num_seqs=32)
    for number, (prompt, num_output) in enumerate(mixed_load()):
        engine.add_request(request(number, prompt, num_output))
    allocated = used = 0
    while engine.has_unfinished_requests():
        engine.step()
        for group in engine.scheduler.running:
            for sequence in group.live:
                allocated += len(sequence.block_table) * BLOCK_SIZE
                used += sequence.num_computed
    return 1 - used / allocated


def peak_blocks(engine: LLMEngine, requests: Sequence[AddRequest], num_prefix: int | None) -> int:
    """Most blocks in use at once while `requests` run; only those of the first `num_prefix` tokens if given."""
    for each in requests:
        engine.add_request(each)
    peak = 0
    while engine.has_unfinished_requests():
        engine.step()
        end = None if num_prefix is None else num_prefix // BLOCK_SIZE
        tables = (sequence.block_table[:end] for group in engine.scheduler.running for sequence in group.live)
        peak = max(peak, len({block for held in tables for block in held}))
    return peak


def compare(case: str, requests: Sequence[AddRequest], num_prefix: int | None = None) -> Saving:
    """All requests at once: every step has room for all of them."""
    engines = [make_engine(sharing, max_num_batched_tokens=2**18) for sharing in (True, False)]
    return Saving(case, *(peak_blocks(engine, requests, num_prefix) for engine in engines))


def shared_prefix(num_requests: int, num_prefix: int, num_own: int, num_output: int) -> list[AddRequest]:
    source = random.Random(1)
    prefix = random_ids(source, num_prefix)
    return [request(number, prefix + random_ids(source, num_own), num_output) for number in range(num_requests)]


def multi_turn(num_turns: int) -> Saving:
    """A conversation whose every turn sends the whole history. Without sharing each turn computes and fills it anew."""

    def fill(sharing: bool) -> int:
        engine, source = make_engine(sharing), random.Random(2)
        history: list[int] = []
        filled = 0
        for turn in range(num_turns):
            history += random_ids(source, 60)
            engine.add_request(request(turn, history, 100))
            while engine.has_unfinished_requests():
                for event in engine.step().finished:
                    num_tokens = event.num_prompt_tokens + event.num_generation_tokens - 1 - event.num_cached_tokens
                    filled += -(-num_tokens // BLOCK_SIZE)
            history += [7] * 100
        return filled

    return Saving(f"conversation of {num_turns} turns (blocks filled)", fill(True), fill(False))


def table(waste: float, savings: Sequence[Saving]) -> str:
    lines = [
        f"Blocks of {BLOCK_SIZE} tokens; `python benchmarks/memory/bench_sharing.py`.",
        "",
        f"Block waste on mixed32 (allocated slots without a token, over all steps): {waste:.2%}",
        "",
        "| case | blocks, shared | blocks, not shared | saved |",
        "|---|---|---|---|",
    ]
    lines += [f"| {row.case} | {row.shared_blocks:,} | {row.unshared_blocks:,} | {row.saved:.1%} |" for row in savings]
    return "\n".join(lines) + "\n"


def main() -> None:
    cases: list[Callable[[], Saving]] = [
        lambda: compare(
            "32 requests with one 1,024-token prefix, 32 own, 32 generated", shared_prefix(32, 1024, 32, 32)
        ),
        lambda: compare("10 equal prompts, all blocks", shared_prefix(10, 1025, 0, 8)),
        lambda: compare("100 equal prompts, all blocks", shared_prefix(100, 1025, 0, 8)),
        lambda: compare("10 equal prompts, blocks of the prompt", shared_prefix(10, 1025, 0, 8), 1024),
        lambda: compare("100 equal prompts, blocks of the prompt", shared_prefix(100, 1025, 0, 8), 1024),
        lambda: multi_turn(4),
        lambda: multi_turn(8),
    ]
    waste, savings = measure_waste(), [case() for case in cases]
    RESULTS.mkdir(parents=True, exist_ok=True)
    text = table(waste, savings)
    (RESULTS / "sharing.md").write_text(text)
    record = {
        "block_size": BLOCK_SIZE,
        "mixed32_waste": waste,
        "savings": [asdict(row) | {"saved": row.saved} for row in savings],
    }
    (RESULTS / "sharing.json").write_text(json.dumps(record, indent=1) + "\n")
    print(text)


if __name__ == "__main__":
    main()
