"""Makers of groups and engines for the engine's tests; no torch, time counted in calls of the clock."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from octavo_runtime.engine.admission import make_group
from octavo_runtime.engine.config import CacheConfig, SchedulerConfig
from octavo_runtime.engine.llm_engine import LLMEngine
from octavo_runtime.engine.messages import AddRequest, StepOutputs
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.engine.sequence import SequenceGroup
from octavo_runtime.engine.simulation import SimulatedExecutor

BLOCK_SIZE = 4


class EngineHarness:
    """An engine on a simulated model, and everything that came out of it."""

    def __init__(self, scheduler: dict[str, Any], num_blocks: int, num_host_blocks: int, prefix_caching: bool) -> None:
        config = SchedulerConfig(**({"max_model_len": 64, "watermark": 0.0} | scheduler))
        self.executor = SimulatedExecutor(BLOCK_SIZE, num_blocks, num_host_blocks)
        cache = CacheConfig(BLOCK_SIZE, num_blocks, num_host_blocks, prefix_caching)
        self.plans: list[Any] = []
        self.engine = LLMEngine(config, cache, self, count().__next__)
        self.model = self.executor.model
        self.tokens: dict[tuple[str, int], list[int]] = {}
        self.outputs: list[StepOutputs] = []

    def execute(self, plan: Any) -> Any:
        self.plans.append(plan)
        return self.executor.execute(plan)

    def add(self, request_id: str, prompt: list[int], **fields: Any) -> None:
        """Add a request; fields of `AddRequest` are told from those of `SamplingParams` by name."""
        own = {name: fields.pop(name) for name in ("eos_token_ids", "priority", "cache_salt") if name in fields}
        params = SamplingParams(**({"temperature": 0.0, "max_tokens": 4} | fields))
        self.engine.add_request(AddRequest(request_id=request_id, prompt_token_ids=prompt, params=params, **own))

    def step(self) -> StepOutputs:
        outputs = self.engine.step()
        for output in outputs.sequences:
            self.tokens.setdefault((output.request_id, output.index), []).extend(output.token_ids)
        self.outputs.append(outputs)
        return outputs

    def run(self, max_steps: int = 2000) -> None:
        for _ in range(max_steps):
            if not self.engine.has_unfinished_requests():
                return
            self.step()
        raise AssertionError("the engine does not come to an end")

    @property
    def finished(self) -> dict[str, Any]:
        return {event.request_id: event for outputs in self.outputs for event in outputs.finished}


@pytest.fixture(scope="session")
def make_engine() -> Callable[..., EngineHarness]:
    """`make_engine(num_blocks=64, num_host_blocks=0, prefix_caching=True, **SchedulerConfig fields)`."""

    def make(
        num_blocks: int = 64, num_host_blocks: int = 0, prefix_caching: bool = True, **scheduler: Any
    ) -> EngineHarness:
        return EngineHarness(scheduler, num_blocks, num_host_blocks, prefix_caching)

    return make


@pytest.fixture
def new_group() -> Callable[..., SequenceGroup]:
    """`new_group(prompt, arrival=0, priority=0, salt=None, config=SchedulerConfig(), **SamplingParams fields)`."""
    numbers = count(1)

    def make(
        prompt: list[int],
        arrival: int | None = None,
        priority: int = 0,
        salt: str | None = None,
        config: SchedulerConfig | None = None,
        **params: Any,
    ) -> SequenceGroup:
        number = next(numbers)
        request = AddRequest(
            request_id=f"r{number}",
            prompt_token_ids=prompt,
            params=SamplingParams(**({"max_tokens": 8} | params)),
            priority=priority,
            cache_salt=salt,
        )
        return make_group(request, config or SchedulerConfig(), number, number if arrival is None else arrival, 0.0)

    return make
