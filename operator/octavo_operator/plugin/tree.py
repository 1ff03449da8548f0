"""`Node`: a step of a chain of causes, and `drawn`: the lines that show it as a tree."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from octavo_operator.plugin.layout import hanging
from octavo_operator.status.redaction import redact

# of a node and of what is below it; of the last one and of what is below that
_GUIDES = ("├── ", "│   ", "└── ", "    ")
_PLAIN_GUIDES = ("+-- ", "|   ", "`-- ", "    ")


@dataclass(frozen=True, slots=True)
class Node:
    """A statement, and what it comes from."""

    text: str
    style: str = ""
    causes: tuple["Node", ...] = ()


def drawn(root: Node, width: int, *, ascii_only: bool = False) -> list[Text]:
    """Without secrets. `ascii_only`: for a terminal that has no box-drawing characters."""
    title = hanging(Text(), redact(root.text), width, style=root.style)
    return [*title, *_branches(root.causes, "", width, _PLAIN_GUIDES if ascii_only else _GUIDES)]


def _branches(nodes: Sequence[Node], indent: str, width: int, guides: Sequence[str]) -> Iterator[Text]:
    for left, node in zip(reversed(range(len(nodes))), nodes, strict=True):
        branch, trunk = guides[:2] if left else guides[2:]
        yield from hanging(Text(indent + branch), redact(node.text), width, style=node.style, below=indent + trunk)
        yield from _branches(node.causes, indent + trunk, width, guides)
