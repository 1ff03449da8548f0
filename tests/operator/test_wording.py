"""Lists as a person writes them."""

import pytest

from octavo_operator.wording import listed


@pytest.mark.parametrize(("values", "text"), [([1], "1"), ([1, 2], "1 or 2"), ([1, 2, 4], "1, 2 or 4")])
def test_the_last_value_is_joined_by_a_word(values: list[int], text: str) -> None:
    assert listed(values, "or") == text
