"""What is there to fetch, from a hub and from a URL."""

from pathlib import Path
from typing import Any

import pytest

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.listing import Listing, is_commit, list_repository, list_url
from octavo_runtime.fetch.manifest import FileChoice
from octavo_runtime.fetch.patience import TryLaterError
from octavo_runtime.fetch.web import Web

CACHE = Path("/nowhere")
COMMIT = "c" * 40


async def listed(hub: Any, revision: str | None = None, choice: FileChoice = FileChoice()) -> Listing:  # noqa: B008
    async with Web.connect(hub.access(CACHE), "org/tiny", revision) as web:
        return await list_repository(web, "org/tiny", revision, choice)


async def test_wanted_files_come_with_size_sum_and_place(hub: Any) -> None:
    found = await listed(hub)
    assert found.commit == COMMIT
    assert [file.path for file in found.files] == ["config.json", "model.safetensors"]
    config, weights = found.files
    assert (config.size, config.sha256) == (39, None)
    assert weights.url == f"{hub.url}/org/tiny/resolve/{COMMIT}/model.safetensors"
    assert (weights.size, len(weights.sha256 or "")) == (10240, 64)
    assert found.total_bytes == 10279


async def test_a_branch_with_a_slash_is_one_name(hub: Any) -> None:
    hub.branches["refs%2Fpr%2F1"] = COMMIT
    assert (await listed(hub, "refs/pr/1")).commit == COMMIT


@pytest.mark.parametrize("codes", [True, False])
async def test_a_revision_that_is_not_there_is_told_apart_from_a_model(hub: Any, codes: bool) -> None:
    hub.error_codes = codes
    with pytest.raises(StartError, match="org/tiny has no revision nope") as caught:
        await listed(hub, "nope")
    assert caught.value.cause is StartCause.REVISION_NOT_FOUND


async def test_nothing_wanted_names_what_could_be(hub: Any) -> None:
    with pytest.raises(StartError, match="check --allow-files"):
        await listed(hub, choice=FileChoice(allow=("*.none",)))
    hub.files, hub.weights = {"b.gguf": b"", "a.gguf": b""}, {}
    with pytest.raises(StartError, match=r"such as org/tiny/a\.gguf") as caught:
        await listed(hub)
    assert caught.value.cause is StartCause.MODEL_NOT_FOUND


async def test_a_path_that_leaves_the_folder_is_refused(hub: Any) -> None:
    hub.files["../../etc/x.json"] = b""
    with pytest.raises(StartError, match="outside") as caught:
        await listed(hub)
    assert caught.value.cause is StartCause.MODEL_CORRUPT


async def test_a_listing_that_is_none_is_not_believed(hub: Any) -> None:
    hub.files["x"] = b"[1]"
    async with Web.connect(hub.access(CACHE), "m") as web:
        web.get_json = lambda _: _later(["nonsense"])  # type: ignore[method-assign,assignment]
        with pytest.raises(TryLaterError, match="not a list of files"):
            await list_repository(web, "org/tiny", None, FileChoice())


async def _later(value: Any) -> Any:
    return value


async def test_a_url_is_one_file_whose_version_changes_with_its_content(hub: Any) -> None:
    async def one() -> Any:
        async with Web.connect(hub.access(CACHE), "m") as web:
            return (await list_url(web, f"{hub.url}/files/a%20b.gguf?x=1")).files[0]

    hub.files["a%20b.gguf"] = b"abc"
    first = await one()
    assert (first.path, first.size, first.hub) == ("a b.gguf", 3, False)
    assert (await one()).version == first.version
    hub.files["a%20b.gguf"] = b"abd"
    assert (await one()).version != first.version


async def test_a_url_must_name_a_gguf_file(hub: Any) -> None:
    async with Web.connect(hub.access(CACHE), "m") as web:
        with pytest.raises(StartError, match=r"\.gguf file"):
            await list_url(web, hub.url + "/files/README.md")


def test_a_commit_has_forty_hexadecimal_digits() -> None:
    assert is_commit("0123456789abcdef" * 2 + "01234567")
    assert not any(is_commit(revision) for revision in (None, "main", "abc123", "C" * 40, "g" * 40))
