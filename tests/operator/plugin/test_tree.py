"""A chain of causes is a tree that a person reads from the top."""

import pytest

from octavo_operator.plugin.layout import EDGELESS
from octavo_operator.plugin.tree import Node, drawn

ROOT = Node("root", "", (Node("one two three", "", (Node("deep"),)), Node("last words here")))


def test_branches_and_further_lines_keep_to_their_guides() -> None:
    assert [line.plain for line in drawn(ROOT, 14)] == [
        "root",
        "├── one two",
        "│   three",
        "│   └── deep",
        "└── last words",
        "    here",
    ]


def test_a_terminal_without_the_characters_gets_plain_ones() -> None:
    lines = [line.plain for line in drawn(ROOT, 80, ascii_only=True)]
    assert lines == ["root", "+-- one two three", "|   `-- deep", "`-- last words here"]


@pytest.mark.parametrize("width", [10, 80, EDGELESS])
def test_secrets_are_taken_out(width: int) -> None:
    shown = drawn(Node("token: abcdefgh", "", (Node("hf_abcdefgh"),)), width)
    assert "abcdefgh" not in " ".join(line.plain for line in shown)
