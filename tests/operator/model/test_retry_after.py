import pytest

from octavo_operator.model.retry_after import LONGEST, retry_after

NOW = 1_700_000_000.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": " 0 "}, 0.0),
        ({"Retry-After": "999999999999999"}, LONGEST),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"Retry-After": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
        ({"RateLimit": '"api";r=0;t=55'}, 55.0),
        ({"Retry-After": "7", "RateLimit": '"api";r=0;t=55'}, 7.0),
        ({"RateLimit": "?"}, None),
    ],
)
def test_what_a_server_asks_for_is_understood(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds
