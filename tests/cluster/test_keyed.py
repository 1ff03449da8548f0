"""Things made once are made again only when what they are made from changes, or was never finished."""

from pathlib import Path

import pytest
from e2e.cluster.keyed import key_of, make_once


def test_an_equal_key_makes_nothing_and_another_key_makes_it_anew(tmp_path: Path) -> None:
    made: list[str] = []
    folder = tmp_path / "thing"
    for key in ("a", "a", "b"):
        make_once(folder, key, lambda place, key=key: made.append(key) or (place / key).touch())  # type: ignore[misc]
    assert made == ["a", "b"]
    assert [path.name for path in folder.iterdir()] == ["b"]


def test_what_was_not_finished_is_made_again(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        make_once(tmp_path / "thing", "a", fail)
    make_once(tmp_path / "thing", "a", lambda folder: (folder / "whole").touch())
    assert [path.name for path in (tmp_path / "thing").iterdir()] == ["whole"]


def test_a_key_changes_with_content_and_names_but_not_with_what_python_leaves(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    first = key_of([tmp_path])
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").touch()
    (tmp_path / "a.so").touch()
    assert key_of([tmp_path]) == first
    (tmp_path / "a.py").write_text("2")
    assert key_of([tmp_path]) != first
    (tmp_path / "a.py").write_text("1")
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    assert key_of([tmp_path]) != first


def test_the_border_between_two_parts_counts() -> None:
    assert key_of(["ab", "c"]) != key_of(["a", "bc"])
