"""The configuration and the namespace are those that kubectl would use."""

import stat
from pathlib import Path

import pytest

from octavo_operator.plugin.context import check_kubeconfig, namespace_of
from octavo_operator.plugin.errors import PluginError
from octavo_operator.plugin.settings import PluginSettings


@pytest.fixture
def kubectl(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Prints its arguments where the namespace would stand, unless a test gives it other work."""
    script = tmp_path / "kubectl"
    work = getattr(request, "param", 'printf "%s" "$*"')
    script.write_text(f"#!/bin/sh\n{work}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return script


async def test_kubectl_is_asked_with_the_same_flags(kubectl: Path) -> None:
    asked = await namespace_of("/some/config", "prod", str(kubectl))
    assert asked == "config view --minify --output jsonpath={..namespace} --kubeconfig=/some/config --context=prod"


@pytest.mark.parametrize("kubectl", ["exit 0", "echo broken; exit 1"], indirect=True)
async def test_no_answer_is_the_default_namespace(kubectl: Path) -> None:
    assert await namespace_of(None, None, str(kubectl)) == "default"


async def test_no_kubectl_is_the_default_namespace(tmp_path: Path) -> None:
    assert await namespace_of(None, None, str(tmp_path / "absent")) == "default"


def settings(**given: str | None) -> PluginSettings:
    return PluginSettings(**({"kubeconfig": None, "kubernetes_service_host": None} | given))


def test_a_kubeconfig_that_is_not_there_is_named() -> None:
    with pytest.raises(PluginError, match="There is no kubeconfig /a/b and /c"):
        check_kubeconfig(None, settings(kubeconfig="/a/b:/c"))


def test_the_flag_wins_over_the_variable(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("kind: Config\n")
    with pytest.raises(PluginError, match="/a/b"):
        check_kubeconfig("/a/b", settings(kubeconfig=str(tmp_path / "config")))


def test_one_of_several_files_is_enough(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("kind: Config\n")
    check_kubeconfig(None, settings(kubeconfig=f"/absent:{tmp_path / 'config'}"))


@pytest.mark.parametrize("text", ["a: [", "just text", ""])
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "config").write_text(text)
    with pytest.raises(PluginError, match="config is no kubeconfig"):
        check_kubeconfig(str(tmp_path / "config"), settings())


def test_a_folder_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="cannot be read: Is a directory"):
        check_kubeconfig(str(tmp_path), settings())


def test_a_pod_needs_no_kubeconfig() -> None:
    check_kubeconfig(None, settings(kubernetes_service_host="10.0.0.1"))
