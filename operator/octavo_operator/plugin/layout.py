"""How the verbs lay out text: lines break between words only, and in a pipe not at all.

So a name or a command can be copied, and found by grep. A word that is wider than the screen is left whole: the terminal
goes on with it in its next line.
"""

import re
import sys
from collections.abc import Container, Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

EDGELESS = 1 << 20  # columns, where nobody looks at a screen
_UNITS = re.compile(r"[^\s`]*`[^`]+`[^\s`]*|kubectl(?: [\w./=-]*[\w=])+\S*|\S+")
"""What stays together: a command in backticks, one that ends a sentence, a word."""


def standard_output() -> Console:
    """With the width of the screen, if it is one."""
    return Console() if sys.stdout.isatty() else Console(width=EDGELESS)


def say(console: Console, lines: Iterable[Text]) -> None:
    """As they are: nothing is folded or cut."""
    for line in lines:
        console.print(line, soft_wrap=True)


def filled(text: str, width: int) -> list[str]:
    """Lines of words, one at least."""
    lines = [""]
    for unit in _UNITS.findall(text):
        longer = f"{lines[-1]} {unit}".lstrip()
        if lines[-1] and cell_len(longer) > width:
            lines.append(unit)
        else:
            lines[-1] = longer
    return lines


def hanging(lead: Text, text: str, width: int, *, style: str = "", below: str | None = None) -> list[Text]:
    """The text after `lead`. Further lines begin with `below`, or are indented as far."""
    indent = " " * lead.cell_len if below is None else below
    first, *others = filled(text, width - lead.cell_len)
    return [Text.assemble(lead, (first, style)), *(Text.assemble(indent, (line, style)) for line in others)]


def facts(pairs: Iterable[tuple[str, str]], width: int) -> list[Text]:
    """Titles and values in two columns; what has no value is left out."""
    told = [(title, value) for title, value in pairs if value]
    column = max((cell_len(title) for title, _ in told), default=0)
    return [
        line
        for title, value in told
        for line in hanging(Text.assemble((title, "bold"), " " * (column - cell_len(title) + 2)), value, width)
    ]


def aligned(rows: Sequence[Sequence[Text]], right: Container[int] = ()) -> list[Text]:
    """A line per row, its cells in columns; `right`: the columns of numbers."""
    widths = [max(cell.cell_len for cell in column) for column in zip(*rows, strict=True)]
    return [
        _line(
            [_padded(cell, width, place in right) for place, (cell, width) in enumerate(zip(row, widths, strict=True))]
        )
        for row in rows
    ]


def _padded(cell: Text, width: int, right: bool) -> Text:
    space = " " * (width - cell.cell_len)
    return Text.assemble(space, cell) if right else Text.assemble(cell, space)


def _line(cells: Iterable[Text]) -> Text:
    line = Text("  ").join(cells)
    line.rstrip()
    return line
