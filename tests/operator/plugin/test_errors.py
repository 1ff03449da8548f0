"""Whatever the API server refuses, a person reads one sentence."""

import pytest

from octavo_operator.kube_client import ApiError, Conflict, Forbidden, NotFound, Unavailable
from octavo_operator.plugin.errors import sentence_of


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NotFound(404, "not found", "Pod team/x"), "The cluster does not have it: Pod team/x: not found."),
        (Forbidden(403, "pods is forbidden"), "Your user may not do this: pods is forbidden."),
        (Unavailable(0, "no answer"), "The cluster does not answer; check `kubectl cluster-info`: no answer."),
        (Conflict(409, "changed meanwhile"), "The API server refused: changed meanwhile."),
    ],
)
def test_refusals_are_sentences(error: ApiError, words: str) -> None:
    assert sentence_of(error) == words
