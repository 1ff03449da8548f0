"""Brings a model that is named by hub id or URL onto this machine, into the hub's own cache, and says where it lies.

The cache has the layout of `huggingface_hub` (`models--OWNER--NAME/snapshots/COMMIT`, `refs/REVISION`), so a model that
another tool fetched is found, and ours by it. Called by `hub.py` for names that are no local path.
"""

import asyncio
import hashlib
import logging
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.fetch.access import HubAccess, hub_access
from octavo_runtime.fetch.download import Order, fetch
from octavo_runtime.fetch.listing import Listing, is_commit, list_repository, list_url, url_file_name
from octavo_runtime.fetch.manifest import FetchOptions, FileChoice, check_digest
from octavo_runtime.fetch.patience import Patience, TryLaterError
from octavo_runtime.fetch.store import disk_error, is_whole, read_marker
from octavo_runtime.fetch.transfer import is_there
from octavo_runtime.fetch.web import Web
from octavo_runtime.progress import follow_download, load_progress
from octavo_runtime.start_state import StartState

logger = logging.getLogger(__name__)

_URL_FOLDER = "octavo-urls"
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


def is_url(name: str) -> bool:
    """Whether a model is named by URL."""
    return name.startswith(("https://", "http://"))


@dataclass(frozen=True, slots=True)
class HubName:
    """`owner/model`, or one .gguf file in it: `owner/model/folder/file.gguf`."""

    repository: str
    file: str | None

    @classmethod
    def parse(cls, name: str) -> "HubName":
        """Raises StartError(MODEL_NOT_FOUND) for what cannot be a name on the hub."""
        parts = name.split("/")
        file = "/".join(parts[2:]) if len(parts) > 2 and name.endswith(".gguf") else None
        repository = name if file is None else "/".join(parts[:2])
        if not _REPOSITORY.fullmatch(repository) or ".." in parts:
            message = f"There is no model {name}: a hub id is OWNER/NAME; check the name, or the path if it is one."
            raise StartError(StartCause.MODEL_NOT_FOUND, message)
        return cls(repository, file)


async def download_model(
    name: str, options: FetchOptions, state: StartState, deadline: float | None = None, access: HubAccess | None = None
) -> Path:
    """The folder of a repository, or the file that `name` names. Raises StartError with what to do.

    `deadline`: when to give up waiting for the hub, on the monotonic clock.
    """
    access = access or hub_access()
    try:
        if is_url(name):
            return await _from_url(name, options, state, deadline, access)
        hub_name = HubName.parse(name)
        if hub_name.file is not None:
            options = replace(options, choice=FileChoice(allow=(hub_name.file,)))
        snapshot = await _Repository(hub_name, options, state, deadline, access).snapshot()
    except OSError as error:
        raise disk_error(error, options.download_dir or access.cache_dir) from error
    return snapshot if hub_name.file is None else snapshot / hub_name.file


async def download_to(
    name: str,
    folder: Path,
    options: FetchOptions,
    state: StartState,
    deadline: float | None = None,
    access: HubAccess | None = None,
) -> None:
    """All wanted files into `folder`; nothing is asked of the network when it is whole. Raises StartError."""
    access = access or hub_access()
    hub_name = None if is_url(name) else HubName.parse(name)
    if hub_name is not None and hub_name.file is not None:
        options = replace(options, choice=FileChoice(allow=(hub_name.file,)))
    if _is_done(name, folder, options):
        logger.info("%s is whole already", folder)
        return
    if access.offline:
        raise StartError(
            StartCause.HUB_UNREACHABLE, f"{folder} is not whole, and HF_HUB_OFFLINE forbids to fetch {name}."
        )
    async with Web.connect(access, name, options.revision) as web:
        listing = await Patience(state, deadline).run(lambda: _list(web, hub_name, name, options))
        order = Order(name, listing, options.choice, options.digest, deadline)
        await fetch(web, order, folder, state)


async def _list(web: Web, hub_name: HubName | None, url: str, options: FetchOptions) -> Listing:
    if hub_name is None:
        _check_url(url, options.digest)
        return await list_url(web, url)
    return await list_repository(web, hub_name.repository, options.revision, options.choice)


def _check_url(url: str, digest: str | None) -> None:
    if url.startswith("http://") and digest is None:
        message = f"{url} is not encrypted, so anybody on the way could change it; use https, or name its --digest."
        raise StartError(StartCause.INVALID_SETTINGS, message)


def _is_done(name: str, folder: Path, options: FetchOptions) -> bool:
    """By the folder's marker. A folder keeps one revision of one model: another one is refused."""
    marker = read_marker(folder)
    if marker is None:
        return False
    other = is_commit(options.revision) and marker.revision != options.revision
    if marker.model != name or other:
        message = f"{folder} holds {marker.model} ({marker.revision or 'no revision'}) already; name another --dest."
        raise StartError(StartCause.INVALID_SETTINGS, message)
    if marker.choice != options.choice or not is_whole(folder, marker):
        return False
    check_digest(name, marker.files, options.digest)
    return True


