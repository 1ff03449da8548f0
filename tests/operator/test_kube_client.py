"""Errors of the API server by their kind."""

import pytest

from octavo_operator.kube_client import (
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    TooManyRequests,
    Unavailable,
    error_of,
    name_of,
    version_of,
)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Invalid),
        (401, ApiError),
        (403, Forbidden),
        (404, NotFound),
        (409, Conflict),
        (410, Gone),
        (422, Invalid),
        (429, TooManyRequests),
        (500, Unavailable),
        (503, Unavailable),
        (504, Unavailable),
    ],
)
def test_each_status_has_its_error(status: int, kind: type[ApiError]) -> None:
    error = error_of(status, "no", "Pod a/b")
    assert type(error) is kind
    assert (error.status, error.message, str(error)) == (status, "no", "Pod a/b: no")


def test_too_many_requests_says_how_long_to_wait() -> None:
    told, untold = error_of(429, "slow down", "", 7.0), error_of(429, "slow down", "")
    assert isinstance(told, TooManyRequests)
    assert isinstance(untold, TooManyRequests)
    assert (told.retry_after, untold.retry_after) == (7.0, 1.0)


def test_objects_are_named_with_their_namespace_if_they_have_one() -> None:
    assert name_of({"kind": "Pod", "metadata": {"namespace": "a", "name": "b"}}) == "Pod a/b"
    assert name_of({"kind": "Node", "metadata": {"name": "b"}}) == "Node b"
    assert name_of({}) == "? ?"


def test_versions_are_numbers() -> None:
    assert version_of({"metadata": {"resourceVersion": "12"}}) == 12
    assert version_of({"metadata": {}}) == 0
