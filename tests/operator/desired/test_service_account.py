"""The pods' identity."""

from collections.abc import Callable
from typing import Any

from octavo_operator.desired.service_account import service_account


def test_no_token_is_mounted(deployment: Callable[..., Any]) -> None:
    made = service_account(deployment())
    assert made["metadata"]["name"] == "small"
    assert made["automountServiceAccountToken"] is False
