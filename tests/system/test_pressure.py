"""A cache for 8 sequences and 64 requests, some with four samples, some with beams: all finish, with the tokens they have
without pressure, and leave every block free."""

import pytest

import engines
from octavo_runtime.engine.config import CacheConfig, PreemptionMode, SchedulerConfig, SchedulingPolicy
from octavo_runtime.engine.messages import FinishReason
from octavo_runtime.engine.sampling_params import SamplingParams

NUM_REQUESTS = 64
BLOCK_SIZE = 16
SEQUENCE_TOKENS = 96  # the longest prompt and output together
SEQUENCES_THAT_FIT = 8

Request = tuple[list[int], SamplingParams]


@pytest.fixture(scope="module")
def worker() -> tuple[engines.Worker, engines.WorkerReady]:
    return engines.start_worker(BLOCK_SIZE)


def requests() -> list[Request]:
    """Prompts of 5 to 60 token ids; every seventh asks for four samples, every ninth for three beams."""
    made: list[Request] = []
    for i in range(NUM_REQUESTS):
        prompt = [500 + (i * 31 + k * 17) % 9000 for k in range(5 + (i * 23) % 56)]
        length = 12 + (i * 5) % 24
        if i % 7 == 3:
            params = SamplingParams(n=4, temperature=0.8, seed=i, max_tokens=length, ignore_eos=True)
        elif i % 9 == 4:
            params = SamplingParams(n=2, best_of=3, use_beam_search=True, max_tokens=length)
        else:
            params = SamplingParams(temperature=0.7 if i % 2 else 0, seed=i, max_tokens=length, ignore_eos=True)
        made.append((prompt, params))
    return made


def run(  # type: ignore[no-untyped-def]
    worker, scheduler: SchedulerConfig, num_blocks: int, num_host_blocks: int, priorities: list[int]
) -> tuple[list[dict[int, list[int]]], int]:
    """Tokens per request and the number of preemptions."""
    cache = CacheConfig(
        block_size=BLOCK_SIZE, num_blocks=num_blocks, num_host_blocks=num_host_blocks, prefix_caching=True
    )
    engine = engines.make_engine(worker[0], scheduler, cache)
    done = engines.run(engine, requests(), priorities)
    assert all(answer.num_finished == 1 for answer in done.answers)
    assert all(answer.reason in (FinishReason.LENGTH, FinishReason.STOP) for answer in done.answers)
    assert done.stats.num_free_blocks == num_blocks
    return [answer.tokens for answer in done.answers], done.stats.num_preemptions


@pytest.fixture(scope="module")
def without_pressure(worker) -> list[dict[int, list[int]]]:  # type: ignore[no-untyped-def]
    scheduler = SchedulerConfig(max_model_len=2048, max_num_seqs=256)
    tokens, preemptions = run(worker, scheduler, worker[1].num_blocks, 0, [])
    assert preemptions == 0
    return tokens


def check_under_pressure(  # type: ignore[no-untyped-def]
    worker, wanted: list[dict[int, list[int]]], policy: SchedulingPolicy, mode: PreemptionMode, chunked: bool
) -> None:
    scheduler = SchedulerConfig(
        max_model_len=2048, max_num_seqs=256, policy=policy, preemption_mode=mode, chunked_prefill=chunked
    )
    num_blocks = SEQUENCES_THAT_FIT * SEQUENCE_TOKENS // BLOCK_SIZE
    priorities = [(i * 7) % 5 for i in range(NUM_REQUESTS)] if policy is SchedulingPolicy.PRIORITY else []
    host_blocks = 64 if mode is PreemptionMode.SWAP else 0
    tokens, preemptions = run(worker, scheduler, num_blocks, host_blocks, priorities)
    assert preemptions > 0
    assert tokens == wanted


@pytest.mark.slow
@pytest.mark.parametrize("policy", list(SchedulingPolicy))
@pytest.mark.parametrize("mode", [PreemptionMode.RECOMPUTE, PreemptionMode.SWAP])
@pytest.mark.parametrize("chunked", [True, False])
def test_everything_finishes_under_pressure_with_the_same_tokens(  # type: ignore[no-untyped-def]
    worker, without_pressure, policy: SchedulingPolicy, mode: PreemptionMode, chunked: bool
) -> None:
    check_under_pressure(worker, without_pressure, policy, mode, chunked)


@pytest.mark.parametrize(
    ("policy", "mode", "chunked"),
    [
        (SchedulingPolicy.FCFS, PreemptionMode.RECOMPUTE, True),
        (SchedulingPolicy.PRIORITY, PreemptionMode.SWAP, False),
    ],
)
def test_everything_finishes_under_pressure_short_form(  # type: ignore[no-untyped-def]
    worker, without_pressure, policy: SchedulingPolicy, mode: PreemptionMode, chunked: bool
) -> None:
    check_under_pressure(worker, without_pressure, policy, mode, chunked)
