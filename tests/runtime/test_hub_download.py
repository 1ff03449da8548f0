"""Models of a hub and of URLs in the cache: found, fetched once, used without the network."""

import asyncio
import hashlib
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from octavo_runtime import hub_download
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.manifest import FetchOptions, FileChoice, manifest_digest, sum_folder
from octavo_runtime.hub_download import HubName, download_model, download_model_now, download_to
from octavo_runtime.start_state import StartState

pytestmark = pytest.mark.usefixtures("impatient")

COMMIT = "c" * 40
NAME = "org/tiny"


async def get(hub: Any, cache: Path, name: str = NAME, offline: bool = False, **options: Any) -> Path:
    access = hub.access(cache, offline=offline)
    return await download_model(name, FetchOptions(**options), StartState(name), access=access)


async def test_a_model_is_fetched_into_the_hubs_cache_and_found_by_its_library(hub: Any, tmp_path: Path) -> None:
    folder = await get(hub, tmp_path)
    assert folder == tmp_path / f"models--org--tiny/snapshots/{COMMIT}"
    found = huggingface_hub.snapshot_download(NAME, cache_dir=tmp_path, local_files_only=True)
    assert Path(found) == folder


async def test_what_the_library_fetched_is_not_fetched_again(hub: Any, tmp_path: Path) -> None:
    folder = await get(hub, tmp_path)
    (folder / ".octavo-complete").unlink()
    hub.asked.clear()
    assert await get(hub, tmp_path) == folder
    assert hub.paths("/resolve/") == []


async def test_a_commit_that_is_whole_asks_nobody(hub: Any, tmp_path: Path) -> None:
    await get(hub, tmp_path, revision=COMMIT)
    hub.asked.clear()
    await get(hub, tmp_path, revision=COMMIT)
    assert hub.asked == []
    await get(hub, tmp_path, revision=COMMIT, choice=FileChoice(allow=("*.md",)))
    assert [path.rpartition("/")[2] for path in hub.paths("/resolve/")] == ["README.md"]


async def test_one_gguf_file_of_a_repository(hub: Any, tmp_path: Path) -> None:
    hub.weights = {"tiny.Q4_0.gguf": b"GGUF", "tiny.Q8_0.gguf": b"GGUF2"}
    file = await get(hub, tmp_path, "org/tiny/tiny.Q4_0.gguf")
    assert file.read_bytes() == b"GGUF"
    assert [path.rpartition("/")[2] for path in hub.paths("/resolve/")] == ["tiny.Q4_0.gguf"]


async def test_a_hub_that_is_away_is_no_matter_for_a_model_that_is_here(
    hub: Any, tmp_path: Path, trouble: Any, caplog: pytest.LogCaptureFixture
) -> None:
    folder = await get(hub, tmp_path)
    hub.troubles = [trouble("main", 503, times=1000)]
    assert await get(hub, tmp_path) == folder
    assert "The copy in" in caplog.text


async def test_a_hub_that_is_away_is_waited_for_until_the_deadline(hub: Any, tmp_path: Path, trouble: Any) -> None:
    hub.troubles = [trouble("main", 503, times=10**6)]
    deadline = asyncio.get_running_loop().time() + 1.5
    with pytest.raises(StartError) as caught:
        await download_model(NAME, FetchOptions(), StartState("m"), deadline, hub.access(tmp_path))
    assert caught.value.cause is StartCause.HUB_UNREACHABLE
    assert len(hub.asked) > 3


async def test_offline_only_what_is_here_is_used(hub: Any, tmp_path: Path) -> None:
    with pytest.raises(StartError, match="HF_HUB_OFFLINE") as caught:
        await get(hub, tmp_path, offline=True)
    assert caught.value.cause is StartCause.MODEL_NOT_FOUND
    folder = await get(hub, tmp_path)
    hub.asked.clear()
    assert await get(hub, tmp_path, offline=True) == folder
    assert hub.asked == []


@pytest.mark.parametrize(
    ("options", "cause"),
    [({"revision": "nope"}, StartCause.REVISION_NOT_FOUND), ({"revision": "../x"}, StartCause.REVISION_NOT_FOUND)],
)
async def test_a_revision_that_is_not_there(
    hub: Any, tmp_path: Path, options: dict[str, Any], cause: StartCause
) -> None:
    with pytest.raises(StartError) as caught:
        await get(hub, tmp_path, **options)
    assert caught.value.cause is cause


