"""The hub's access as its own library reads it from the environment."""

from pathlib import Path

import pytest
from huggingface_hub import constants

from octavo_runtime.fetch.access import hub_access


def test_endpoint_cache_and_token_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", "http://mirror.example")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", "/cache/hub")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_TOKEN", "secret")
    access = hub_access()
    assert (access.endpoint, access.cache_dir, access.offline) == ("http://mirror.example", Path("/cache/hub"), True)
    assert access.token == "secret"
