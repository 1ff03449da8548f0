"""Key files as Kubernetes mounts and changes them."""

import asyncio
import logging
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from octavo_runtime import key_files
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.key_files import KeyWatch
from octavo_runtime.settings import Settings


def watch(**values: Any) -> KeyWatch:
    return KeyWatch(Settings.from_values({"model": "m", **values}).server)


def opens(made: KeyWatch, key: str) -> bool:
    return not made.keys.refuse(f"Bearer {key}")


def hashed(key: str) -> str:
    return f"sha256:{sha256(key.encode()).hexdigest()}"


class Mount:
    """A Secret as the kubelet mounts it: `keys` -> `..data/keys`, and `..data` is swapped at once."""

    def __init__(self, folder: Path, content: str) -> None:
        self._folder = folder
        self._version = 0
        self.file = folder / "keys"
        self.change(content)
        self.file.symlink_to("..data/keys")

    def change(self, content: str | None) -> None:
        self._version += 1
        version = self._folder / f"..v{self._version}"
        version.mkdir()
        if content is not None:
            (version / "keys").write_text(content)
        link = self._folder / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(self._folder / "..data")


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    return Mount(tmp_path, f"{hashed('one')} team-a\ntwo\n")


def test_without_keys_everybody_comes_in_and_there_is_no_admin() -> None:
    made = watch()
    assert (made.keys.api, made.keys.admin) == (None, None)


def test_keys_of_flags_and_file_add_up(mount: Mount) -> None:
    made = watch(api_key=["flag", hashed("secret")], api_key_file=mount.file)
    assert [opens(made, key) for key in ("flag", "secret", "one", "two", "three")] == [True] * 4 + [False]


def test_a_swapped_secret_is_read_and_an_unchanged_one_is_not(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    made = watch(api_key_file=mount.file, api_key=["flag"], admin_key_file=mount.file)
    mount.change("three\n")
    made.look()
    assert [opens(made, key) for key in ("flag", "one", "three")] == [True, False, True]
    assert made.keys.admin is not None
    assert made.keys.admin.opens("three")
    monkeypatch.setattr(key_files.KeyFile, "read", None)  # would fail
    made.look()


@pytest.mark.parametrize("content", [None, "", "\n \n", "sha256:broken\n"])
def test_an_accident_keeps_the_keys_that_were_there(
    mount: Mount, content: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    made = watch(api_key_file=mount.file)
    mount.change(content)
    with caplog.at_level(logging.WARNING):
        made.look()
        made.look()
    assert opens(made, "two")
    assert not opens(made, "broken")
    assert len(caplog.records) == 1
    mount.change("three\n")
    made.look()
    assert (opens(made, "two"), opens(made, "three")) == (False, True)


def test_a_file_that_cannot_be_used_at_start_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("\n")
    for flag in ("api_key_file", "admin_key_file"):
        for file in (empty, tmp_path / "none"):
            with pytest.raises(StartError, match="--" + flag.replace("_", "-")) as caught:
                watch(**{flag: file})
            assert caught.value.cause is StartCause.INVALID_SETTINGS


def test_a_file_of_comments_alone_shuts_the_door_until_a_key_is_there(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# keys of the teams\n")
    made = watch(api_key_file=file)
    assert not opens(made, "one")
    assert not opens(made, "")
    file.write_text("# keys of the teams\none\n")
    made.look()
    assert opens(made, "one")


def test_no_key_is_ever_logged_or_told(mount: Mount, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        made = watch(api_key_file=mount.file)
        mount.change("new-secret\nsha256:bad-secret\n")
        made.look()
        mount.change("new-secret\n")
        made.look()
    assert "secret" not in caplog.text
    with pytest.raises(StartError) as caught:
        watch(api_key=["sha256:wrong-secret"])
    assert "wrong-secret" not in str(caught.value)
    assert "new-secret" not in repr(made.keys)


async def test_the_watch_looks_by_itself(mount: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_files, "POLL_SECONDS", 0.01)
    made = watch(api_key_file=mount.file)
    task = asyncio.create_task(made.run())
    mount.change("three\n")
    while not opens(made, "three"):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    task.cancel()
    await watch().run()  # nothing to watch: it ends
