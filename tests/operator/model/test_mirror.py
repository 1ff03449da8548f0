"""The mirror of e2e/ does what a hub does for the hub's own client, and misbehaves as it is told."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import huggingface_hub
import pytest
from huggingface_hub import errors

REPOSITORY = "org/tiny"
WEIGHTS = "model.safetensors"


@pytest.fixture
async def session(served: Any) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(served.address) as session:
        yield session


async def download(served: Any, folder: Path, revision: str = "main", token: str | bool = False) -> Path:
    """As the runtime does it, in a thread: the mirror runs in this one."""
    work = partial(
        huggingface_hub.snapshot_download,
        REPOSITORY,
        revision=revision,
        cache_dir=folder,
        endpoint=served.address,
        token=token,
        allow_patterns=["*.json", "*.safetensors"],
    )
    return Path(await asyncio.to_thread(work))


def content(path: str | Path) -> bytes:
    return Path(path).read_bytes()


def original(served: Any, branch: str = "main") -> Path:
    folder: Path = served.root / "org" / "tiny" / branch
    return folder


async def test_the_hubs_own_client_downloads_a_repository(served: Any, tmp_path: Path) -> None:
    folder = await download(served, tmp_path / "cache")
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", WEIGHTS, "tokenizer.json"]
    assert (folder / WEIGHTS).read_bytes() == (original(served) / WEIGHTS).read_bytes()
    again = await download(served, tmp_path / "cache", revision=folder.name)  # the folder is named after the commit
    assert again == folder


async def test_one_file_is_downloaded_by_name(served: Any, tmp_path: Path) -> None:
    fetch = partial(huggingface_hub.hf_hub_download, cache_dir=tmp_path / "cache", endpoint=served.address, token=False)
    path = await asyncio.to_thread(fetch, REPOSITORY, "config.json")
    assert content(path) == content(original(served) / "config.json")


async def test_missing_and_gated_things_are_told_apart_by_the_hubs_own_client(served: Any, tmp_path: Path) -> None:
    with pytest.raises(errors.RevisionNotFoundError):
        await download(served, tmp_path / "cache", revision="v9")
    served.mirror.behave(REPOSITORY, token="hf_right")
    with pytest.raises(errors.GatedRepoError):
        await download(served, tmp_path / "cache")
    assert await download(served, tmp_path / "cache", token="hf_right")


async def test_a_moved_branch_is_another_commit(session: aiohttp.ClientSession) -> None:
    async def commit() -> str:
        async with session.get(f"/api/models/{REPOSITORY}/revision/main") as response:
            return str((await response.json())["sha"])

    before = await commit()
    assert await commit() == before
    await session.post(f"/_mirror/{REPOSITORY}", json={"branches": {"main": "next"}})
    after = await commit()
    await session.delete(f"/_mirror/{REPOSITORY}")
    assert before == await commit() != after


async def test_changed_files_are_another_commit(served: Any, tmp_path: Path) -> None:
    before = await download(served, tmp_path / "cache")
    (original(served) / "config.json").write_text('{"changed": true}')
    after = await download(served, tmp_path / "cache")
    assert before.name != after.name


async def test_headers_say_what_a_downloader_needs(served: Any, session: aiohttp.ClientSession) -> None:
    async with session.head(f"/{REPOSITORY}/resolve/main/{WEIGHTS}") as response:
        content = (original(served) / WEIGHTS).read_bytes()
        assert response.status == 200
        assert response.headers["ETag"] == f'"{hashlib.sha256(content).hexdigest()}"'
        assert response.headers["X-Linked-Size"] == response.headers["Content-Length"] == str(len(content))
        assert len(response.headers["X-Repo-Commit"]) == 40
        assert not any(name.lower().startswith("x-xet") for name in response.headers)


@pytest.mark.parametrize(
    ("wanted", "part"), [("bytes=0-3", slice(0, 4)), ("bytes=100-", slice(100, None)), ("bytes=-5", slice(-5, None))]
)
async def test_a_part_of_a_file_is_served(
    served: Any, session: aiohttp.ClientSession, wanted: str, part: slice
) -> None:
    content = (original(served) / WEIGHTS).read_bytes()
    async with session.get(f"/{REPOSITORY}/resolve/main/{WEIGHTS}", headers={"Range": wanted}) as response:
        assert response.status == 206
        assert await response.read() == content[part]
        assert response.headers["Content-Range"].endswith(f"/{len(content)}")


@pytest.mark.parametrize("wanted", ["bytes=999999-", "bytes=x"])
async def test_a_part_that_is_not_there_is_refused(session: aiohttp.ClientSession, wanted: str) -> None:
    async with session.get(f"/{REPOSITORY}/resolve/main/{WEIGHTS}", headers={"Range": wanted}) as response:
        assert response.status == 416


async def test_a_rate_limit_ends_after_its_times(served: Any, session: aiohttp.ClientSession) -> None:
    served.mirror.behave(REPOSITORY, status=429, retry_after="2", times=2, only="files")
    statuses = []
    for _ in range(3):
        async with session.get(f"/{REPOSITORY}/resolve/main/config.json") as response:
            statuses.append((response.status, response.headers.get("Retry-After")))
    assert statuses == [(429, "2"), (429, "2"), (200, None)]


async def test_a_truncated_file_is_that_short_everywhere(served: Any, session: aiohttp.ClientSession) -> None:
    served.mirror.behave(REPOSITORY, truncate={WEIGHTS: 100})
    async with session.get(f"/api/models/{REPOSITORY}/tree/main") as response:
        (entry,) = [entry for entry in await response.json() if entry["path"] == WEIGHTS]
    assert entry["size"] == entry["lfs"]["size"] == 100
    async with session.get(f"/{REPOSITORY}/resolve/main/{WEIGHTS}") as response:
        assert len(await response.read()) == 100


async def test_a_cut_connection_breaks_where_it_was_told(served: Any, session: aiohttp.ClientSession) -> None:
    served.mirror.behave(REPOSITORY, cut={WEIGHTS: 100})
    async with session.get(f"/{REPOSITORY}/resolve/main/{WEIGHTS}") as response:
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()
    async with session.get(f"/{REPOSITORY}/resolve/main/{WEIGHTS}", headers={"Range": "bytes=0-99"}) as response:
        assert len(await response.read()) == 100


async def test_a_garbled_file_has_the_hash_of_the_right_one(served: Any, session: aiohttp.ClientSession) -> None:
    served.mirror.behave(REPOSITORY, garble=[WEIGHTS])
    async with session.get(f"/{REPOSITORY}/resolve/main/{WEIGHTS}") as response:
        content = await response.read()
        assert response.headers["ETag"].strip('"') != hashlib.sha256(content).hexdigest()
    assert len(content) == (original(served) / WEIGHTS).stat().st_size


async def test_a_slow_hub_is_slow(served: Any, session: aiohttp.ClientSession) -> None:
    size = (original(served) / WEIGHTS).stat().st_size
    served.mirror.behave(REPOSITORY, bytes_per_second=size * 5)
    before = asyncio.get_running_loop().time()
    async with session.get(f"/{REPOSITORY}/resolve/main/{WEIGHTS}") as response:
        await response.read()
    assert asyncio.get_running_loop().time() - before >= 0.15


async def test_requests_are_counted_and_unknown_behaviour_is_refused(session: aiohttp.ClientSession) -> None:
    for _ in range(2):
        async with session.get(f"/{REPOSITORY}/resolve/main/config.json"):
            pass
    async with session.get("/_mirror") as response:
        assert (await response.json())["requests"] == {f"GET /{REPOSITORY}/resolve/main/config.json": 2}
    async with session.post(f"/_mirror/{REPOSITORY}", json={"mood": "bad"}) as response:
        assert response.status == 400
        assert "mood" in await response.text()


async def test_no_path_leads_out_of_the_root(served: Any, session: aiohttp.ClientSession) -> None:
    (served.root / "secret").write_text("no")
    for path in ("%2e%2e/%2e%2e/secret", "..%2f..%2f..%2fsecret"):
        async with session.get(f"/{REPOSITORY}/resolve/main/{path}") as response:
            assert response.status == 404
