"""A hypothesis state machine over the whole engine on a simulated paged memory.

Requests of every kind come and go in a cache that is far too small; after every step the block accounting is checked,
at the end every request must have ended once, with the tokens that it gets alone in a large cache. `-m slow` runs the
long form.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import count

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from octavo_runtime.engine.cache_demand import longest_output
from octavo_runtime.engine.config import CacheConfig, PreemptionMode, SchedulerConfig, SchedulingPolicy
from octavo_runtime.engine.llm_engine import LLMEngine
from octavo_runtime.engine.messages import AddRequest, FinishReason, RequestFinished, SequenceOutput, StepOutputs
from octavo_runtime.engine.plan import StepPlan, StepResult
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.engine.simulation import SimulatedExecutor, SimulatedModel

MAX_MODEL_LEN = 40
MODEL = SimulatedModel(vocab_size=24)
EOS = 3


@dataclass
class CheckingExecutor:
    """Runs plans and checks, while the tables are as planned, that every written block has one holder."""

    memory: SimulatedExecutor
    config: SchedulerConfig
    engine: LLMEngine | None = None

    def execute(self, plan: StepPlan) -> StepResult:
        assert plan.num_tokens <= self.config.max_num_batched_tokens
        assert len(plan.rows) <= self.config.max_num_seqs
        assert sum(len(row.prompt_targets or ()) for row in plan.rows) <= self.config.max_logits_rows
        refs = self.engine.blocks._device.ref_counts
        size = self.memory.block_size
        for row in plan.rows:
            assert len(row.token_ids) > 0
            end = row.start + len(row.token_ids)
            assert len(row.block_table) == -(-end // size)
            assert all(refs[block] == 1 for block in row.block_table[row.start // size :])
        destinations = [pair[1] for pair in plan.copy + plan.swap_in]
        assert len(set(destinations)) == len(destinations)
        return self.memory.execute(plan)


@dataclass
class Record:
    """All that came out for one request."""

    outputs: dict[int, list[SequenceOutput]] = field(default_factory=dict)
    prompt_logprobs: list[list] = field(default_factory=list)
    finished: list[RequestFinished] = field(default_factory=list)
    aborted: bool = False
    aborted_indexes: set[int] = field(default_factory=set)

    def tokens(self, index: int) -> list[int]:
        return [token for output in self.outputs.get(index, []) for token in output.token_ids]

    def logprobs(self, index: int) -> list:
        return [entry for output in self.outputs.get(index, []) for entry in output.logprobs or []]

    def ending(self, index: int) -> tuple:
        last = self.outputs[index][-1]
        return last.finish_reason, last.stop_token_id, pytest.approx(last.cumulative_logprob)


def collect(records: dict[str, Record], outputs: StepOutputs) -> None:
    for output in outputs.sequences:
        record = records[output.request_id]
        sequence = record.outputs.setdefault(output.index, [])
        assert not sequence or sequence[-1].finish_reason is None, "output after the last one"
        sequence.append(output)
    for prompt in outputs.prompts:
        record = records[prompt.request_id]
        assert record.prompt_logprobs == []
        record.prompt_logprobs.append(prompt.logprobs)
    for event in outputs.finished:
        records[event.request_id].finished.append(event)


def run_alone(request: AddRequest) -> Record:
    """The request in a large cache without company."""
    config = SchedulerConfig(max_num_batched_tokens=512, max_num_seqs=64, max_model_len=MAX_MODEL_LEN)
    executor = SimulatedExecutor(block_size=8, num_blocks=256, model=MODEL)
    engine = LLMEngine(config, CacheConfig(8, 256, 0, prefix_caching=False), executor, count().__next__)
    engine.add_request(request)
    records = {request.request_id: Record()}
    while engine.has_unfinished_requests():
        collect(records, engine.step())
    return records[request.request_id]


@st.composite
def sampling_params(draw: st.DrawFn) -> SamplingParams:
    beams = draw(st.booleans()) and draw(st.booleans())
    greedy = not beams and draw(st.booleans())
    n = 1 if greedy else draw(st.integers(1, 3))
    max_tokens = draw(st.sampled_from([None, 1, 2, 7, 12, 17, 20]))
    return SamplingParams(
        n=n,
        best_of=None if greedy else draw(st.sampled_from([None, None, n + 1])),
        temperature=0.0 if greedy else 1.0,
        seed=draw(st.integers(0, 3)),
        max_tokens=max_tokens,
        min_tokens=draw(st.integers(0, max_tokens or 3)),
        ignore_eos=draw(st.sampled_from([True, True, False])),
        stop_token_ids=draw(st.sampled_from([(), (), (5,), (EOS, 7)])),
        logprobs=None if beams else draw(st.sampled_from([None, None, 0, 2])),
        prompt_logprobs=draw(st.sampled_from([None, None, None, 0, 1])),
        use_beam_search=beams,
        length_penalty=draw(st.sampled_from([1.0, 0.5, -0.3])),
        early_stopping=draw(st.booleans()),
    )


@st.composite
def prompts(draw: st.DrawFn) -> list[int]:
    """Few different beginnings, so that prefixes are shared."""
    prefix = [draw(st.integers(8, 9))] * draw(st.integers(0, 2)) + [8] * draw(st.sampled_from([0, 7, 16]))
    return prefix + draw(st.lists(st.integers(0, 23), min_size=0 if prefix else 1, max_size=8))


@st.composite
def configs(draw: st.DrawFn) -> tuple[SchedulerConfig, CacheConfig]:
    block_size = draw(st.sampled_from([1, 2, 4, 8]))
    scheduler = SchedulerConfig(
        max_num_batched_tokens=draw(st.integers(5, 40)),
        max_num_seqs=draw(st.integers(5, 10)),
        max_model_len=MAX_MODEL_LEN,
        chunked_prefill=draw(st.booleans()),
        delay_factor=draw(st.sampled_from([0.0, 1.5])),
        long_prefill_token_threshold=draw(st.sampled_from([0, 3])),
        policy=draw(st.sampled_from(SchedulingPolicy)),
        preemption_mode=draw(st.sampled_from(PreemptionMode)),
        watermark=draw(st.sampled_from([0.0, 0.01, 0.1])),
        max_logits_rows=draw(st.integers(1, 16)),
    )
    num_blocks = draw(st.integers(MAX_MODEL_LEN, 2 * MAX_MODEL_LEN)) // block_size
    cache = CacheConfig(block_size, num_blocks, draw(st.integers(0, num_blocks)), draw(st.booleans()))
    return scheduler, cache


class EngineMachine(RuleBasedStateMachine):
    """Requests come, steps run, some are aborted."""

    @initialize(config=configs())
    def start(self, config: tuple[SchedulerConfig, CacheConfig]) -> None:
        scheduler, cache = config
        memory = SimulatedExecutor(cache.block_size, cache.num_blocks, cache.num_host_blocks, MODEL)
        executor = CheckingExecutor(memory, scheduler)
        self.engine = executor.engine = LLMEngine(scheduler, cache, executor, count().__next__)
        self.requests: dict[str, AddRequest] = {}
        self.records: dict[str, Record] = {}

    @rule(
        some=st.lists(st.tuples(prompts(), sampling_params()), min_size=1, max_size=4),
        priority=st.integers(0, 2),
        salt=st.sampled_from([None, None, "a"]),
    )
    def add(self, some: list[tuple[list[int], SamplingParams]], priority: int, salt: str | None) -> None:
        for prompt, params in some:
            request = AddRequest(
                request_id=str(len(self.requests)),
                prompt_token_ids=prompt,
                params=params,
                eos_token_ids=(EOS,),
                priority=priority,
                cache_salt=salt,
            )
            self.requests[request.request_id] = request
            self.records[request.request_id] = Record()
            self.engine.add_request(request)

    @precondition(lambda self: self.requests)
    @rule(data=st.data(), index=st.one_of(st.none(), st.integers(0, 4)))
    def abort(self, data: st.DataObject, index: int | None) -> None:
        request_id = data.draw(st.sampled_from(sorted(self.requests)))
        record = self.records[request_id]
        if index is None:
            record.aborted = True
        else:
            record.aborted_indexes.add(index)
        self.engine.abort_request(request_id, index)
        self.engine.abort_request("never seen", index)

    @rule(num=st.integers(1, 8))
    def step(self, num: int) -> None:
        for _ in range(num):
            if not self.engine.has_unfinished_requests():
                break
            self._step()

    @rule()
    def reset_prefix_cache(self) -> None:
        self.engine.reset_prefix_cache()

    def _step(self) -> None:
        busy = self.engine.scheduler.has_work
        outputs = self.engine.step()
        collect(self.records, outputs)
        assert not busy or outputs.stats.iteration_tokens > 0, "a step without progress"
        self.blocks_are_accounted_for()

    @invariant()
    def blocks_are_accounted_for(self) -> None:
        if not hasattr(self, "engine"):
            return
        blocks = self.engine.blocks
        live = [sequence for group in self.engine._committer.groups.values() for sequence in group.live]
        device = Counter(block for sequence in live for block in sequence.block_table)
        host = Counter(block for sequence in live for block in sequence.host_table)
        assert {b: n for b, n in enumerate(blocks._device.ref_counts) if n} == device
        assert {b: n for b, n in enumerate(blocks._host.ref_counts) if n} == host
        assert blocks.num_free_blocks == blocks.num_blocks - len(device)
        assert blocks.num_free_host_blocks == blocks.num_host_blocks - len(host)
        for sequence in live:
            assert 0 <= sequence.num_computed < len(sequence.token_ids)

    def teardown(self) -> None:
        if not hasattr(self, "engine"):
            return
        for _ in range(20_000):
            if not self.engine.has_unfinished_requests():
                break
            self._step()
        assert not self.engine.has_unfinished_requests()
        assert not self.engine.scheduler.has_work
        assert self.engine.blocks.num_free_blocks == self.engine.blocks.num_blocks
        for request_id, request in self.requests.items():
            self._check(request, self.records[request_id])

    def _with_length(self, request: AddRequest) -> AddRequest:
        """A default length depends on the cache, so it is written down for a run in another one."""
        params, num_prompt, blocks = request.params, len(request.prompt_token_ids), self.engine.blocks
        if params.max_tokens is not None:
            return request
        fits = longest_output(num_prompt, params.num_sequences, blocks.num_blocks, blocks.block_size)
        max_tokens = min(MAX_MODEL_LEN - num_prompt, fits)
        min_tokens = min(params.min_tokens, max_tokens)
        return replace(request, params=replace(params, max_tokens=max_tokens, min_tokens=min_tokens))

    def _check(self, request: AddRequest, record: Record) -> None:
        assert len(record.finished) == 1
        if record.finished[0].reason is FinishReason.ERROR:
            assert not record.outputs
            assert "lower max_tokens" in record.finished[0].error
            return
        expected = run_alone(self._with_length(request))
        for index in expected.outputs:
            given, wanted = record.tokens(index), expected.tokens(index)
            if record.finished[0].reason is FinishReason.ABORT or index in record.aborted_indexes:
                assert given == wanted[: len(given)]
                continue
            assert given == wanted
            assert record.logprobs(index) == expected.logprobs(index)
            assert record.ending(index) == expected.ending(index)
        assert set(record.outputs) <= set(expected.outputs)
        if record.outputs:
            assert record.prompt_logprobs == expected.prompt_logprobs


SHORT = settings(
    max_examples=25,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


def test_every_request_gets_its_tokens_whatever_the_pressure() -> None:
    run_state_machine_as_test(EngineMachine, settings=SHORT)


@pytest.mark.slow
def test_every_request_gets_its_tokens_whatever_the_pressure_in_the_long_form() -> None:
    long = settings(SHORT, max_examples=400, stateful_step_count=50)
    run_state_machine_as_test(EngineMachine, settings=long)
