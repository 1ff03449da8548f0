"""One file: resumed, checked, restarted when it is not what was promised."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.listing import RemoteFile
from octavo_runtime.fetch.manifest import FileSum
from octavo_runtime.fetch.patience import Patience
from octavo_runtime.fetch.store import Destination
from octavo_runtime.fetch.transfer import FileFetch, PartialFile, is_there
from octavo_runtime.fetch.web import Web
from octavo_runtime.start_state import StartState

pytestmark = pytest.mark.usefixtures("impatient")

CONTENT = bytes(range(256)) * 40
SUM = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def state() -> StartState:
    return StartState("m")


@pytest.fixture
def destination(tmp_path: Path) -> Destination:
    made = Destination(tmp_path / "model", "host")
    made.open()
    return made


def remote(hub: Any, **changes: Any) -> RemoteFile:
    url = f"{hub.url}/files/model.safetensors"
    return replace(RemoteFile("sub/m.bin", url, len(CONTENT), SUM, "v" * 40, hub=False), **changes)


async def fetch(hub: Any, file: RemoteFile, destination: Destination, state: StartState) -> FileSum:
    async with Web.connect(hub.access(destination.folder), "m") as web:
        return await FileFetch(web, file, destination, state).run(Patience(state))


async def test_a_file_gets_its_name_when_it_is_right(hub: Any, destination: Destination, state: StartState) -> None:
    found = await fetch(hub, remote(hub), destination, state)
    assert found == FileSum("sub/m.bin", len(CONTENT), SUM)
    assert (destination.partial / "sub/m.bin").read_bytes() == CONTENT
    assert [path.name for path in (destination.partial / "sub").iterdir()] == ["m.bin"]
    assert state.done_bytes == len(CONTENT)


async def test_a_broken_connection_goes_on_where_it_broke(
    hub: Any, trouble: Any, destination: Destination, state: StartState
) -> None:
    hub.troubles = [trouble("safetensors", times=3)]
    await fetch(hub, remote(hub), destination, state)
    assert (destination.partial / "sub/m.bin").read_bytes() == CONTENT
    assert [asked for _, asked, _ in hub.asked] == [None, "bytes=5120-", "bytes=7680-", "bytes=8960-"]
    assert state.done_bytes == len(CONTENT)


async def test_the_next_run_goes_on_where_the_last_one_was_killed(
    hub: Any, destination: Destination, state: StartState
) -> None:
    part = destination.partial / f"sub/m.bin.{'v' * 12}.incomplete"
    part.parent.mkdir()
    part.write_bytes(CONTENT[:1000])
    await fetch(hub, remote(hub), destination, state)
    assert hub.asked[0][1] == "bytes=1000-"
    assert (destination.partial / "sub/m.bin").read_bytes() == CONTENT


async def test_another_version_is_fetched_from_the_beginning(
    hub: Any, destination: Destination, state: StartState
) -> None:
    part = destination.partial / f"sub/m.bin.{'u' * 12}.incomplete"
    part.parent.mkdir()
    part.write_bytes(b"x" * 1000)
    await fetch(hub, remote(hub), destination, state)
    assert hub.asked[0][1] is None


async def test_bytes_that_were_damaged_on_the_disk_are_fetched_again(
    hub: Any, destination: Destination, state: StartState
) -> None:
    part = destination.partial / f"sub/m.bin.{'v' * 12}.incomplete"
    part.parent.mkdir()
    part.write_bytes(b"x" * 1000)
    await fetch(hub, remote(hub), destination, state)
    assert [asked for _, asked, _ in hub.asked] == ["bytes=1000-", None]
    assert (destination.partial / "sub/m.bin").read_bytes() == CONTENT
    assert state.done_bytes == len(CONTENT)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"sha256": "0" * 64}, "another SHA-256"), ({"size": 20000, "sha256": None}, "10240 bytes instead of 20000")],
)
async def test_what_is_wrong_twice_is_the_hubs_fault(
    hub: Any, destination: Destination, state: StartState, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(StartError, match=said) as caught:
        await fetch(hub, remote(hub, **changes), destination, state)
    assert caught.value.cause is StartCause.MODEL_CORRUPT
    assert not (destination.partial / "sub/m.bin").exists()


async def test_without_a_known_size_the_servers_end_is_the_end(
    hub: Any, destination: Destination, state: StartState
) -> None:
    found = await fetch(hub, remote(hub, size=None, sha256=None), destination, state)
    assert (found.size, found.sha256) == (len(CONTENT), SUM)


async def test_what_is_there_already_is_read_and_not_asked_for(hub: Any, destination: Destination) -> None:
    for folder in (destination.partial, destination.folder):
        hub.asked.clear()
        (folder / "sub").mkdir(parents=True)
        (folder / "sub/m.bin").write_bytes(CONTENT)
        assert (await fetch(hub, remote(hub), destination, StartState("m"))).sha256 == SUM
        assert hub.asked == []
        (folder / "sub/m.bin").write_bytes(b"y" * len(CONTENT))  # right size, wrong content
        await fetch(hub, remote(hub), destination, StartState("m"))
        assert hub.asked != []
        (destination.partial / "sub/m.bin").unlink()


def test_a_partial_file_knows_what_is_in_it(tmp_path: Path) -> None:
    first = PartialFile(tmp_path / "a")
    first.append(b"abc")
    first.close()
    again = PartialFile(tmp_path / "a")
    again.take_in()
    assert (again.size, again.sha256) == (3, hashlib.sha256(b"abc").hexdigest())
    again.append(b"d")
    assert again.sha256 == hashlib.sha256(b"abcd").hexdigest()
    again.restart()
    again.append(b"e")
    again.close()
    assert (tmp_path / "a").read_bytes() == b"e"


def test_a_file_is_there_by_its_size(hub: Any, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/m.bin").write_bytes(b"abc")
    assert [is_there(tmp_path, remote(hub, size=size)) for size in (3, 4, None)] == [True, False, True]
