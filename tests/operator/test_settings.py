"""Variables -> settings."""

import pytest
from pydantic import ValidationError

from octavo_operator.settings import OperatorSettings, SettingsError, installed_version, load_settings


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POD_NAME", "POD_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)


def test_defaults_watch_the_whole_cluster_with_election() -> None:
    settings = load_settings()
    assert settings.namespaces == ()
    assert settings.leader_election
    assert (settings.lease_seconds, settings.renew_seconds, settings.retry_seconds) == (15, 10, 2)
    assert settings.runtime_image.endswith(f":{installed_version()}")
    assert not settings.webhook


def test_the_pod_says_where_and_who_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POD_NAME", "octavo-operator-abc")
    monkeypatch.setenv("POD_NAMESPACE", "serving")
    assert (load_settings().identity, load_settings().namespace) == ("octavo-operator-abc", "serving")


def test_without_a_pod_the_identity_is_the_process() -> None:
    assert "-" in load_settings().identity


@pytest.mark.parametrize("text", ["team-a,team-b", " team-a , team-b ,", '["team-a", "team-b"]'])
def test_lists_are_commas_or_json(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_OPERATOR_NAMESPACES", text)
    assert load_settings().namespaces == ("team-a", "team-b")


@pytest.mark.parametrize("text", ["", "[]"])
def test_an_empty_list_is_the_whole_cluster(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_OPERATOR_NAMESPACES", text)
    assert load_settings().namespaces == ()


@pytest.mark.parametrize(("text", "group"), [("none", None), ("", None), ("1000", 1000)])
def test_a_platform_may_choose_the_group_of_volumes(
    text: str, group: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCTAVO_OPERATOR_FS_GROUP", text)
    assert load_settings().fs_group == group


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("WORKERS", "0"),
        ("WORKERS", "many"),
        ("LOG_FORMAT", "xml"),
        ("PROBE_PORT", "70000"),
        ("REQUEUE_SECONDS", "-1"),
        ("RUNTIME_POD_CPU", "one"),
        ("NAMESPACES", "[team"),
    ],
)
def test_a_variable_that_cannot_be_is_named(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"OCTAVO_OPERATOR_{name}", text)
    with pytest.raises(SettingsError, match=f"OCTAVO_OPERATOR_{name}: .*{text[:4]}".replace("[", r"\[")):
        load_settings()


def test_settings_do_not_change() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        OperatorSettings().workers = 3


def test_a_log_level_is_one_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_OPERATOR_LOG_LEVEL", "debug")
    assert load_settings().log_level == "DEBUG"


def test_in_a_pod_the_api_server_is_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name would need the cluster's DNS, which may be down or absent."""
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    assert OperatorSettings().api_server == "https://10.96.0.1:6443"
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert OperatorSettings().api_server == "https://[fd00::1]:6443"
