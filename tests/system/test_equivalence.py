"""Greedy tokens and log-probabilities on the real model are those of `transformers` in float32, whatever the batch, the
cache, the policy and the block size."""

from dataclasses import dataclass

import pytest
import torch

import engines
from octavo_kernels.backend_name import BackendName
from octavo_runtime.engine.config import CacheConfig, SchedulerConfig
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.hub import embedded_model_path, resolve_model
from octavo_runtime.text.tokenizer import Tokenizer

NUM_TOKENS = 16
LOGPROB_TOLERANCE = 1e-3
TEXT = (
    "The harbour was quiet when the first boats came back. Nets hung over the rails, still heavy with weed, and the gulls "
    "kept their distance. On the quay an old man counted crates and wrote the number down in a small book. By noon the "
    "market would be full: fish on ice, baskets of clams, and a queue that reached the church. def area(r): return 3.14 * r "
    "* r  # in square metres. In 1889 the tower was finished; 7 people in 10 had never seen anything so tall. "
)


@dataclass(frozen=True)
class Expected:
    """What transformers says for one prompt."""

    prompt: list[int]
    tokens: list[int]
    logprobs: list[float]


def prompts(tokenizer: Tokenizer, count: int) -> list[list[int]]:
    """Mixed lengths from 1 to some 400 tokens, all different; every third shares its beginning with others."""
    ids = tokenizer.encode(TEXT * 5)
    made = []
    for i in range(count):
        length = 1 + (i * i * 7 + i * 13) % 400 if i % 2 else 1 + (i * 11) % 60
        start = 0 if i % 3 == 0 else (i * 37) % 100
        made.append(ids[start : start + length])
    return made


def ask_transformers(all_prompts: list[list[int]]) -> list[Expected]:
    from transformers import AutoModelForCausalLM, GenerationConfig

    path = embedded_model_path()
    model = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name, dtype=torch.float32).eval()
    model.generation_config = GenerationConfig(do_sample=False, max_new_tokens=NUM_TOKENS, pad_token_id=0)
    expected = []
    with torch.inference_mode():
        for prompt in all_prompts:
            ids = torch.tensor([prompt])
            out = model.generate(
                ids, attention_mask=torch.ones_like(ids), output_logits=True, return_dict_in_generate=True
            )
            tokens = out.sequences[0, len(prompt) :].tolist()
            logits = torch.stack(out.logits)[:, 0].float().log_softmax(-1)
            expected.append(Expected(prompt, tokens, [float(row[t]) for row, t in zip(logits, tokens, strict=True)]))
    return expected


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer.load(resolve_model("embedded"), tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture(scope="module")
def expected_few(tokenizer: Tokenizer) -> list[Expected]:
    return ask_transformers(prompts(tokenizer, 12))


@pytest.fixture(scope="module")
def expected_many(tokenizer: Tokenizer) -> list[Expected]:
    return ask_transformers(prompts(tokenizer, 100))


@pytest.fixture(scope="module", params=[8, 16, 32])
def worker(request: pytest.FixtureRequest) -> tuple[engines.Worker, engines.WorkerReady]:
    return engines.start_worker(request.param)


def check(worker, expected: list[Expected], scheduler: SchedulerConfig, prefix_caching: bool) -> None:  # type: ignore[no-untyped-def]
    running, ready = worker
    cache = CacheConfig(block_size=ready.block_size, num_blocks=ready.num_blocks, prefix_caching=prefix_caching)
    engine = engines.make_engine(running, scheduler, cache)
    params = SamplingParams(temperature=0, max_tokens=NUM_TOKENS, logprobs=0, ignore_eos=True)
    for _ in range(2 if prefix_caching else 1):  # the second round finds its prompts in the cache
        answers = engines.run(engine, [(e.prompt, params) for e in expected]).answers
        for answer, want in zip(answers, expected, strict=True):
            assert answer.tokens == {0: want.tokens}
            got = torch.tensor([entry.logprob for entry in answer.logprobs])
            torch.testing.assert_close(got, torch.tensor(want.logprobs), atol=LOGPROB_TOLERANCE, rtol=0)


def test_greedy_tokens_are_those_of_transformers_short_form(worker, expected_few: list[Expected]) -> None:  # type: ignore[no-untyped-def]
    scheduler = SchedulerConfig(max_model_len=8192, max_num_seqs=7, max_num_batched_tokens=256)
    check(worker, expected_few, scheduler, prefix_caching=True)


@pytest.mark.slow
@pytest.mark.parametrize("batch", [1, 7, 32])
@pytest.mark.parametrize("prefix_caching", [True, False])
@pytest.mark.parametrize("chunked", [True, False])
def test_greedy_tokens_are_those_of_transformers(
    worker, expected_many, batch: int, prefix_caching: bool, chunked: bool
) -> None:  # type: ignore[no-untyped-def]
    scheduler = SchedulerConfig(
        max_model_len=8192, max_num_seqs=batch, max_num_batched_tokens=256 if chunked else 2048, chunked_prefill=chunked
    )
    check(worker, expected_many, scheduler, prefix_caching)


@pytest.mark.slow
@pytest.mark.parametrize("backend", [BackendName.REFERENCE, BackendName.TORCH_CPU], ids=lambda value: value.name)
def test_torch_fallback_and_reference_agree_with_transformers(
    expected_few: list[Expected], backend: BackendName
) -> None:
    scheduler = SchedulerConfig(max_model_len=8192, max_num_seqs=12)
    check(engines.start_worker(16, backend), expected_few[:3], scheduler, prefix_caching=False)
