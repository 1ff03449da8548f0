"""Sizes, counts and lists as people write them."""

import pytest

from octavo_runtime.settings_values import byte_size, keys, names, token_count


@pytest.mark.parametrize(
    ("written", "tokens"),
    [("4096", 4096), ("32k", 32_000), ("32K", 32_768), ("1.5k", 1500), ("auto", -1), ("-1", -1), ("1m", 10**6), (7, 7)],
)
def test_token_counts(written: object, tokens: int) -> None:
    assert token_count(written) == tokens


@pytest.mark.parametrize(
    ("written", "size"),
    [("1024", 1024), ("4GiB", 4 << 30), ("4Gi", 4 << 30), ("4GB", 4 * 10**9), ("4g", 4 * 10**9), ("1.5 KiB", 1536)],
)
def test_byte_sizes(written: str, size: int) -> None:
    assert byte_size(written) == size


@pytest.mark.parametrize("written", ["many", "4GB", "1.0001k", "", "k", "9" * 30])
def test_wrong_token_counts_say_what_to_write(written: str) -> None:
    with pytest.raises(ValueError, match=r"^must be"):
        token_count(written)


@pytest.mark.parametrize("written", ["lots", "-4GiB", "1.0001k", "4PiB"])
def test_wrong_byte_sizes_say_what_to_write(written: str) -> None:
    with pytest.raises(ValueError, match=r"^must be"):
        byte_size(written)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("a", ("a",)),
        ("a, b", ("a", "b")),
        ('["a", "b"]', ("a", "b")),
        (['["a"]'], ("a",)),
        (["a", "b,c"], ("a", "b,c")),
        (("a",), ("a",)),
        ("", ()),
        ("a,,b,", ("a", "b")),
        (["", "a"], ("a",)),
    ],
)
def test_lists(written: object, found: tuple[str, ...]) -> None:
    assert names(written) == found


def test_broken_json_list_says_what_to_write() -> None:
    with pytest.raises(ValueError, match="JSON list"):
        names('["a"')


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("a,b", ("a,b",)),
        ("key,", ("key,",)),
        (" a \n", ("a",)),
        ('["a", "b,c"]', ("a", "b,c")),
        (["a", "b"], ("a", "b")),
        (('["a"]',), ("a",)),
    ],
)
def test_a_key_is_one_string_whatever_it_holds(written: object, found: tuple[str, ...]) -> None:
    assert keys(written) == found


@pytest.mark.parametrize("written", ["", "  ", [""], ["a", ""], ["a", " "], (), [], "[]", '[""]'])
def test_an_empty_key_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="must not be empty"):
        keys(written)
