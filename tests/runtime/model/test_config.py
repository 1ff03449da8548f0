import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.config import Architecture, RopeScaling, parse_config, read_config

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "vocab_size": 100,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "rope_theta": 500000.0,
}


def test_missing_optional_fields_take_the_defaults_of_the_architecture() -> None:
    config = parse_config(LLAMA, "config.json")
    assert (config.num_kv_heads, config.head_dim, config.rope.theta) == (4, 16, 500000.0)
    assert config.windows == (None, None, None)
    assert not any((config.qkv_bias, config.o_bias, config.qk_norm, config.tie_word_embeddings))


def test_rope_of_old_and_new_config_files_is_the_same() -> None:
    scaling = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "original_max_position_embeddings": 512}
    old = parse_config({**LLAMA, "rope_scaling": scaling}, "config.json")
    new = parse_config(
        {**LLAMA, "rope_theta": None, "rope_parameters": {**scaling, "rope_theta": 500000.0}}, "config.json"
    )
    assert old.rope == new.rope
    assert old.rope.scaling is RopeScaling.LLAMA3


@pytest.mark.parametrize("architecture", ["MistralForCausalLM", "Qwen2ForCausalLM"])
def test_the_window_counts_in_every_layer_of_mistral_and_not_in_qwen_unless_asked(architecture: str) -> None:
    config = parse_config({**LLAMA, "architectures": [architecture], "sliding_window": 32}, "config.json")
    window = 32 if config.architecture is Architecture.MISTRAL else None
    assert config.windows == (window,) * 3


@pytest.mark.parametrize(
    ("change", "cause", "message"),
    [
        ({"architectures": ["Mamba"]}, StartCause.MODEL_UNSUPPORTED, "Mamba is not supported; supported are Llama"),
        ({"architectures": None}, StartCause.MODEL_UNSUPPORTED, "not supported"),
        ({"hidden_act": "gelu"}, StartCause.MODEL_UNSUPPORTED, "only silu"),
        ({"quantization_config": {"quant_method": "awq"}}, StartCause.QUANTIZATION_UNSUPPORTED, "quantized as awq"),
        ({"quantization_config": "odd"}, StartCause.QUANTIZATION_UNSUPPORTED, "in an unknown format"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 4}}, StartCause.MODEL_UNSUPPORTED, "'yarn' is not supported"),
        ({"partial_rotary_factor": 0.5}, StartCause.MODEL_UNSUPPORTED, "part of each head"),
        ({"num_hidden_layers": None}, StartCause.MODEL_CORRUPT, "num_hidden_layers must be a positive integer"),
        ({"vocab_size": "many"}, StartCause.MODEL_CORRUPT, "vocab_size must be a positive integer"),
        ({"num_key_value_heads": 3}, StartCause.MODEL_CORRUPT, "cannot share"),
        ({"head_dim": 15}, StartCause.MODEL_CORRUPT, "odd"),
    ],
)  # fmt: skip
def test_what_cannot_run_is_refused_in_one_sentence(change: dict[str, Any], cause: StartCause, message: str) -> None:
    with pytest.raises(StartError, match=message) as caught:
        parse_config({**LLAMA, **change}, "config.json")
    assert caught.value.cause is cause
    assert "\n" not in str(caught.value)


def test_a_folder_without_config_says_what_to_give(tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"no config\.json") as caught:
        read_config(tmp_path)
    assert caught.value.cause is StartCause.MODEL_NOT_FOUND


@pytest.mark.parametrize("content", ["{", "[]", json.dumps([LLAMA])])
def test_a_broken_config_file_is_corrupt(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(StartError) as caught:
        read_config(tmp_path)
    assert caught.value.cause is StartCause.MODEL_CORRUPT


def test_a_config_that_may_not_be_read_is_named(tmp_path: Path, forbid: Callable[[str], None]) -> None:
    (tmp_path / "config.json").write_text("{}")
    forbid("config.json")
    with pytest.raises(StartError, match=r"config\.json may not be read by this user") as caught:
        read_config(tmp_path)
    assert caught.value.cause is StartCause.MODEL_NOT_FOUND
