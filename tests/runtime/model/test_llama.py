from collections.abc import Callable

from octavo_runtime.model.config import Architecture


def test_logits_match_transformers_with_llama3_rope_scaling(check_against_transformers: Callable[..., None]) -> None:
    check_against_transformers(Architecture.LLAMA)


def test_logits_match_with_tied_embeddings_and_multi_query_attention(
    check_against_transformers: Callable[..., None],
) -> None:
    check_against_transformers(Architecture.LLAMA, tie_word_embeddings=True, num_key_value_heads=1)


def test_logits_match_with_biases_and_linear_rope_scaling(check_against_transformers: Callable[..., None]) -> None:
    rope = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 2.0}
    check_against_transformers(Architecture.LLAMA, attention_bias=True, mlp_bias=True, rope_parameters=rope)
