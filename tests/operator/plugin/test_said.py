"""What the operator said is taken apart, so that nothing of it stands twice beside what the pods say."""

from typing import Any

import pytest

from octavo_operator.plugin.said import Said
from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding

PULL = 'failed to pull and unpack image "registry.example/x:1": failed to resolve reference: not found'
GIVEN_UP = "Revision 1a2b3c4d5e was given up. No further pod became ready within 900 seconds"


def said(message: str, reason: str = "ProgressDeadlineExceeded", **status: Any) -> Said:
    return Said.of({"conditions": [{"type": "Ready", "reason": reason, "message": message}], **status})


def beside(sentence: str, *messages: str) -> str:
    findings = [Finding(Reason.IMAGE_PULL_FAILED, each) for each in messages]
    return Said("ProgressDeadlineExceeded", sentence, "").beside(findings)


@pytest.mark.parametrize(
    ("quoted", "own"),
    [
        (PULL, PULL),
        (f"{PULL}.", PULL),
        (f"{PULL[:50]}…", PULL),  # clipped
        (PULL, f'Back-off pulling image "x": ErrImagePull: {PULL}'),  # the kubelet has changed its mind since
        (PULL, PULL.replace(" ", "\n")),
    ],
)
def test_what_a_pod_tells_in_full_is_not_repeated(quoted: str, own: str) -> None:
    assert beside(f"{GIVEN_UP}: {quoted}", "Something else.", own) == f"{GIVEN_UP}."


def test_a_verdict_that_only_quotes_is_short() -> None:
    assert beside(f"Revision x was given up. {PULL}", PULL) == "Revision x was given up."


@pytest.mark.parametrize("sentence", [f"{GIVEN_UP}: {PULL}", f"{GIVEN_UP}.", "No room.", ""])
def test_what_nobody_else_tells_is_kept(sentence: str) -> None:
    assert beside(sentence, "Its container runs and is not ready yet.") == sentence
    assert beside(sentence) == sentence


def test_the_pod_and_the_number_of_others_are_taken_off() -> None:
    told = said("Pod smollm-a: It loads. (2 pods more like it.)", "Loading")
    assert (told.pod, told.message, told.reason) == ("smollm-a", "It loads.", Reason.LOADING)


def test_a_reason_of_a_newer_operator_is_kept_as_a_word() -> None:
    told = said("It is so.", "SomethingNew")
    assert (told.word, told.reason, told.sentence, told.remedy) == ("SomethingNew", None, "It is so.", "")
