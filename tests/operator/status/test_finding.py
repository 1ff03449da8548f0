"""A finding blocks as its reason says, unless it says otherwise itself."""

from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding


def test_blocks_as_the_reason_says() -> None:
    assert Finding(Reason.CRASH_LOOP, "It ended.").blocks
    assert not Finding(Reason.WAITING_FOR_GPU, "None is free.").blocks


def test_what_is_known_of_this_case_wins() -> None:
    assert not Finding(Reason.OUT_OF_MEMORY, "Once.", stalled=False).blocks
    assert Finding(Reason.WAITING_FOR_GPU, "Given up.", stalled=True).blocks


def test_sentence_names_the_pod() -> None:
    assert Finding(Reason.CRASH_LOOP, "It ended.", pod="smollm-1").sentence == "Pod smollm-1: It ended."
    assert Finding(Reason.CRASH_LOOP, "It ended.").sentence == "It ended."


def test_sentence_ends_with_a_full_stop() -> None:
    assert Finding(Reason.CRASH_LOOP, "no such program").sentence == "no such program."
    assert Finding(Reason.CRASH_LOOP, "").sentence == ""


def test_remedy_is_that_of_the_reason_unless_the_finder_knows_better() -> None:
    assert "kubectl logs" in Finding(Reason.CRASH_LOOP, "It ended.").remedy
    assert Finding(Reason.WEIGHTS_TOO_LARGE, "No.", advice="Raise it to 5Gi.").remedy == "Raise it to 5Gi."
