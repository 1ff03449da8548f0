import json
from typing import Any

import pytest

from octavo_operator.autoscaling.answers import is_new_load, is_news, is_progress, read_status, with_load
from octavo_operator.autoscaling.metrics_text import Sample
from octavo_operator.observed import RuntimeView


def answer(**fields: Any) -> RuntimeView:
    return read_status(json.dumps(fields).encode(), at=5.0, kv_cache_usage=0.3)


def test_a_status_is_read() -> None:
    view = answer(phase="Ready", in_flight=3, waiting=1, capacity=None)
    assert (view.at, view.phase, view.in_flight, view.waiting, view.kv_cache_usage) == (5.0, "Ready", 3, 1, 0.3)
    assert view.status["capacity"] is None


def test_fields_that_are_missing_or_strange_count_as_nothing() -> None:
    for view in (answer(), answer(phase=None, in_flight="3", waiting=-1)):
        assert (view.phase, view.in_flight, view.waiting) == ("", 0, 0)


@pytest.mark.parametrize("body", [b"", b"[]", b"<html>", b"\xff"])
def test_what_is_no_object_is_an_error(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_status(body, 0.0, 0.0)


def test_a_newer_load_does_not_make_the_answer_newer() -> None:
    view = with_load(answer(phase="Ready", in_flight=9), Sample(waiting=2, running=3, kv_usage=0.7))
    assert (view.at, view.in_flight, view.waiting, view.kv_cache_usage) == (5.0, 5, 2, 0.7)
    assert with_load(view, Sample()) == view


def test_a_first_answer_and_a_new_phase_are_news() -> None:
    assert is_news(None, answer(phase="Loading"), draining=False)
    assert is_news(answer(phase="Loading"), answer(phase="Ready"), draining=False)
    assert is_news(answer(draining=False), answer(draining=True), draining=True)
    assert not is_news(answer(phase="Ready", in_flight=1), answer(phase="Ready", in_flight=0), draining=False)


def test_a_draining_pod_makes_news_when_its_last_request_ends() -> None:
    busy, less, done = answer(in_flight=2), answer(in_flight=1), answer(in_flight=0)
    assert not is_news(busy, less, draining=True)
    assert is_progress(busy, less, draining=True)
    assert is_news(less, done, draining=True)
    assert not is_news(done, done, draining=True)


def test_bytes_loaded_are_progress() -> None:
    assert is_progress(answer(progress={"done_bytes": 1}), answer(progress={"done_bytes": 2}), draining=False)
    assert not is_progress(answer(in_flight=1), answer(in_flight=2), draining=False)


@pytest.mark.parametrize(
    ("after", "new"),
    [
        (Sample(2, 5, 0.50), False),
        (Sample(2, 9, 0.51), False),
        (Sample(2, 5, 0.53), True),
        (Sample(3, 5, 0.50), True),
        (Sample(2, 0, 0.50), True),
        (Sample(2, 5, None), True),
    ],
)
def test_a_load_is_new_when_the_number_may_depend_on_the_change(after: Sample, new: bool) -> None:
    assert is_new_load(Sample(2, 5, 0.50), after) is new
    assert is_new_load(None, after)
