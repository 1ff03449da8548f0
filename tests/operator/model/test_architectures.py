import pytest

from octavo_operator.model.architectures import SERVED, SERVED_IN_GGUF, served_architecture, served_gguf_architecture
from octavo_operator.model.problem import ModelProblem
from octavo_operator.reasons import Reason


def test_the_first_architecture_that_is_served_counts() -> None:
    assert served_architecture(["Unknown", "Qwen3ForCausalLM", "LlamaForCausalLM"], "x") == "Qwen3ForCausalLM"


@pytest.mark.parametrize("names", [[], ["MambaForCausalLM"]])
def test_an_unknown_architecture_is_refused_with_the_list_of_those_served(names: list[str]) -> None:
    with pytest.raises(ModelProblem) as caught:
        served_architecture(names, "org/name: config.json")
    assert caught.value.reason is Reason.MODEL_UNSUPPORTED
    assert "org/name" in caught.value.message
    assert all(name in caught.value.message for name in SERVED)


def test_gguf_names_stand_for_the_same_architectures() -> None:
    assert set(SERVED_IN_GGUF.values()) <= set(SERVED)
    assert served_gguf_architecture("llama", "x") == "LlamaForCausalLM"
    for name in ("mamba", None, ["llama"]):
        with pytest.raises(ModelProblem, match="qwen2"):
            served_gguf_architecture(name, "x")