def download_model_now(name: str, options: FetchOptions, state: StartState) -> Path:
    """The same for callers without an event loop; one that runs in this thread is not disturbed."""
    work = _shown(name, options, state)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


async def _shown(name: str, options: FetchOptions, state: StartState) -> Path:
    """With a progress bar at a terminal."""
    with load_progress() as show:
        follow = asyncio.create_task(follow_download(state, show))
        try:
            return await download_model(name, options, state)
        finally:
            follow.cancel()


class _Repository:
    """One repository in the cache and on the hub."""

    def __init__(
        self, name: HubName, options: FetchOptions, state: StartState, deadline: float | None, access: HubAccess
    ) -> None:
        self._name = name
        self._options = options
        self._state = state
        self._deadline = deadline
        self._access = access
        root = options.download_dir.expanduser() if options.download_dir else access.cache_dir
        self._folder = root / f"models--{name.repository.replace('/', '--')}"
        self._revision = options.revision or "main"
        if ".." in self._revision.split("/"):
            message = f"{name.repository} has no revision {self._revision}; check --revision."
            raise StartError(StartCause.REVISION_NOT_FOUND, message)

    async def snapshot(self) -> Path:
        """The folder with the wanted files of the wanted commit."""
        cached = self._cached()
        if cached is not None and is_commit(self._options.revision):
            marker = read_marker(cached)
            if marker is not None and marker.choice == self._options.choice and is_whole(cached, marker):
                return cached
        if self._access.offline:
            return self._offline(cached)
        async with Web.connect(self._access, self._name.repository, self._options.revision) as web:
            return await self._online(web, cached)

    async def _online(self, web: Web, cached: Path | None) -> Path:
        try:
            listing = await self._list(web, self._patience() if cached is None else None)
        except (TryLaterError, StartError) as error:
            if cached is None or error.cause not in (StartCause.HUB_UNREACHABLE, StartCause.MODEL_RATE_LIMITED):
                raise
            logger.warning("%s The copy in %s is used.", error, cached)
            return cached
        folder = self._folder / "snapshots" / (listing.commit or "")
        if not all(is_there(folder, file) for file in listing.files):
            order = Order(self._name.repository, listing, self._options.choice, deadline=self._deadline)
            await fetch(web, order, folder, self._state)
        self._write_ref(listing.commit or "")
        return folder

    async def _list(self, web: Web, patience: Patience | None) -> Listing:
        async def attempt() -> Listing:
            return await list_repository(web, self._name.repository, self._options.revision, self._options.choice)

        return await (attempt() if patience is None else patience.run(attempt))

    def _patience(self) -> Patience:
        return Patience(self._state, self._deadline)

    def _offline(self, cached: Path | None) -> Path:
        if cached is None or not any(self._options.choice.wants(path.name) for path in cached.rglob("*")):
            message = (
                f"{self._name.repository} is not on this machine, and HF_HUB_OFFLINE forbids to fetch it; "
                "fetch it before, or give a local folder."
            )
            raise StartError(StartCause.MODEL_NOT_FOUND, message)
        return cached

    def _cached(self) -> Path | None:
        """The snapshot that the revision last meant here."""
        commit = self._revision
        if not is_commit(commit):
            ref = self._folder / "refs" / self._revision
            if not ref.is_file():
                return None
            commit = ref.read_text(encoding="utf-8").strip()
        folder = self._folder / "snapshots" / commit
        return folder if commit and folder.is_dir() else None

    def _write_ref(self, commit: str) -> None:
        if not is_commit(self._revision):
            ref = self._folder / "refs" / self._revision
            ref.parent.mkdir(parents=True, exist_ok=True)
            ref.write_text(commit, encoding="utf-8")


async def _from_url(
    url: str, options: FetchOptions, state: StartState, deadline: float | None, access: HubAccess
) -> Path:
    """Kept under the URL's own folder: another URL is another model."""
    _check_url(url, options.digest)
    root = options.download_dir.expanduser() if options.download_dir else access.cache_dir
    folder = root / _URL_FOLDER / hashlib.sha256(url.encode()).hexdigest()[:16]
    file = folder / url_file_name(url)
    marker = read_marker(folder)
    if marker is not None and is_whole(folder, marker):
        return file
    async with Web.connect(access, url) as web:
        listing = await Patience(state, deadline).run(lambda: list_url(web, url))
        await fetch(web, Order(url, listing, FileChoice(), options.digest, deadline), folder, state)
    return file
