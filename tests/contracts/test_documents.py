"""Documents speak of files that exist, and the README shows the tree of the disk."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = (
    "",
    "runtime/octavo_runtime/",
    "kernels/octavo_kernels/",
    "runtime/octavo_runtime/model/",
    "operator/octavo_operator/",
)
FORBIDDEN = {"operator/__init__.py", "utils.py"}  # named to say that they must not be
DOCUMENTS = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_that_a_document_names_exists(document: Path) -> None:
    named = re.findall(r"`([\w./-]+\.(?:py|cpp|h|md|yaml|sh))`", document.read_text())
    missing = [n for n in named if n not in FORBIDDEN and not any((ROOT / place / n).exists() for place in PLACES)]
    assert not missing


def test_readme_tree_is_the_tree_of_the_disk() -> None:
    done = subprocess.run(
        [sys.executable, "scripts/readme_tree.py", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_no_package_shadows_the_standard_library() -> None:
    assert not (ROOT / "operator" / "__init__.py").exists()
    assert not list((ROOT / "tests").rglob("__init__.py"))


def test_make_lists_every_verb_with_help() -> None:
    text = (ROOT / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony is not None
    helped = set(re.findall(r"^([a-z0-9-]+):.*## ", text, re.MULTILINE))
    assert set(phony.group(1).split()) == helped
