from collections.abc import Callable

from octavo_runtime.model.config import Architecture


def test_logits_match_transformers_with_qk_norm_and_explicit_head_dim(
    check_against_transformers: Callable[..., None],
) -> None:
    check_against_transformers(Architecture.QWEN3)
