"""Sizes for people."""

from octavo_runtime.byte_size import size


def test_the_unit_leaves_at_least_one_of_it() -> None:
    assert [size(n) for n in (0, 7, 1536, 3 << 20, 5 << 30)] == ["0 B", "7 B", "1.5 KiB", "3.0 MiB", "5.00 GiB"]
