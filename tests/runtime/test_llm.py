"""The offline face with the real embedded model."""

import subprocess
import sys

import pytest

from octavo_runtime import LLM, SamplingParams
from octavo_runtime.errors import InvalidRequestError, StartCause, StartError

GREEDY = SamplingParams(temperature=0.0, max_tokens=8)
FRANCE = "The capital of France is"
FIELDS = ("max_tokens", "min_tokens")


@pytest.fixture(scope="module")
def llm(tmp_path_factory: pytest.TempPathFactory) -> LLM:
    return LLM(
        model="embedded",
        tensor_parallel_size=1,
        kv_cache_memory_bytes="32MiB",
        max_model_len=512,
        max_num_batched_tokens=256,
        cache_dir=tmp_path_factory.getbasetemp() / "octavo-cache",
    )


def test_first_example_of_the_seeds(llm: LLM) -> None:
    outputs = llm.generate([FRANCE, "Water boils at"], GREEDY)
    assert outputs[0].outputs[0].text.startswith(" Paris")
    assert outputs[1].prompt == "Water boils at"
    assert [output.outputs[0].finish_reason for output in outputs] == ["length", "length"]


def test_prompt_forms_are_equal(llm: LLM) -> None:
    ids = llm.get_tokenizer().encode(FRANCE)
    forms = [FRANCE, ids, {"prompt": FRANCE}, {"prompt_token_ids": ids}]
    texts = [llm.generate(form, GREEDY, use_tqdm=False)[0].outputs[0].text for form in forms]
    assert len(set(texts)) == 1


def test_chat_uses_the_models_template(llm: LLM) -> None:
    question = [{"role": "user", "content": "What is the capital of France?"}]
    (output,) = llm.chat(question, SamplingParams(temperature=0.0, max_tokens=16), use_tqdm=False)
    assert "Paris" in output.outputs[0].text
    assert len(llm.chat([question, question], GREEDY, use_tqdm=False)) == 2


def test_stream_equals_generate(llm: LLM) -> None:
    params = SamplingParams(temperature=0.0, max_tokens=12, stop=("\n",))
    whole = llm.generate(FRANCE, params, use_tqdm=False)[0].outputs[0].text
    assert "".join(llm.stream(FRANCE, params)) == whole


def test_seed_repeats_and_n_differs(llm: LLM) -> None:
    params = SamplingParams(n=3, temperature=1.5, max_tokens=8, seed=7)
    first, second = (llm.generate(FRANCE, params, use_tqdm=False)[0] for _ in range(2))
    assert [output.text for output in first.outputs] == [output.text for output in second.outputs]
    assert len({output.text for output in first.outputs}) > 1


def test_stop_may_be_a_plain_string_and_bad_words_never_come(llm: LLM) -> None:
    params = SamplingParams(temperature=0.0, max_tokens=8, stop="Paris")  # type: ignore[arg-type]
    (stopped,) = llm.generate(FRANCE, params, use_tqdm=False)[0].outputs
    assert (stopped.text, stopped.stop_reason) == (" ", "Paris")
    params = SamplingParams(temperature=0.0, max_tokens=8, bad_words=("Paris",))
    assert "Paris" not in llm.generate(FRANCE, params, use_tqdm=False)[0].outputs[0].text


def test_one_params_for_each_prompt(llm: LLM) -> None:
    params = [SamplingParams(temperature=0.0, max_tokens=count) for count in (1, 3)]
    outputs = llm.generate([FRANCE, FRANCE], params, use_tqdm=False)
    assert [len(output.outputs[0].token_ids) for output in outputs] == [1, 3]
    with pytest.raises(InvalidRequestError, match="one per prompt"):
        llm.generate([FRANCE], params)


