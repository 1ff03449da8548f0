"""Which files are wanted, and their one checksum."""

import subprocess
from pathlib import Path

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.manifest import (
    FileChoice,
    FileSum,
    check_digest,
    is_digest,
    manifest_digest,
    sum_file,
    sum_folder,
)


@pytest.mark.parametrize(
    ("choice", "path", "wanted"),
    [
        (FileChoice(), "config.json", True),
        (FileChoice(), "sub/config.json", True),
        (FileChoice(), "model.safetensors", True),
        (FileChoice(), "pytorch_model.bin", False),
        (FileChoice(), ".octavo-complete", False),
        (FileChoice(), ".cache/x.json", False),
        (FileChoice(allow=("*.bin",)), "pytorch_model.bin", True),
        (FileChoice(allow=("*.bin",)), "config.json", False),
        (FileChoice(ignore=("original/",)), "original/params.json", False),
        (FileChoice(ignore=("*.json",)), "config.json", False),
        (FileChoice(allow=("m-[12].gguf",)), "m-1.gguf", True),
    ],
)
def test_files_are_chosen_by_globs(choice: FileChoice, path: str, wanted: bool) -> None:
    assert choice.wants(path) is wanted


def test_the_digest_is_what_coreutils_print(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for path, content in (("config.json", "{}"), ("sub/b.json", "[]"), ("model.safetensors", "x"), ("README.md", "-")):
        (tmp_path / path).write_text(content)
    command = "sha256sum config.json sub/b.json model.safetensors | LC_ALL=C sort | sha256sum"
    shown = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    files = sum_folder(tmp_path, FileChoice())
    assert manifest_digest(files) == f"sha256:{shown.split()[0]}"
    assert manifest_digest(reversed(files)) == manifest_digest(files)


def test_a_sum_tells_path_and_size(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    summed = sum_file(tmp_path, tmp_path / "a")
    assert (summed.path, summed.size, summed.sha256[:8]) == ("a", 3, "ba7816bf")


def test_another_digest_is_refused_with_both() -> None:
    files = [FileSum("a", 1, "0" * 64)]
    check_digest("m", files, None)
    check_digest("m", files, manifest_digest(files))
    with pytest.raises(StartError, match=manifest_digest(files)) as caught:
        check_digest("m", files, "sha256:" + "f" * 64)
    assert caught.value.cause is StartCause.DIGEST_MISMATCH
    assert "f" * 64 in str(caught.value)


@pytest.mark.parametrize(
    ("text", "right"),
    [("sha256:" + "a" * 64, True), ("a" * 64, False), ("sha256:" + "A" * 64, False), ("sha256:" + "a" * 63, False)],
)
def test_digests_are_written_in_one_way(text: str, right: bool) -> None:
    assert is_digest(text) is right
