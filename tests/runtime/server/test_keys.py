"""Keys as themselves or as hashes, and doors that nobody opens by accident."""

from hashlib import sha256

import pytest

from octavo_runtime.server.keys import Keys, KeySet, bearer


def hashed(key):
    return f"sha256:{sha256(key.encode()).hexdigest()}"


def test_plain_and_hashed_keys_open_and_nothing_else_does():
    keys = KeySet.parse(["plain key", hashed("secret"), f"{hashed('noted')} team-a/main"])
    assert all(keys.opens(key) for key in ("plain key", "secret", "noted"))
    assert not any(keys.opens(key) for key in ("", "plain", "secret ", hashed("secret"), "team-a/main", "\udcff"))


def test_comments_and_blank_lines_are_no_keys():
    keys = KeySet.parse(["# who may come in", "", "  ", " a "])
    assert len(keys.digests) == 1
    assert keys.opens("a")
    assert not KeySet.parse(["# nobody yet"]).opens("")


def test_a_broken_hash_is_refused_by_its_line_and_not_shown():
    with pytest.raises(ValueError, match="line 2") as caught:
        KeySet.parse(["a", "sha256:abcdef"])
    assert "abcdef" not in str(caught.value)


def test_the_same_key_twice_counts_once_and_sets_add_up():
    keys = KeySet.parse(["a", hashed("a")]) | KeySet.parse(["b", "a"])
    assert len(keys.digests) == 2


def test_without_keys_the_api_is_open_and_with_an_empty_set_it_is_shut():
    assert not Keys().refuse("")
    assert Keys(api=KeySet()).refuse("Bearer a")
    assert not Keys(api=KeySet.parse(["a"])).refuse("bearer a")


@pytest.mark.parametrize("header", ["", "Bearer", "Basic a", "a", "Bearer "])
def test_only_a_bearer_header_carries_a_key(header):
    assert bearer(header) == ""
