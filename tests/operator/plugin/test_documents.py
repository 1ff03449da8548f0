"""Files are read as kubectl reads them. What it makes of each value was tried with kubectl 1.35 on a real API server."""

import contextlib
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.plugin.documents import read_documents
from octavo_operator.plugin.errors import PluginError


def read(tmp_path: Path, text: str) -> list[dict[str, Any]]:
    path = tmp_path / "model.yaml"
    path.write_text(text)
    return read_documents(str(path), "model.yaml")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e5", 100000),
        ("7e12345", "7e12345"),
        ("2.0", 2),
        ("1.5", 1.5),
        (".5", 0.5),
        ("0x10", 16),
        ("0o17", 15),
        ("017", 15),
        ("0b11", 3),
        ("089", 89),
        ("1_000", 1000),
        ("-5", -5),
        ("9223372036854775807", 9223372036854775807),
        ("9223372036854775808", 9.223372036854775808e18),
        ("y", True),
        ("Off", False),
        ("'y'", "y"),
        ("yEs", "yEs"),
        ("2024-05-01", "2024-05-01"),
        ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00Z"),
        ("12:30", "12:30"),
        ("1:30", "1:30"),
        ("", None),
        ("~", None),
        ("none", "none"),
        ("!!str 5", "5"),
        ("1.2.3", "1.2.3"),
        ("0.1.0", "0.1.0"),
    ],
)
def test_values_are_those_that_kubectl_sends(tmp_path: Path, written: str, value: Any) -> None:
    [found] = read(tmp_path, f"a: {written}\n")
    assert found == {"a": value}
    assert type(found["a"]) is type(value)


def test_keys_become_text(tmp_path: Path) -> None:
    assert read(tmp_path, "1: a\non: b\n1.5: c\n") == [{"1": "a", "true": "b", "1.5": "c"}]


def test_maps_may_be_merged_and_repeated_by_an_anchor(tmp_path: Path) -> None:
    assert read(tmp_path, "b: &b {c: 1, d: 2}\ne: {<<: *b, c: 3}\nf: *b\n") == [
        {"b": {"c": 1, "d": 2}, "e": {"c": 3, "d": 2}, "f": {"c": 1, "d": 2}}
    ]


def test_json_may_be_indented_by_tabs(tmp_path: Path) -> None:
    assert read(tmp_path, '{"a":\n\t[1, 2.0, 1e20]}') == [{"a": [1, 2, 1e20]}]


def test_empty_documents_and_what_is_no_map_are_left_out(tmp_path: Path) -> None:
    assert read(tmp_path, "---\n# nothing\n---\na: 1\n---\n- 1\n---\n") == [{"a": 1}]


def test_lists_are_opened(tmp_path: Path) -> None:
    assert read(tmp_path, "kind: List\nitems: [{a: 1}, 7, {kind: PodList, items: [{b: 2}]}]") == [{"a": 1}, {"b": 2}]
    assert read(tmp_path, "kind: List\nitems: 7") == [{"kind": "List", "items": 7}]


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a: 1"))
    assert read_documents("-", "standard input") == [{"a": 1}]


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeffa: 1") == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "is not YAML that kubectl could send"),
        ("a:\n\tb: 1", "(line 2)"),
        ("spec:\n  a: 1\n  a: 2", "a stands twice in one place, and kubectl would take the last (line 3)"),
        ("1: a\n'1': b", "1 stands twice"),
        ("a: .inf", ".inf is not a number that JSON has (line 1)"),
        ("a: .NaN", "is not a number"),
        ("? [a, b]\n: c", "a key of a map is not text"),
        ("~: c", "a key of a map is not text"),
        ("a: &x {b: *x}", "recursive"),
        ("a: &x [*x]", "recursive"),
        ("[" * 3000, "nested too deeply"),
        ("a: \x07", "characters that are not allowed"),
        ("a: *nowhere", "undefined alias"),
    ],
)
def test_what_kubectl_could_not_send_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(PluginError) as caught:
        read(tmp_path, text)
    assert words in str(caught.value)
    assert str(caught.value).startswith("model.yaml ")
    assert "\n" not in str(caught.value)


def test_a_mistake_does_not_repeat_the_line_which_may_hold_a_secret(tmp_path: Path) -> None:
    with pytest.raises(PluginError) as caught:
        read(tmp_path, "model: {uri: x, credentials: {token: ghp_abcdefgh]}\n")
    assert "ghp_" not in str(caught.value)


def test_bytes_that_are_no_text_are_said_so(tmp_path: Path) -> None:
    (tmp_path / "model.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PluginError, match="is not text in UTF-8"):
        read_documents(str(tmp_path / "model.yaml"), "model.yaml")


YAML = st.text("ab: \n-[]{}'\"#&*!|>%@`,?0.e~y\t", max_size=40) | st.text(max_size=20)


@given(YAML)
def test_any_text_is_read_or_refused(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(PluginError):
        patch.setattr("sys.stdin", io.StringIO(text))
        assert all(isinstance(each, dict) for each in read_documents("-", "standard input"))
