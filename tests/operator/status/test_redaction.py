"""No secret gets through to a person; what a person needs to read stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.status.redaction import redact, redact_all

KEY_HASH = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("401 for token hf_AbCdEfGhIjKlMnOp", "AbCdEfGhIjKlMnOp"),
        ("sent Authorization: Bearer abc.def-ghi", "abc.def-ghi"),
        ('{"Authorization": "Bearer abc.def-ghi"}', "abc.def-ghi"),
        ("header bearer s3cr3t was refused", "s3cr3t"),
        ("GET https://user:pa55word@hub.example/x", "pa55word"),
        ("GET https://cdn.example/file?X-Signature=deadbeef&Expires=9", "deadbeef"),
        ("api_key=abcd1234", "abcd1234"),
        ('password: "hunter22"', "hunter22"),
        ("PASSWORD=Hunter22 TOKEN: ABCDEFGH", "Hunter22"),
        ("key sk-abcdefghijklmnopqrstuvwx", "abcdefghijklmnopqrstuvwx"),
        (f"known keys: {KEY_HASH}", KEY_HASH),
        (f"{KEY_HASH} keys/alice", KEY_HASH),
        (f"nodigest {KEY_HASH}", KEY_HASH),
        (f"one has the digest {KEY_HASH}, the key {KEY_HASH}", f"key {KEY_HASH}"),
    ],
)
def test_secrets_are_hidden(text: str, secret: str) -> None:
    assert secret not in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        'secret "hub-token" not found',
        "couldn't find key HF_TOKEN in Secret team/hub-token",
        "pull registry.example/octavo@" + KEY_HASH,
        f"The files of org/name have the digest {KEY_HASH}, not that of spec.model.digest",
        "a bearer token is needed",
        "0/2 nodes are available: 2 Insufficient nvidia.com/gpu.",
        'MountVolume.SetUp failed for volume "keys" : references non-existent secret key: tls.crt',
        "https://hub.example/org/name/resolve/main/config.json",
    ],
)
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_two_digests_can_still_be_told_apart() -> None:
    assert redact(f"found {KEY_HASH}") == "found sha256:01234567…"


def test_a_whole_value_is_gone_through() -> None:
    value = {"a": ["hf_AbCdEfGh", {"b": "Bearer abcdefgh"}], "n": 3, "ok": True, "none": None}
    assert redact_all(value) == {"a": ["hf_***", {"b": "Bearer ***"}], "n": 3, "ok": True, "none": None}


@given(st.text(alphabet="abcdefgh:/@?=&. \"'hf_sk-BearerTOKEN0123456789\n", max_size=120))
def test_redacting_twice_changes_nothing(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@given(st.text(max_size=30), st.text(alphabet="abcdefXYZ0189", min_size=20, max_size=40), st.text(max_size=30))
def test_a_hub_token_is_found_wherever_it_stands(before: str, token: str, after: str) -> None:
    assert f"hf_{token}" not in redact(f"{before} hf_{token} {after}")
