"""All files of a listing: at once, with a digest, to the end or to the cause."""

import asyncio
import errno
import logging
from pathlib import Path
from typing import Any

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch import download, transfer
from octavo_runtime.fetch.download import Order, fetch, log_progress
from octavo_runtime.fetch.listing import list_repository
from octavo_runtime.fetch.manifest import FileChoice, manifest_digest, sum_folder
from octavo_runtime.fetch.store import Destination, read_marker
from octavo_runtime.fetch.web import Web
from octavo_runtime.start_state import Phase, Problem, StartState

pytestmark = pytest.mark.usefixtures("impatient")


async def run(hub: Any, folder: Path, state: StartState, digest: str | None = None) -> None:
    async with Web.connect(hub.access(folder), "org/tiny") as web:
        listing = await list_repository(web, "org/tiny", None, FileChoice())
        await fetch(web, Order("org/tiny", listing, FileChoice(), digest), folder, state)


async def test_everything_wanted_comes_and_is_reported(hub: Any, tmp_path: Path) -> None:
    state = StartState("m")
    await run(hub, tmp_path / "m", state)
    assert sorted(path.name for path in (tmp_path / "m").iterdir()) == [
        ".octavo-complete",
        "config.json",
        "model.safetensors",
    ]
    assert (state.phase, state.done_bytes, state.total_bytes) == (Phase.DOWNLOADING, 10279, 10279)
    marker = read_marker(tmp_path / "m")
    assert marker is not None
    assert marker.revision == "c" * 40
    assert list(marker.files) == sum_folder(tmp_path / "m", FileChoice())


async def test_a_wrong_digest_leaves_neither_folder_nor_files(hub: Any, tmp_path: Path) -> None:
    with pytest.raises(StartError) as caught:
        await run(hub, tmp_path / "m", StartState("m"), "sha256:" + "0" * 64)
    assert caught.value.cause is StartCause.DIGEST_MISMATCH
    assert list(tmp_path.iterdir()) == []  # noqa: ASYNC240
    await run(hub, tmp_path / "m", StartState("m"))
    right = manifest_digest(sum_folder(tmp_path / "m", FileChoice()))
    await run(hub, tmp_path / "n", StartState("m"), right)


async def test_a_full_disk_is_a_cause_and_keeps_what_came(
    hub: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Any, __: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(transfer.PartialFile, "append", full)
    with pytest.raises(StartError) as caught:
        await run(hub, tmp_path / "m", StartState("m"))
    assert caught.value.cause is StartCause.DISK_FULL
    assert not (tmp_path / "m").exists()


async def test_a_disk_that_cannot_hold_it_is_not_filled(hub: Any, tmp_path: Path) -> None:
    hub.listed["model.safetensors"] = {"size": 1 << 60}
    with pytest.raises(StartError) as caught:
        await run(hub, tmp_path / "m", StartState("m"))
    assert caught.value.cause is StartCause.DISK_FULL
    assert hub.paths("/resolve/") == []


async def test_a_read_only_place_is_named(hub: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartError, match="cannot be written") as caught:
        await run(hub, tmp_path / "file" / "m", StartState("m"))
    assert caught.value.cause is StartCause.INVALID_SETTINGS


async def test_cancelled_in_the_middle_it_goes_on_from_there(hub: Any, tmp_path: Path, trouble: Any) -> None:
    hub.troubles = [trouble("model.safetensors", times=1), trouble("model.safetensors", 503, times=10_000)]
    task = asyncio.create_task(run(hub, tmp_path / "m", StartState("m")))
    while len(hub.paths("model.safetensors")) < 3:  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    hub.troubles.clear()
    hub.asked.clear()
    await run(hub, tmp_path / "m", StartState("m"))
    assert [asked for path, asked, _ in hub.asked if path.endswith(".safetensors")] == ["bytes=5120-"]


async def test_the_first_failure_ends_the_others(hub: Any, tmp_path: Path, trouble: Any) -> None:
    hub.weights |= {f"w{number}.safetensors": b"x" * number for number in range(1, 20)}
    hub.troubles = [trouble("config.json", 403, times=99)]
    with pytest.raises(StartError) as caught:
        await run(hub, tmp_path / "m", StartState("m"))
    assert caught.value.cause is StartCause.MODEL_ACCESS_DENIED
    assert Destination(tmp_path / "m").partial.exists()


async def test_progress_is_a_line_now_and_then_and_troubles_are_warnings(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(download, "_LOG_SECONDS", 0.02)
    state = StartState("m")
    state.enter(Phase.DOWNLOADING)
    state.total_bytes, state.done_bytes = 2048, 1024
    with caplog.at_level(logging.INFO):
        task = asyncio.create_task(log_progress(state))
        await asyncio.sleep(0.05)
        state.problem = Problem(StartCause.MODEL_RATE_LIMITED, "The hub limits the rate.")
        await asyncio.sleep(0.05)
        task.cancel()
    assert "Downloading, 1.0 KiB of 2.0 KiB done" in caplog.text
    assert "waiting: The hub limits the rate." in caplog.text
