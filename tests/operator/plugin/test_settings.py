"""The environment as other tools set it."""

import pytest

from octavo_operator.plugin.settings import PluginSettings


def test_the_names_are_those_of_kubectl_and_hub_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://mirror.example")
    monkeypatch.setenv("HF_TOKEN", "hf_x")
    monkeypatch.setenv("KUBECONFIG", "/a:/b")
    settings = PluginSettings()
    assert (settings.hf_endpoint, settings.hf_token, settings.kubeconfig) == ("https://mirror.example", "hf_x", "/a:/b")


def test_an_empty_variable_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "")
    assert PluginSettings().hf_endpoint is None


def test_the_token_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert "hf_secret" not in repr(PluginSettings())
