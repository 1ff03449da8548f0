"""Time of one engine step without a model: 256 running decodes, and more and more requests waiting behind them.

    python benchmarks/scheduler/bench_scheduler.py

The executor draws nothing, so a step is scheduling, making the plan, committing 256 tokens and making the outputs.
Times are CPU time of the thread, so that other work on the machine does not count. Writes
`benchmarks/results/scheduler.{json,md}`.
"""

import argparse
import json
import platform
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from octavo_runtime.engine.config import CacheConfig, SchedulerConfig
from octavo_runtime.engine.llm_engine import LLMEngine
from octavo_runtime.engine.messages import AddRequest
from octavo_runtime.engine.plan import RowResult, StepPlan, StepResult
from octavo_runtime.engine.sampling_params import SamplingParams

RESULTS = Path(__file__).parent.parent / "results"
NUM_RUNNING = 256
PROMPT_TOKENS = 64


class IdleExecutor:
    """Gives every sampled row the same token and notes how long the engine was away from it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def execute(self, plan: StepPlan) -> StepResult:
        started = time.thread_time()
        result = StepResult(
            tuple(
                RowResult(token_ids=(7,) * len(row.sampling.uniforms)) if row.sampling else RowResult()
                for row in plan.rows
            )
        )
        self.seconds += time.thread_time() - started
        return result


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table; times in milliseconds a step."""

    waiting: int
    sampling: str
    median: float
    p90: float
    best: float


def build(num_waiting: int, temperature: float) -> tuple[LLMEngine, IdleExecutor]:
    """An engine with all seats taken by decodes and `num_waiting` requests behind them."""
    scheduler = SchedulerConfig(max_num_batched_tokens=2048, max_num_seqs=NUM_RUNNING, max_model_len=4096)
    cache = CacheConfig(block_size=16, num_blocks=NUM_RUNNING * 64)
    executor = IdleExecutor()
    engine = LLMEngine(scheduler, cache, executor, time.monotonic)
    for number in range(NUM_RUNNING + num_waiting):
        params = SamplingParams(max_tokens=900, temperature=temperature, ignore_eos=True, seed=number)
        prompt = [number % 30000] * PROMPT_TOKENS
        engine.add_request(AddRequest(request_id=str(number), prompt_token_ids=prompt, params=params))
    while engine.step().stats.iteration_tokens != NUM_RUNNING:
        pass
    return engine, executor


def measure(num_waiting: int, temperature: float, num_steps: int) -> Case:
    """Median, 90th percentile and best of `num_steps` steps, without the executor's time."""
    engine, executor = build(num_waiting, temperature)
    times = []
    for _ in range(num_steps):
        away = executor.seconds
        started = time.thread_time()
        outputs = engine.step()
        elapsed = time.thread_time() - started - (executor.seconds - away)
        if (len(outputs.sequences), outputs.stats.num_waiting) != (NUM_RUNNING, num_waiting):
            raise RuntimeError("the engine did not run 256 decodes in every step")
        times.append(elapsed * 1e3)
    times.sort()
    sampling = "greedy" if temperature == 0 else "seeded"
    return Case(num_waiting, sampling, statistics.median(times), times[int(0.9 * len(times))], times[0])


def write(cases: list[Case]) -> str:
    """Both result files; returns the table."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    lines = [
        f"CPU milliseconds a step with {NUM_RUNNING} running decodes (schedule, plan, commit, outputs; no model).",
        "`python benchmarks/scheduler/bench_scheduler.py`, Python " + platform.python_version() + ".",
        "",
        "| waiting | sampling | median | p90 | best |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {case.waiting:,} | {case.sampling} | {case.median:.2f} | {case.p90:.2f} | {case.best:.2f} |"
        for case in cases
    ]
    table = "\n".join(lines) + "\n"
    (RESULTS / "scheduler.md").write_text(table)
    fields = [
        {"waiting": c.waiting, "sampling": c.sampling, "median_ms": c.median, "p90_ms": c.p90, "best_ms": c.best}
        for c in cases
    ]
    (RESULTS / "scheduler.json").write_text(json.dumps(fields, indent=1) + "\n")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=300)
    steps = parser.parse_args().steps
    cases = [measure(waiting, temperature, steps) for temperature in (0.0, 1.0) for waiting in (10, 1_000, 10_000)]
    print(write(cases))


if __name__ == "__main__":
    main()
