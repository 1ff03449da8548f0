"""Words and commands stay whole, columns stay columns."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from octavo_operator.plugin.layout import EDGELESS, aligned, facts, filled, hanging, say, standard_output

POD = "smollm-1a2b3c4d5e-x7k2p"


@given(st.lists(st.text("abc-./", min_size=1, max_size=90)), st.integers(1, 100))
def test_no_word_is_broken_at_any_width(words: list[str], width: int) -> None:
    lines = filled(" ".join(words), width)
    assert " ".join(lines).split() == words
    assert all(len(line) <= width or len(line.split()) == 1 for line in lines)


@pytest.mark.parametrize(
    "command",
    ["kubectl octavo status smollm --watch", "kubectl get pods -A -l app.kubernetes.io/name=x", "`kubectl apply -f`"],
)
@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_command_is_one_piece(command: str, width: int) -> None:
    assert any(command in line for line in filled(f"Look at what it is: {command}. And so on, for a while.", width))


def test_commands_beside_each_other_are_pieces_of_their_own() -> None:
    assert filled("write `a b` or `c d`", 9) == ["write", "`a b` or", "`c d`"]


def test_without_an_edge_all_is_one_line() -> None:
    assert len(filled("a text\nof lines " * 1000, EDGELESS)) == 1


def test_further_lines_hang_below_the_first_or_begin_as_told() -> None:
    assert [line.plain for line in hanging(Text("- "), "one two", 6)] == ["- one", "  two"]
    assert [line.plain for line in hanging(Text("- "), "one two", 6, below="| ")] == ["- one", "| two"]


def test_facts_stand_in_two_columns_and_those_without_a_value_nowhere() -> None:
    told = facts([("A", "x y"), ("Title", "z"), ("None", "")], 8)
    assert [line.plain for line in told] == ["A      x", "       y", "Title  z"]


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    rows = [[Text("POD"), Text("KV")], [Text(POD), Text("100")]]
    assert [line.plain for line in aligned(rows, right={1})] == [f"POD{' ' * 22} KV", f"{POD}  100"]
    assert aligned([[Text("NAME"), Text("MESSAGE")], [Text("x"), Text("")]])[1].plain == "x"


def test_a_line_that_is_wider_than_the_screen_is_left_to_it() -> None:
    console = Console(file=io.StringIO(), width=10)
    say(console, [Text(POD)])
    assert console.file.getvalue() == f"{POD}\n"  # type: ignore[attr-defined]


def test_a_pipe_has_no_edge_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert standard_output().width == EDGELESS
