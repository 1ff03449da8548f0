"""`choose`: which revision to move to and which to fall back on; `prune`: which ones history no longer needs.

A rollout that was given up is remembered on its revision (`RevisionView.failure`), never on the resource: the revision
of the spec is then not tried again until the spec changes or somebody clears the mark.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from octavo_operator.observed import RevisionView


class OnFailure(StrEnum):
    """`spec.rollout.onFailure`."""

    ROLLBACK = "Rollback"
    HOLD = "Hold"


@dataclass(frozen=True, slots=True)
class Choice:
    """The planner's target."""

    target: str | None  # None: nothing can serve yet
    stable: str | None  # the newest revision that once served with all its pods
    rolled_back: bool = False  # the target is the stable one, as the wanted one failed
    held: bool = False  # the wanted one failed; nothing moves either way (the planner's `paused`)


def choose(wanted: str, revisions: Iterable[RevisionView], on_failure: OnFailure) -> Choice:
    """`wanted`: the hash of the spec. While it has no revision yet (or was refused), the stable one goes on."""
    known = {revision.hash: revision for revision in revisions}
    stable = _stable(known.values())
    revision = known.get(wanted)
    if revision is None:
        return Choice(stable, stable)
    if revision.failure is None:
        return Choice(wanted, stable)
    if on_failure is OnFailure.HOLD:
        return Choice(wanted, stable, held=True)
    if stable is None:
        return Choice(wanted, None)  # nothing to go back to: it may still heal
    return Choice(stable, stable, rolled_back=True)


def prune(revisions: Iterable[RevisionView], keep: Collection[str | None], limit: int) -> tuple[str, ...]:
    """Hashes of the oldest revisions beyond `limit`, not counting those to keep or those that have pods."""
    idle = [revision for revision in revisions if revision.hash not in keep and not _is_used(revision)]
    idle.sort(key=lambda revision: revision.number)
    return tuple(revision.hash for revision in idle[: max(0, len(idle) - limit)])


def _stable(revisions: Iterable[RevisionView]) -> str | None:
    """The one that succeeded last; a failure since then takes it out."""
    good = [(revision.succeeded_at, revision.number, revision.hash) for revision in revisions if _is_good(revision)]
    return max(good)[2] if good else None


def _is_good(revision: RevisionView) -> bool:
    return revision.succeeded_at is not None and revision.failure is None


def _is_used(revision: RevisionView) -> bool:
    return bool(revision.pods) or bool(revision.replicas)
