"""Writes docs/troubleshooting.md from the operator's table of reasons; `--check` only compares."""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from octavo_operator.explanations import EXPLANATIONS, Explanation
from octavo_operator.reasons import FROM_CAUSE, Reason

PAGE = Path(__file__).parents[1] / "docs" / "troubleshooting.md"
HEAD = """# Troubleshooting

<!-- Made by `make docs` from `operator/octavo_operator/explanations.py`; change it there. -->

    kubectl get llmd                      # the column REASON
    kubectl octavo why NAME               # the chain down to the root cause, and what to do
    kubectl describe llmd NAME            # conditions, last failure, Events

`reason` is one of the words below, in the column, in every condition, in `status.lastFailure` and in Events.
While a new revision cannot start, the one before it goes on serving: condition `Available` tells.
"""


def page() -> str:
    """The whole document."""
    return "\n".join([HEAD, *_sections()]) + "\n"


def _sections() -> Iterator[str]:
    yield from _table("Needs you", "Condition `Stalled` is true: nothing changes until you do something.", _is_stalled)
    yield from _table("Heals by itself", "But it may be waiting for something that you can give.", _wants_help)
    yield from _table("Goes on by itself", "Nothing to do.", lambda explanation: not explanation.remedy)
    yield "## Causes that the runtime writes\n"
    yield "A pod's termination message is JSON with a `cause`; status shows it as a reason.\n"
    yield from _rows(("cause", "reason"), ((f"`{cause}`", f"`{reason.value}`") for cause, reason in FROM_CAUSE.items()))


def _is_stalled(explanation: Explanation) -> bool:
    return explanation.stalled


def _wants_help(explanation: Explanation) -> bool:
    return not explanation.stalled and bool(explanation.remedy)


def _table(title: str, lead: str, belongs: Callable[[Explanation], bool]) -> Iterator[str]:
    found = [(reason, EXPLANATIONS[reason]) for reason in Reason if belongs(EXPLANATIONS[reason])]
    yield f"## {title}\n"
    yield f"{lead}\n"
    with_remedy = any(explanation.remedy for _, explanation in found)
    titles = ("reason", "what it means", "what to do") if with_remedy else ("reason", "what it means")
    cells = ((f"`{reason.value}`", told.meaning, told.remedy) for reason, told in found)
    yield from _rows(titles, (row[: len(titles)] for row in cells))


def _rows(titles: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(titles)} |"
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"
    yield ""


def main() -> int:
    """0, or 1 when `--check` finds an older page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the page is up to date")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == page():
        return 0
    sys.stderr.write(f"{PAGE.name} is not up to date: make docs\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
