"""Hashes, and nothing but hashes."""

import base64
import re
from collections.abc import Callable
from typing import Any

from octavo_operator.desired.keys_secret import keys_secret

ADMIN = f"sha256:{'a' * 64}"
ONE, TWO = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
ACCESS = {"apiKeys": {"secretSelector": {"team": "a"}}}
LINE = re.compile(r"sha256:[0-9a-f]{64} \S+")


def files(manifest: dict[str, Any]) -> dict[str, list[str]]:
    return {name: base64.b64decode(text).decode().splitlines() for name, text in manifest["data"].items()}


def test_every_line_is_a_hash_and_where_its_key_is_from(deployment: Callable[..., Any]) -> None:
    found = files(keys_secret(deployment(access=ACCESS), ADMIN, {"b/key": TWO, "a/key": ONE}))
    assert found == {"admin-keys": [f"{ADMIN} operator"], "api-keys": [f"{ONE} a/key", f"{TWO} b/key"]}
    assert all(LINE.fullmatch(line) for lines in found.values() for line in lines)


def test_the_door_stays_shut_while_no_secret_matches(deployment: Callable[..., Any]) -> None:
    (line,) = files(keys_secret(deployment(access=ACCESS), ADMIN, {}))["api-keys"]
    assert line.startswith(f"sha256:{'0' * 64} ")
    assert LINE.fullmatch(line)


def test_without_api_keys_there_is_only_the_operators(deployment: Callable[..., Any]) -> None:
    assert list(files(keys_secret(deployment(), ADMIN, {}))) == ["admin-keys"]


def test_keys_of_an_earlier_spec_are_kept_as_they_are_and_go_before_none_of_this_one(
    deployment: Callable[..., Any],
) -> None:
    kept = base64.b64encode(f"{ONE} a/key\n".encode()).decode()
    assert files(keys_secret(deployment(), ADMIN, {}, kept))["api-keys"] == [f"{ONE} a/key"]
    assert files(keys_secret(deployment(access=ACCESS), ADMIN, {"b/key": TWO}, kept))["api-keys"] == [f"{TWO} b/key"]


def test_order_of_keys_changes_nothing(deployment: Callable[..., Any]) -> None:
    one = keys_secret(deployment(access=ACCESS), ADMIN, {"a/key": ONE, "b/key": TWO})
    assert one == keys_secret(deployment(access=ACCESS), ADMIN, {"b/key": TWO, "a/key": ONE})