@pytest.mark.parametrize("name", ["a/b/c", "org//tiny", "-x/y", "org/../tiny", "a b/c", "org/tiny/../x.gguf"])
def test_what_cannot_be_a_name_is_not_asked_for(name: str) -> None:
    with pytest.raises(StartError, match="OWNER/NAME") as caught:
        HubName.parse(name)
    assert caught.value.cause is StartCause.MODEL_NOT_FOUND


async def test_a_cache_that_cannot_be_written_is_named(hub: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot be written"):
        await get(hub, tmp_path / "file")


async def test_a_url_is_kept_under_its_own_place(hub: Any, tmp_path: Path) -> None:
    content = b"GGUF" * 100
    hub.weights = {"tiny.gguf": content}
    url = hub.url + "/files/tiny.gguf"
    with pytest.raises(StartError, match="--digest"):
        await get(hub, tmp_path, url)
    line = f"{hashlib.sha256(content).hexdigest()}  tiny.gguf\n"
    digest = f"sha256:{hashlib.sha256(line.encode()).hexdigest()}"
    file = await get(hub, tmp_path, url, digest=digest)
    assert (file.name, file.read_bytes()) == ("tiny.gguf", content)
    hub.asked.clear()
    assert await get(hub, tmp_path, url, digest=digest) == file
    assert hub.asked == []


async def fetch_to(hub: Any, folder: Path, name: str = NAME, offline: bool = False, **options: Any) -> None:
    access = hub.access(folder.parent / "cache", offline=offline)
    await download_to(name, folder, FetchOptions(**options), StartState(name), access=access)


async def test_a_folder_of_ones_own_is_whole_and_then_left_alone(hub: Any, tmp_path: Path) -> None:
    folder = tmp_path / "models/tiny" / COMMIT
    await fetch_to(hub, folder, revision=COMMIT)
    digest = manifest_digest(sum_folder(folder, FileChoice()))
    hub.asked.clear()
    await fetch_to(hub, folder, revision=COMMIT, digest=digest)
    await fetch_to(hub, folder, offline=True)
    assert hub.asked == []
    with pytest.raises(StartError) as caught:
        await fetch_to(hub, folder, digest="sha256:" + "0" * 64)
    assert caught.value.cause is StartCause.DIGEST_MISMATCH


async def test_a_folder_with_another_revision_is_not_overwritten(hub: Any, tmp_path: Path) -> None:
    await fetch_to(hub, tmp_path / "m")
    for name, revision in ((NAME, "d" * 40), ("org/other", None)):
        with pytest.raises(StartError, match="name another --dest") as caught:
            await fetch_to(hub, tmp_path / "m", name, revision=revision)
        assert caught.value.cause is StartCause.INVALID_SETTINGS


async def test_a_folder_that_lost_a_file_gets_it_again(hub: Any, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    await fetch_to(hub, folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(StartError, match="HF_HUB_OFFLINE"):
        await fetch_to(hub, folder, offline=True)
    hub.asked.clear()
    await fetch_to(hub, folder)
    assert (folder / "model.safetensors").stat().st_size == 10240
    assert len(hub.paths("/resolve/")) == 1


async def test_several_runs_into_one_place_all_end_well(hub: Any, tmp_path: Path, trouble: Any) -> None:
    hub.weights |= {f"w{number}.safetensors": bytes([number]) * 50_000 for number in range(8)}
    hub.troubles = [trouble("safetensors", times=5)]
    hosts = iter("abcd")
    for_each = [asyncio.to_thread(_in_its_own_loop, hub, tmp_path / "m", host) for host in hosts]
    await asyncio.gather(*for_each)
    assert len(list((tmp_path / "m").glob("*.safetensors"))) == 9
    assert [path.name for path in tmp_path.iterdir()] == ["m"]  # noqa: ASYNC240


def _in_its_own_loop(hub: Any, folder: Path, host: str) -> None:
    """As on a host of its own; the name of the host is the thread's."""
    threading.current_thread().name = f"host-{host}"
    asyncio.run(fetch_to(hub, folder))


@pytest.fixture(autouse=True)
def hosts_are_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def host() -> str:
        name = threading.current_thread().name
        return name if name.startswith("host-") else "test"

    monkeypatch.setattr("octavo_runtime.fetch.store.socket.gethostname", host)


def test_without_a_loop_and_within_one_it_is_fetched_all_the_same(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_download, "hub_access", lambda: replace(hub.access(tmp_path)))
    assert download_model_now(NAME, FetchOptions(), StartState("m")).is_dir()

    async def within() -> Path:
        return download_model_now(NAME, FetchOptions(), StartState("m"))

    assert asyncio.run(within()).is_dir()
