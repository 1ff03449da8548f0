"""What makes an image be built again: code changes only its last layer, requirements and Dockerfile all of it."""

import shutil
from pathlib import Path

import pytest
from e2e.cluster.base_images import BaseImages
from e2e.cluster.images import OPERATOR, RUNTIME, Recipe

ROOT = Path(__file__).parents[2]
BASES = BaseImages(run="base:1", build="build:1")


@pytest.fixture(params=[OPERATOR, RUNTIME], ids=lambda recipe: recipe.name)
def recipe(request: pytest.FixtureRequest) -> Recipe:
    chosen: Recipe = request.param
    return chosen


@pytest.fixture
def checkout(tmp_path: Path, recipe: Recipe) -> Path:
    """The recipe's files in a folder of their own."""
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    for path in (".dockerignore", "pyproject.toml", recipe.dockerfile, *recipe.builders, *recipe.code):
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, target, ignore=ignored)
        else:
            shutil.copyfile(ROOT / path, target)
    return tmp_path


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def test_a_change_of_code_makes_another_image_on_the_same_layers(recipe: Recipe, checkout: Path) -> None:
    template, tag = recipe.template(checkout, BASES), recipe.tag(checkout, BASES)
    append(checkout / recipe.code[0] / "__init__.py", "\n# changed\n")
    assert recipe.template(checkout, BASES) == template
    assert recipe.tag(checkout, BASES) != tag


def test_a_change_below_the_code_makes_all_layers_anew(recipe: Recipe, checkout: Path) -> None:
    template = recipe.template(checkout, BASES)
    append(checkout / recipe.dockerfile, "\n# changed\n")
    assert recipe.template(checkout, BASES) != template
    assert recipe.template(checkout, BaseImages(run="base:2", build="build:1")) != recipe.template(checkout, BASES)


def test_settings_of_other_tools_leave_the_layers_as_they_are(recipe: Recipe, checkout: Path) -> None:
    template = recipe.template(checkout, BASES)
    append(checkout / "pyproject.toml", "\n[tool.other]\nsetting = 1\n")
    assert recipe.template(checkout, BASES) == template


def test_the_dockerfile_has_every_stage_that_is_kept(recipe: Recipe) -> None:
    text = (ROOT / recipe.dockerfile).read_text()
    for stage in recipe.stages:
        assert f" AS {stage}\n" in text
