"""The kernels' sources say what they are, and name files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NATIVE = sorted((ROOT / "kernels" / "octavo_kernels" / "cpu" / "src").iterdir())
SOURCES = [*NATIVE, *sorted((ROOT / "kernels").rglob("*.py"))]


@pytest.mark.parametrize("source", NATIVE, ids=lambda path: path.name)
def test_a_native_source_opens_with_what_it_is(source: Path) -> None:
    first = source.read_text().splitlines()[0]
    assert first.startswith("// ")
    assert len(first) > 30


def test_files_that_comments_name_exist() -> None:
    existing = {path.name for path in SOURCES}
    missing = []
    for source in SOURCES:
        text = re.sub(r"#include.*", "", source.read_text())
        missing += [(source.name, name) for name in re.findall(r"\b\w+\.(?:py|cpp|h)\b", text) if name not in existing]
    assert not missing
