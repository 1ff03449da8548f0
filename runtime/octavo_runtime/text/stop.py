"""Stop strings in a text that comes in pieces of any length.

The match that is complete first wins, and of those the one that starts first; so the result does not depend on where
the pieces are cut. Text is kept back only while it could still begin a stop string.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StopResult:
    """Text that may go out now, and the stop string that ended it."""

    text: str
    stopped_by: str | None = None


class StopStrings:
    """Looks for `stops` (none empty) in one sequence's text. `include`: the stop string itself belongs to the text."""

    def __init__(self, stops: tuple[str, ...], include: bool = False) -> None:
        self._stops = stops
        self._first_characters = frozenset(stop[0] for stop in stops)
        self._longest = max(map(len, stops), default=0)
        self._include = include
        self._held = ""

    def push(self, text: str, may_stop: bool = True) -> StopResult:
        """Take `text` in. With `may_stop` False (min_tokens not reached) a match that ends in it does not count."""
        known = len(self._held)
        text = self._held + text
        if may_stop and (match := self._first_match(text, known)):
            end, start, stop = match
            self._held = ""
            return StopResult(text[: end if self._include else start], stop)
        keep = self._length_to_hold(text)
        self._held = text[len(text) - keep :]
        return StopResult(text[: len(text) - keep])

    def flush(self) -> str:
        """What was kept back; the text has ended, so it begins no stop string."""
        held, self._held = self._held, ""
        return held

    def _first_match(self, text: str, known: int) -> tuple[int, int, str] | None:
        """(end, start, stop string) of the match that ends first, after the `known` characters seen before."""
        matches = []
        for stop in self._stops:
            start = text.find(stop, max(0, known - len(stop) + 1))
            if start >= 0:
                matches.append((start + len(stop), start, stop))
        return min(matches, default=None)

    def _length_to_hold(self, text: str) -> int:
        """Length of the longest end of `text` that begins a stop string without completing it."""
        for start in range(max(0, len(text) - self._longest + 1), len(text)):
            if text[start] in self._first_characters:
                tail = text[start:]
                if any(len(tail) < len(stop) and stop.startswith(tail) for stop in self._stops):
                    return len(tail)
        return 0
