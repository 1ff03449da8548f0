"""The Dockerfiles agree with pyproject.toml and with what the build context holds."""

import re
import subprocess
import sys
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILES = ("runtime/Dockerfile", "operator/Dockerfile")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def extra(*arguments: str) -> list[str]:
    script = ROOT / "scripts" / "extra_requirements.py"
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, check=True, text=True, capture_output=True, cwd=ROOT).stdout.splitlines()


def test_the_serving_image_installs_the_torch_that_the_project_asks_for() -> None:
    (asked,) = re.findall(r'^ARG TORCH="(.+)"$', (ROOT / "runtime/Dockerfile").read_text(), re.MULTILINE)
    assert asked in PROJECT["project"]["optional-dependencies"]["runtime"]


@pytest.mark.parametrize("path", DOCKERFILES)
def test_the_builder_is_the_projects_own(path: str) -> None:
    (asked,) = re.findall(r"'(hatchling.*?)'", (ROOT / path).read_text())
    assert asked in PROJECT["build-system"]["requires"]


def test_requirements_of_an_extra_are_printed_without_what_is_left_out() -> None:
    assert any(line.startswith("torch>") for line in extra("runtime"))
    assert extra("runtime", "--without", "torch") == [
        line for line in extra("runtime") if not line.startswith("torch>")
    ]


def test_the_operators_image_has_no_torch() -> None:
    assert not [line for line in extra("operator") if line.startswith(("torch", "transformers", "triton"))]


def test_the_images_hold_no_plugin_of_kubectl_and_not_its_libraries() -> None:
    assert "operator/octavo_operator/plugin" in (ROOT / ".dockerignore").read_text().splitlines()
    assert not [line for line in extra("operator") if line.startswith(("rich", "jsonschema", "cel-"))]


@pytest.mark.parametrize("path", DOCKERFILES)
def test_what_is_copied_is_in_the_build_context(path: str) -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for line in re.findall(r"^COPY (?!--from)(.+)$", (ROOT / path).read_text(), re.MULTILINE):
        for source in line.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert any(fnmatch(source, entry) or source.startswith(f"{entry}/") for entry in allowed), source


@pytest.mark.parametrize("path", DOCKERFILES)
def test_an_image_runs_as_a_numbered_user_who_is_not_root_and_names_no_registry(path: str) -> None:
    text = (ROOT / path).read_text()
    (user,) = re.findall(r"^USER (\d+):\d+$", text, re.MULTILINE)
    assert int(user) > 0
    defaults = re.findall(r"^ARG \w*BASE=(.+)$", text, re.MULTILINE)
    assert len(defaults) == 2
    assert not [name for name in defaults if "/" in name]
