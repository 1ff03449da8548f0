import pytest

from octavo_runtime.model.config import Architecture, parse_config
from octavo_runtime.model.dtype import ModelDtype
from octavo_runtime.model.memory_plan import activation_bytes, count_parameters, plan_memory
from octavo_runtime.testing import build_tiny_model


@pytest.mark.parametrize("architecture", list(Architecture), ids=lambda value: value.name)
@pytest.mark.parametrize("biases", [False, True])
def test_parameters_are_counted_as_torch_counts_them(architecture: Architecture, biases: bool) -> None:
    model = build_tiny_model(architecture, attention_bias=biases, mlp_bias=biases)
    config = parse_config({**model.config.to_dict(), "architectures": [architecture.value]}, "")
    assert count_parameters(config) == sum(parameter.numel() for parameter in model.parameters())


def test_cache_and_context_follow_from_each_other() -> None:
    model = build_tiny_model(Architecture.QWEN3)
    config = parse_config({**model.config.to_dict(), "architectures": ["Qwen3ForCausalLM"]}, "")
    plan = plan_memory(config, ModelDtype.BFLOAT16, block_size=16)
    assert plan.block_bytes == 2 * 2 * 2 * 32 * 16 * 2  # K and V, layers, heads, head_dim, tokens, bytes
    assert plan.cache_bytes(17) == 2 * plan.block_bytes
    assert plan.longest_context(3 * plan.block_bytes - 1) == 32
    assert plan.longest_context(10**12) == config.max_positions
    assert activation_bytes(config, 10, 2) > 4 * 2 * config.vocab_size


def test_weights_that_the_backend_widens_are_counted_wide_and_the_cache_is_not() -> None:
    model = build_tiny_model(Architecture.LLAMA)
    config = parse_config({**model.config.to_dict(), "architectures": ["LlamaForCausalLM"]}, "")
    plan = plan_memory(config, ModelDtype.BFLOAT16, 16, weight_itemsize=4)
    assert plan.weight_bytes == 4 * count_parameters(config)
    assert plan.block_bytes == plan_memory(config, ModelDtype.BFLOAT16, 16).block_bytes
