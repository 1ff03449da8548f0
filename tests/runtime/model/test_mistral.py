from collections.abc import Callable

from octavo_runtime.model.config import Architecture


def test_logits_match_transformers_beyond_the_sliding_window(check_against_transformers: Callable[..., None]) -> None:
    check_against_transformers(Architecture.MISTRAL)


def test_logits_match_without_a_window(check_against_transformers: Callable[..., None]) -> None:
    check_against_transformers(Architecture.MISTRAL, sliding_window=None)
