"""Every reason is explained in plain sentences, and whoever has to act is told what to do."""

import pytest

from octavo_operator.explanations import EXPLANATIONS
from octavo_operator.reasons import Reason


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_says_in_one_sentence_what_it_means(reason: Reason) -> None:
    meaning = EXPLANATIONS[reason].meaning
    assert meaning.endswith(".")
    assert "\n" not in meaning
    assert len(meaning) <= 130


@pytest.mark.parametrize("reason", Reason)
def test_what_needs_a_person_has_a_remedy_that_ends_its_sentence(reason: Reason) -> None:
    explanation = EXPLANATIONS[reason]
    assert explanation.remedy or not explanation.stalled
    assert explanation.remedy == "" or explanation.remedy.endswith((".", "--previous."))
    assert len(explanation.remedy) <= 130


@pytest.mark.parametrize(
    "reason", [Reason.WAITING_FOR_GPU, Reason.MODEL_RATE_LIMITED, Reason.DOWNLOADING, Reason.PAUSED]
)
def test_what_heals_by_itself_is_not_stalled(reason: Reason) -> None:
    assert not EXPLANATIONS[reason].stalled


@pytest.mark.parametrize("reason", [Reason.CRASH_LOOP, Reason.WEIGHTS_TOO_LARGE, Reason.POD_SECURITY_DENIED])
def test_what_stays_wrong_is_stalled(reason: Reason) -> None:
    assert EXPLANATIONS[reason].stalled


def test_no_remedy_is_given_twice_for_nothing() -> None:
    remedies = [explanation.remedy for explanation in EXPLANATIONS.values() if explanation.remedy]
    assert len(remedies) - len(set(remedies)) <= 1  # two crashes share "read its last log"


@pytest.mark.parametrize(
    ("reason", "only_in_some_cases", "said_of_them"),
    [
        (Reason.MODEL_NOT_FOUND, "model.credentials", "of a hub"),  # pvc:// and file:// have none
        (Reason.HUB_UNREACHABLE, "model.endpoint", "a hub or mirror that it reaches"),  # it may be set already
        (Reason.REFERENCE_MISSING, "key", "of a Secret or ConfigMap also the key"),  # the Secret may be there
    ],
)
def test_a_remedy_says_of_which_cases_it_speaks_where_it_does_not_fit_them_all(
    reason: Reason, only_in_some_cases: str, said_of_them: str
) -> None:
    assert only_in_some_cases in EXPLANATIONS[reason].remedy
    assert said_of_them in EXPLANATIONS[reason].remedy


def test_a_general_remedy_names_no_field_that_only_a_cache_has_unless_beside_another() -> None:
    """Who finds a cache's claim in trouble says so; a model that lies on a claim of its own has no cache."""
    assert "cache." not in EXPLANATIONS[Reason.STORAGE_CLASS_MISSING].remedy
    assert "cache." not in EXPLANATIONS[Reason.VOLUME_MULTI_ATTACH].remedy
