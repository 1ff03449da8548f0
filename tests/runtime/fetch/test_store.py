"""Folders that are whole or not there, however many hosts and kills are in play."""

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.manifest import FileChoice, FileSum, manifest_digest
from octavo_runtime.fetch.store import MARKER, Destination, Marker, check_space, disk_error, is_whole, read_marker

FILES = (FileSum("config.json", 2, "a" * 64), FileSum("sub/w.bin", 3, "b" * 64))
DONE = Marker("org/tiny", "c" * 40, FileChoice(("*.json",), ("x",)), FILES)


def fill(folder: Path) -> None:
    (folder / "sub").mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text("{}")
    (folder / "sub/w.bin").write_text("abc")


def age(folder: Path, seconds: float) -> None:
    """The owner has not beaten for so long."""
    then = time.time() - seconds
    os.utime(folder / ".octavo-owner", (then, then))


def opened(folder: Path, host: str) -> Destination:
    made = Destination(folder, host)
    made.open()
    return made


def test_the_folder_appears_whole_with_its_marker(tmp_path: Path) -> None:
    destination = opened(tmp_path / "deep/model", "a")
    fill(destination.partial)
    (destination.partial / "sub/old.v1.incomplete").write_text("x")
    assert not destination.folder.exists()
    destination.install(DONE)
    assert read_marker(destination.folder) == DONE
    assert is_whole(destination.folder, DONE)
    content = json.loads((destination.folder / MARKER).read_text())
    assert content["digest"] == manifest_digest(FILES)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["model"]
    assert sorted(path.name for path in destination.folder.rglob("*")) == [MARKER, "config.json", "sub", "w.bin"]


def test_two_hosts_fetch_side_by_side_and_the_first_one_wins(tmp_path: Path) -> None:
    one, two = opened(tmp_path / "m", "a"), opened(tmp_path / "m", "b")
    assert one.partial != two.partial
    fill(one.partial)
    fill(two.partial)
    one.install(DONE)
    inode = (tmp_path / "m/config.json").stat().st_ino
    two.install(DONE)
    assert (tmp_path / "m/config.json").stat().st_ino == inode
    assert not two.partial.exists()


def test_a_folder_that_was_there_is_completed_and_the_marker_comes_last(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m/config.json").write_text("old content")
    (tmp_path / "m/notes.md").write_text("mine")
    destination = opened(tmp_path / "m", "a")
    fill(destination.partial)
    destination.install(DONE)
    assert is_whole(tmp_path / "m", DONE)
    assert (tmp_path / "m/notes.md").exists()
    assert not destination.partial.exists()


def test_a_host_that_comes_back_goes_on_with_its_own(tmp_path: Path) -> None:
    fill(opened(tmp_path / "m", "a").partial)
    assert (opened(tmp_path / "m", "a").partial / "config.json").exists()


def test_what_a_vanished_host_left_is_taken_over_but_not_that_of_a_living_one(tmp_path: Path) -> None:
    gone, alive = opened(tmp_path / "m", "gone"), opened(tmp_path / "m", "alive")
    fill(gone.partial)
    age(gone.partial, 300)
    age(alive.partial, 300)
    alive.beat()
    new = opened(tmp_path / "m", "new")
    assert (new.partial / "config.json").exists()
    assert not gone.partial.exists()
    assert alive.partial.exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_the_last_one_clears_away_what_others_left_behind(tmp_path: Path) -> None:
    one = opened(tmp_path / "m", "a")
    left = opened(tmp_path / "m", "b")
    busy = opened(tmp_path / "m", "c")
    age(left.partial, 300)
    fill(one.partial)
    one.install(DONE)
    assert not left.partial.exists()
    assert busy.partial.exists()


def test_a_second_process_of_the_same_host_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from octavo_runtime.fetch.store import Destination\n"
        "Destination(Path(sys.argv[1]), 'a').open(); print(flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "m")], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        other.stdout.readline()
        second = opened(tmp_path / "m", "a")
        other.kill()
    assert second.partial.name == f"m.partial-a-{os.getpid()}"
    assert opened(tmp_path / "m", "a").partial.name == "m.partial-a"  # the other one is dead


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"model": "m", "files": [{}]}', "\x00"])
def test_a_marker_that_is_none_is_no_marker(tmp_path: Path, text: str) -> None:
    (tmp_path / MARKER).write_text(text)
    assert read_marker(tmp_path) is None


def test_a_folder_that_lost_a_file_is_not_whole(tmp_path: Path) -> None:
    fill(tmp_path)
    assert is_whole(tmp_path, DONE)
    (tmp_path / "sub/w.bin").write_text("ab")
    assert not is_whole(tmp_path, DONE)
    (tmp_path / "sub/w.bin").unlink()
    assert not is_whole(tmp_path, DONE)


def test_a_disk_that_is_too_small_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    check_space(tmp_path / "not/there", 1)
    with pytest.raises(StartError, match=r"are still to be fetched, but the disk of .* has") as caught:
        check_space(tmp_path / "not/there", 1 << 60)
    assert caught.value.cause is StartCause.DISK_FULL


@pytest.mark.parametrize(
    ("number", "cause"),
    [
        (errno.ENOSPC, StartCause.DISK_FULL),
        (errno.EDQUOT, StartCause.DISK_FULL),
        (errno.EROFS, StartCause.INVALID_SETTINGS),
        (errno.EACCES, StartCause.INVALID_SETTINGS),
    ],
)
def test_errors_of_the_disk_have_causes(number: int, cause: StartCause) -> None:
    error = disk_error(OSError(number, os.strerror(number)), Path("/models/m"))
    assert error.cause is cause
    assert "/models/m" in str(error)
