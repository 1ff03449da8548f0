"""The namespace is the one that kubectl would use."""

import stat
from pathlib import Path

import pytest

from octavo_operator.plugin.context import namespace_of


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
