"""End tokens and sampling defaults from a model's files."""

import json
from pathlib import Path

import pytest

from octavo_runtime.hub import ModelKind, ModelSource
from octavo_runtime.text.generation_defaults import generation_defaults


def source(config: dict[str, object], generation: dict[str, object]) -> ModelSource:
    return ModelSource("m", Path("m"), ModelKind.SAFETENSORS, config, generation)


def test_generation_config_goes_before_config_and_lists_are_kept() -> None:
    found = generation_defaults(source({"eos_token_id": 5}, {"eos_token_id": [7, 8]}), 8)
    assert found.eos_token_ids == (7, 8)
    assert generation_defaults(source({"eos_token_id": 5}, {}), 2).eos_token_ids == (5, 2)


def test_sampling_values_take_the_names_of_requests() -> None:
    file = {"temperature": 0.6, "top_k": 20, "max_new_tokens": 64, "do_sample": True, "top_p": None}
    assert generation_defaults(source({}, file), None).sampling == {"temperature": 0.6, "top_k": 20, "max_tokens": 64}


@pytest.mark.parametrize("choice", ["vllm", "folder"])
def test_choice_leaves_the_models_values_out(choice: str, tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text(json.dumps({"temperature": 0.1, "eos_token_id": 4}))
    made = generation_defaults(
        source({}, {"temperature": 0.6, "eos_token_id": 7}), None, "vllm" if choice == "vllm" else str(tmp_path)
    )
    assert made.sampling == ({} if choice == "vllm" else {"temperature": 0.1})
    assert made.eos_token_ids == ((7,) if choice == "vllm" else (4,))


def test_gguf_names_several_end_tokens() -> None:
    config = {"tokenizer.ggml.eos_token_id": 1, "tokenizer.ggml.eot_token_id": 9}
    made = generation_defaults(ModelSource("m", Path("m.gguf"), ModelKind.GGUF, config, {}), 1)
    assert made.eos_token_ids == (1, 9)
