from collections.abc import Callable
from typing import Any

from octavo_operator.observed import RevisionView
from octavo_operator.rollout.revisions import Choice, OnFailure, choose, prune

Make = Callable[..., RevisionView]
FAILED: dict[str, Any] = {"reason": "CrashLoop", "message": "m", "at": 5.0}


def test_before_anything_exists_nothing_is_chosen() -> None:
    assert choose("a", (), OnFailure.ROLLBACK) == Choice(None, None)


def test_the_first_revision_is_the_target_without_a_stable_one(revision: Make) -> None:
    assert choose("a", [revision("a", 1)], OnFailure.ROLLBACK) == Choice("a", None)


def test_while_the_new_revision_is_not_there_the_stable_one_goes_on(revision: Make) -> None:
    assert choose("b", [revision("a", 1, succeeded_at=1.0)], OnFailure.ROLLBACK) == Choice("a", "a")


def test_the_stable_revision_is_the_one_that_succeeded_last(revision: Make) -> None:
    revisions = [
        revision("a", 0, succeeded_at=9.0),
        revision("b", 1, number=2, succeeded_at=3.0),
        revision("c", 1, number=3),
    ]
    assert choose("c", revisions, OnFailure.ROLLBACK) == Choice("c", "a")


def test_a_failed_revision_rolls_back_to_the_stable_one(revision: Make) -> None:
    revisions = [revision("a", 1, succeeded_at=1.0), revision("b", 1, number=2, failure=FAILED)]
    assert choose("b", revisions, OnFailure.ROLLBACK) == Choice("a", "a", rolled_back=True)


def test_a_failed_revision_is_held_if_asked(revision: Make) -> None:
    revisions = [revision("a", 1, succeeded_at=1.0), revision("b", 1, number=2, failure=FAILED)]
    assert choose("b", revisions, OnFailure.HOLD) == Choice("b", "a", held=True)


def test_without_a_stable_revision_the_failed_one_goes_on_trying(revision: Make) -> None:
    assert choose("a", [revision("a", 1, failure=FAILED)], OnFailure.ROLLBACK) == Choice("a", None)


def test_a_revision_that_failed_after_it_had_served_is_no_longer_stable(revision: Make) -> None:
    revisions = [revision("a", 0, succeeded_at=1.0), revision("b", 1, number=2, succeeded_at=2.0, failure=FAILED)]
    assert choose("b", revisions, OnFailure.ROLLBACK) == Choice("a", "a", rolled_back=True)


def test_the_oldest_revisions_beyond_the_limit_go(revision: Make) -> None:
    revisions = [revision(name, 0, number=number) for number, name in enumerate("abcde", start=1)]
    assert prune(revisions, {"e", None}, 2) == ("a", "b")


def test_revisions_in_use_do_not_go_and_do_not_count(revision: Make, pod: Callable[..., Any]) -> None:
    revisions = [
        revision("a", 0, pod(terminating=True), number=1),
        revision("b", 2, number=2),
        revision("c", None, number=3),
        revision("d", 0, number=4),
    ]
    assert prune(revisions, {"d"}, 1) == ()
    assert prune(revisions, {"d"}, 0) == ("c",)