def test_generate_stops_at_sixteen_tokens_and_chat_at_the_end_unless_told(llm: LLM) -> None:
    greedy = SamplingParams(temperature=0.0, ignore_eos=True)
    given = [greedy, *(SamplingParams(temperature=0.0, ignore_eos=True, **{field: 18}) for field in FIELDS)]
    outputs = llm.generate([FRANCE] * 3, given, use_tqdm=False)
    assert [len(output.outputs[0].token_ids) for output in outputs] == [16, 18, 18]
    question = [{"role": "user", "content": "word " * 440}]
    whole = llm.chat(question, SamplingParams(temperature=0.0, ignore_eos=True), use_tqdm=False)[0]
    assert len(whole.prompt_token_ids) + len(whole.outputs[0].token_ids) == 512


def test_a_prompt_is_cut_to_its_last_tokens(llm: LLM) -> None:
    ids = llm.get_tokenizer().encode("word " * 600 + FRANCE)
    params = [SamplingParams(temperature=0.0, max_tokens=2, truncate_prompt_tokens=keep) for keep in (3, -1)]
    outputs = llm.generate([ids, ids], params, use_tqdm=False)
    assert [list(output.prompt_token_ids) for output in outputs] == [ids[-3:], ids[-510:]]
    assert "".join(llm.stream(ids, params[0])) == outputs[0].outputs[0].text
    for keep, said in ((512, "context"), (513, "truncate_prompt_tokens must be at most")):
        with pytest.raises(InvalidRequestError, match=said):
            llm.generate([ids], SamplingParams(truncate_prompt_tokens=keep), use_tqdm=False)


def test_seed_of_the_engine_repeats_what_has_no_seed(tmp_path_factory: pytest.TempPathFactory) -> None:
    def texts() -> list[str]:
        made = LLM(
            "embedded",
            seed=7,
            kv_cache_memory_bytes="8MiB",
            max_model_len=64,
            max_num_batched_tokens=64,
            cache_dir=tmp_path_factory.getbasetemp() / "octavo-cache",
        )
        params = SamplingParams(temperature=2.0, max_tokens=8, n=2)
        outputs = made.generate([FRANCE, FRANCE], params, use_tqdm=False)
        return [one.text for output in outputs for one in output.outputs]

    first = texts()
    assert first == texts()
    assert len(set(first)) == 4


def test_log_probabilities_are_reported(llm: LLM) -> None:
    params = SamplingParams(temperature=0.0, max_tokens=2, logprobs=3, prompt_logprobs=1)
    output = llm.generate(FRANCE, params, use_tqdm=False)[0]
    assert output.prompt_logprobs is not None
    assert len(output.prompt_logprobs) == len(output.prompt_token_ids)
    places = output.outputs[0].logprobs
    assert places is not None
    assert [len(place) for place in places] == [3, 3]


@pytest.mark.parametrize("prompt", ["", [-1], [10**6], {"text": "x"}, "word " * 600])
def test_wrong_prompt_is_refused_and_the_next_one_runs(llm: LLM, prompt: object) -> None:
    with pytest.raises(InvalidRequestError):
        llm.generate([prompt], GREEDY, use_tqdm=False)  # type: ignore[list-item]
    assert llm.generate(FRANCE, GREEDY, use_tqdm=False)[0].finished


def test_streaming_several_sequences_is_refused(llm: LLM) -> None:
    with pytest.raises(InvalidRequestError, match="n must be 1"):
        llm.stream(FRANCE, SamplingParams(n=2))


@pytest.mark.parametrize(
    ("flags", "cause"),
    [
        ({"model": "/no/such/model"}, StartCause.MODEL_NOT_FOUND),
        ({"model": "embedded", "no_such_flag": 1}, StartCause.INVALID_SETTINGS),
        ({"model": "embedded", "tensor_parallel_size": 2}, StartCause.PARALLELISM_UNSUPPORTED),
    ],
)
def test_wrong_start_has_a_cause(flags: dict[str, object], cause: StartCause) -> None:
    with pytest.raises(StartError) as caught:
        LLM(**flags)  # type: ignore[arg-type]
    assert caught.value.cause is cause


def test_package_import_costs_no_torch() -> None:
    code = (
        "import sys, octavo_runtime; from octavo_runtime import LLM, SamplingParams; sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
