"""What the policy remembers: which numbers were wanted lately, and by how much the number moved. Frozen, in memory.

Lost with the process, at no harm: a fresh state holds the number it starts with as if it had just been wanted, so
nothing shrinks before a full window was seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from octavo_operator.autoscaling.decisions import from_status


@dataclass(frozen=True, slots=True)
class Wish:
    """A number that was wanted over some time: until another was, or until now."""

    wanted: int
    until: float


@dataclass(frozen=True, slots=True)
class AutoState:
    """Of one LLMDeployment."""

    desired: int
    wishes: tuple[Wish, ...]  # by rising time; a number that is wanted again and again is one wish
    moves: tuple[tuple[float, int], ...] = ()  # when, by how much
    sought: int = 0  # the number that was wanted when pods began to start
    full: float | None = None  # requests that fill a replica, as far as was seen

    @classmethod
    def start(cls, desired: int, now: float) -> "AutoState":
        """Without a past."""
        return cls(desired=desired, wishes=(Wish(desired, now),), sought=desired)

    def wish(self, wanted: int, now: float, window: float) -> "AutoState":
        """With one more wish, and without those older than the longest window."""
        kept = [one for one in self.wishes[:-1] if one.until > now - window]
        if self.wishes and self.wishes[-1].wanted != wanted:
            kept.append(replace(self.wishes[-1], until=now))  # in force until now, however long nothing was decided
        return replace(self, wishes=(*kept, Wish(wanted, now)))

    def move(self, desired: int, now: float, period: float) -> "AutoState":
        """With the number set, remembered for the longest period."""
        kept = tuple(move for move in self.moves if move[0] > now - period)
        if desired == self.desired:
            return replace(self, moves=kept)
        return replace(self, desired=desired, moves=(*kept, (now, desired - self.desired)))

    def wished_since(self, since: float) -> tuple[Wish, ...]:
        """Wishes that reach into the time after `since`, the present one last."""
        return (*(one for one in self.wishes[:-1] if one.until > since), *self.wishes[-1:])

    def moved(self, since: float, direction: int) -> tuple[tuple[float, int], ...]:
        """Moves after `since`, up (1) or down (-1), sizes without sign."""
        return tuple((at, abs(by)) for at, by in self.moves if at > since and by * direction > 0)


def restore(scaling: Mapping[str, Any], default: int, now: float) -> AutoState:
    """From `status.scaling`, after a restart: the number goes on where it was."""
    desired = scaling.get("desired")
    state = AutoState.start(desired if isinstance(desired, int) and desired >= 0 else default, now)
    changes = from_status(scaling.get("decisions") or ())
    return replace(state, moves=tuple((change.at, change.after - change.before) for change in changes))
