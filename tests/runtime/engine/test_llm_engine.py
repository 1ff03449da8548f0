from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from octavo_runtime.engine.config import CacheConfig, PreemptionMode, SchedulerConfig, SchedulingPolicy
from octavo_runtime.engine.llm_engine import LLMEngine
from octavo_runtime.engine.messages import AddRequest, FinishReason
from octavo_runtime.engine.plan import StepPlan, StepResult
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.engine.seeds import uniform

MakeEngine = Callable[..., Any]


def greedy(harness: Any, prompt: list[int], num_tokens: int, banned: tuple[int, ...] = ()) -> list[int]:
    """What the simulated model generates, computed without an engine."""
    tokens = prompt.copy()
    for _ in range(num_tokens):
        tokens.append(harness.model.token(harness.model.context(tokens), 0.0, banned))
    return tokens[len(prompt) :]


def test_greedy_tokens_are_the_models(make_engine: MakeEngine) -> None:
    harness = make_engine()
    harness.add("a", [1, 2, 3], max_tokens=9)
    harness.run()
    assert harness.tokens["a", 0] == greedy(harness, [1, 2, 3], 9)
    assert harness.finished["a"].reason is FinishReason.LENGTH


def test_seeded_tokens_depend_on_seed_index_and_position_only(make_engine: MakeEngine) -> None:
    alone, crowd = make_engine(), make_engine(max_num_batched_tokens=7)
    alone.add("x", [1, 2, 3], n=2, seed=5, temperature=1.0)
    for number in range(5):
        crowd.add(str(number), [9] * (number + 1), temperature=1.0)
    crowd.add("x", [1, 2, 3], n=2, seed=5, temperature=1.0)
    alone.run()
    crowd.run()
    for index in range(2):
        assert alone.tokens["x", index] == crowd.tokens["x", index]
        context = alone.model.context([1, 2, 3])
        assert alone.tokens["x", index][0] == alone.model.token(context, uniform(5, index, 0))


def test_without_a_seed_two_requests_differ(make_engine: MakeEngine) -> None:
    harness = make_engine()
    for name in "ab":
        harness.add(name, [1], temperature=1.0, max_tokens=20)
    harness.run()
    assert harness.tokens["a", 0] != harness.tokens["b", 0]


def test_a_prompt_is_computed_once_for_all_of_its_sequences(make_engine: MakeEngine) -> None:
    harness = make_engine()
    harness.add("a", [1] * 10, n=4, temperature=1.0, max_tokens=2)
    harness.run()
    assert [plan.num_tokens for plan in harness.plans] == [10, 4]
    assert len(harness.plans[0].rows[0].sampling.uniforms) == 4
    assert len(harness.plans[1].copy) == 3


def test_eos_ends_a_sequence_and_is_its_last_token(make_engine: MakeEngine) -> None:
    probe = make_engine()
    third = greedy(probe, [1, 2], 3)[2]
    harness = make_engine()
    harness.add("eos", [1, 2], eos_token_ids=(third,), max_tokens=9)
    harness.add("stop", [1, 2], stop_token_ids=(third,), max_tokens=9)
    harness.add("ignored", [1, 2], eos_token_ids=(third,), ignore_eos=True, max_tokens=9)
    harness.run()
    assert harness.tokens["eos", 0] == harness.tokens["stop", 0] == greedy(probe, [1, 2], 3)
    assert len(harness.tokens["ignored", 0]) == 9
    last = {output.request_id: output for step in harness.outputs for output in step.sequences}
    assert (last["eos"].finish_reason, last["eos"].stop_token_id) == (FinishReason.STOP, None)
    assert (last["stop"].finish_reason, last["stop"].stop_token_id) == (FinishReason.STOP, third)


def test_terminators_are_banned_until_min_tokens_is_reached(make_engine: MakeEngine) -> None:
    harness = make_engine()
    first = greedy(harness, [1, 2], 1)[0]
    harness.add("a", [1, 2], eos_token_ids=(first,), min_tokens=3, max_tokens=5)
    harness.run()
    banned = [plan.rows[0].sampling.banned_token_ids for plan in harness.plans]
    assert banned[:3] == [(first,)] * 3
    assert not any(banned[3:])
    assert first not in harness.tokens["a", 0][:3]


def test_without_max_tokens_the_context_is_the_limit(make_engine: MakeEngine) -> None:
    harness = make_engine(max_model_len=16)
    harness.add("a", [1] * 6, max_tokens=None)
    harness.run()
    assert len(harness.tokens["a", 0]) == 10
    assert harness.finished["a"].reason is FinishReason.LENGTH


@pytest.mark.parametrize(
    ("prompt", "fields", "says"),
    [
        ([], {}, "empty"),
        ([-1], {}, "lacks"),
        ([2**40], {}, "lacks"),
        ([1] * 64, {}, "64 tokens"),
        ([1], {"n": 200, "temperature": 1.0}, "lower n or best_of"),
        ([1], {"n": 9, "use_beam_search": True}, "9 beams"),
        ([1] * 8, {"n": 8, "temperature": 1.0, "max_tokens": 50}, "may need 424 tokens of KV cache"),
    ],
)
def test_a_request_that_can_never_run_ends_with_an_error_and_nothing_else(
    make_engine: MakeEngine, prompt: list[int], fields: dict[str, Any], says: str
) -> None:
    harness = make_engine(max_num_batched_tokens=8)
    harness.add("bad", prompt, **fields)
    harness.add("good", [1])
    harness.run()
    assert harness.finished["bad"].reason is FinishReason.ERROR
    assert says in harness.finished["bad"].error
    assert harness.finished["good"].reason is FinishReason.LENGTH
    assert len(harness.finished) == 2


def test_a_request_id_in_use_is_refused_and_free_again_afterwards(make_engine: MakeEngine) -> None:
    harness = make_engine()
    harness.add("a", [1])
    with pytest.raises(ValueError, match="in use"):
        harness.add("a", [1])
    harness.run()
    harness.add("a", [1])


@pytest.mark.parametrize("num_steps", [0, 1, 3])
def test_an_abort_ends_the_request_once_and_frees_everything(make_engine: MakeEngine, num_steps: int) -> None:
    harness = make_engine(max_num_batched_tokens=8)
    harness.add("a", [1] * 12, n=3, temperature=1.0, max_tokens=20)
    for _ in range(num_steps):
        harness.step()
    for _ in range(2):
        harness.engine.abort_request("a")
    harness.engine.abort_request("unknown")
    assert harness.engine.blocks.num_free_blocks == 64
    harness.run()
    assert [event.reason for step in harness.outputs for event in step.finished] == [FinishReason.ABORT]


def test_an_abort_by_index_ends_one_sequence_and_the_last_one_the_request(make_engine: MakeEngine) -> None:
    harness = make_engine()
    harness.add("a", [1] * 5, n=2, temperature=1.0, max_tokens=20)
    harness.step()
    harness.engine.abort_request("a", 0)
    harness.engine.abort_request("a", 0)
    harness.engine.abort_request("a", 7)
    harness.step()
    assert len(harness.tokens["a", 0]) == 1
    assert len(harness.tokens["a", 1]) == 2
    harness.engine.abort_request("a", 1)
    harness.run()
    assert harness.finished["a"].reason is FinishReason.STOP


def test_logprobs_are_sent_only_if_asked_but_summed_for_best_of(make_engine: MakeEngine) -> None:
    harness = make_engine()
    harness.add("best", [1, 2], n=1, best_of=2, temperature=1.0, max_tokens=3)
    harness.add("asked", [1, 2], logprobs=1, max_tokens=3)
    harness.run()
    outputs = [output for step in harness.outputs for output in step.sequences]
    assert all(output.logprobs is None for output in outputs if output.request_id == "best")
    assert all(output.cumulative_logprob < 0 for output in outputs if output.request_id == "best")
    asked = [output for output in outputs if output.request_id == "asked"]
    entries = [entry for output in asked for entry in output.logprobs]
    assert asked[-1].cumulative_logprob == pytest.approx(sum(entry.logprob for entry in entries))
    assert {key for key in harness.tokens if key[0] == "best"} == {("best", 0), ("best", 1)}


@pytest.mark.parametrize("max_logits_rows", [1, 3, 256])
def test_prompt_logprobs_come_whole_and_before_the_first_token(make_engine: MakeEngine, max_logits_rows: int) -> None:
    harness = make_engine(max_logits_rows=max_logits_rows)
    prompt = [5, 6, 7, 8, 9, 10, 11]
    harness.add("warm", prompt)
    harness.run()
    harness.add("a", prompt, prompt_logprobs=2)
    harness.run()
    (index,) = [number for number, step in enumerate(harness.outputs) if step.prompts]
    (message,) = harness.outputs[index].prompts
    assert [entry.token_id for entry in message.logprobs] == prompt[1:]
    assert all(len(entry.top) == 2 for entry in message.logprobs)
    assert [step for step in harness.outputs[:index] if any(out.request_id == "a" for out in step.sequences)] == []
    assert harness.finished["a"].num_cached_tokens == 0


