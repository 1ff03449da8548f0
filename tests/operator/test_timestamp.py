"""Times go to text and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.timestamp import format_time, parse_time


@given(st.integers(min_value=0, max_value=4_102_444_800))
def test_whole_seconds_survive(seconds: int) -> None:
    assert parse_time(format_time(seconds)) == seconds


def test_form_is_that_of_kubernetes() -> None:
    assert format_time(1_769_860_800.9) == "2026-01-31T12:00:00Z"


def test_fractions_and_zones_are_read() -> None:
    assert parse_time("2026-01-31T13:00:00.500000+01:00") == 1_769_860_800.5


@pytest.mark.parametrize("text", [None, "", "soon", "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_none(text: str | None) -> None:
    assert parse_time(text) is None
