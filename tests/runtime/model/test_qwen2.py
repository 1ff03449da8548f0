from collections.abc import Callable

from octavo_runtime.model.config import Architecture


def test_logits_match_transformers_with_bias_and_tied_embeddings(
    check_against_transformers: Callable[..., None],
) -> None:
    check_against_transformers(Architecture.QWEN2)


def test_logits_match_when_only_the_upper_layers_slide(check_against_transformers: Callable[..., None]) -> None:
    check_against_transformers(Architecture.QWEN2, use_sliding_window=True, sliding_window=10, max_window_layers=1)