def test_beams_are_delivered_at_the_end_best_first(make_engine: MakeEngine) -> None:
    harness = make_engine()
    harness.add("a", [1, 2, 3], n=2, best_of=3, use_beam_search=True, temperature=1.0, max_tokens=4)
    harness.run()
    sending = [step for step in harness.outputs if step.sequences]
    assert len(sending) == 1
    best, second = sending[0].sequences
    assert (best.index, second.index) == (0, 1)
    assert best.cumulative_logprob >= second.cumulative_logprob
    assert len(best.token_ids) == len(second.token_ids) == 4
    assert best.token_ids != second.token_ids


def run_sixty_four(harness: Any) -> None:
    """Requests of all kinds, all at once."""
    for number in range(64):
        kind = [{}, {"n": 4}, {"n": 2, "use_beam_search": True}, {"n": 1, "best_of": 2}][number % 4]
        fields = {"temperature": 1.0, "seed": number, "max_tokens": 16, "priority": number % 3} | kind
        harness.add(str(number), [number % 7 + 1] * (4 + number % 9), **fields)
    harness.run()


@pytest.fixture(scope="module")
def tokens_without_pressure(make_engine: MakeEngine) -> dict[tuple[str, int], list[int]]:
    harness = make_engine(num_blocks=4096, max_num_seqs=512, max_num_batched_tokens=4096)
    run_sixty_four(harness)
    return harness.tokens


@pytest.mark.parametrize("policy", SchedulingPolicy)
@pytest.mark.parametrize("mode", PreemptionMode)
@pytest.mark.parametrize("chunked", [True, False])
def test_a_cache_for_eight_serves_sixty_four_with_the_same_tokens(
    make_engine: MakeEngine,
    tokens_without_pressure: dict[tuple[str, int], list[int]],
    policy: SchedulingPolicy,
    mode: PreemptionMode,
    chunked: bool,
) -> None:
    harness = make_engine(
        num_blocks=8 * 6,
        num_host_blocks=24,
        max_num_batched_tokens=32,
        max_num_seqs=32,
        policy=policy,
        preemption_mode=mode,
        chunked_prefill=chunked,
    )
    run_sixty_four(harness)
    assert harness.tokens == tokens_without_pressure
    assert len(harness.finished) == 64
    assert harness.engine.blocks.num_free_blocks == 8 * 6
    assert harness.engine.blocks.num_free_host_blocks == 24
    assert harness.outputs[-1].stats.num_preemptions > 10


def test_cached_tokens_and_statistics_are_reported(make_engine: MakeEngine) -> None:
    harness = make_engine()
    harness.add("a", [1] * 9, max_tokens=3)
    harness.run()
    harness.add("b", [1] * 9, max_tokens=3)
    harness.run()
    event, stats = harness.finished["b"], harness.outputs[-1].stats
    assert (event.num_prompt_tokens, event.num_cached_tokens, event.num_generation_tokens) == (9, 8, 3)
    assert (stats.prompt_tokens, stats.generation_tokens) == (18, 6)
    assert (stats.prefix_cache_queries, stats.prefix_cache_hits) == (18, 8)
    assert (stats.num_running, stats.kv_cache_usage, stats.num_free_blocks) == (0, 0.0, 64)
    assert event.queue_time > 0
    assert event.prefill_time > 0
    assert event.decode_time > 0


def test_a_reset_cache_gives_no_hits(make_engine: MakeEngine) -> None:
    harness = make_engine()
    harness.add("a", [1] * 9)
    harness.run()
    harness.engine.reset_prefix_cache()
    harness.add("b", [1] * 9)
    harness.run()
    assert harness.finished["b"].num_cached_tokens == 0


def test_the_executors_exception_leaves_the_step() -> None:
    class Broken:
        def execute(self, plan: StepPlan) -> StepResult:
            raise RuntimeError(f"device lost at {plan.num_tokens} tokens")

    engine = LLMEngine(SchedulerConfig(), CacheConfig(4, 64), Broken(), count().__next__)
    engine.add_request(AddRequest(request_id="a", prompt_token_ids=[1], params=SamplingParams(max_tokens=2)))
    with pytest.raises(RuntimeError, match="device lost"):
        engine.step()


def test_an_idle_engine_runs_nothing(make_engine: MakeEngine) -> None:
    harness = make_engine()
    assert not harness.engine.has_unfinished_requests()
    assert harness.step().stats.iteration_tokens == 0
    assert harness.plans == []
