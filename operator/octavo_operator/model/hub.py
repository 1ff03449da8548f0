"""The HTTP API of a Hugging Face hub or a mirror of one: what a revision is, which files it has, bytes of a file.

Given a session that somebody else closes. Every refusal is a ModelProblem with the field to change; the token goes into
one header and nowhere else.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from octavo_operator.model.http_get import Answer, Getter, Span, Timeouts
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.retry_after import retry_after
from octavo_operator.reasons import Reason

DEFAULT_REVISION = "main"
_LISTING_LIMIT = 64 << 20  # bytes of JSON; some repositories have tens of thousands of files
_FILE_LIMIT = 64 << 20  # bytes of a file that is read whole: config.json, an index, a tokenizer
_COMMIT_LENGTH = 40


@dataclass(frozen=True, slots=True)
class HubSettings:
    """Where the hub is when the spec does not say, and how long it may take."""

    endpoint: str = "https://huggingface.co"
    timeouts: Timeouts = field(default_factory=Timeouts)


@dataclass(frozen=True, slots=True)
class Place:
    """A repository at a hub, and the token it is read with."""

    endpoint: str
    repository: str
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a revision; the hub knows the sha256 only of large files."""

    path: str
    size: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Revision:
    """What a branch, tag or commit is now."""

    commit: str
    files: tuple[HubFile, ...]


class _Lfs(msgspec.Struct, frozen=True):
    sha256: str | None = None
    size: int | None = None


class _Sibling(msgspec.Struct, frozen=True):
    rfilename: str
    size: int | None = None
    lfs: _Lfs | None = None


class _RepositoryInfo(msgspec.Struct, frozen=True):
    sha: str
    siblings: tuple[_Sibling, ...] = ()


class Hub:
    """A client of hubs."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        settings: HubSettings | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings or HubSettings()
        self._getter = Getter(session, self._settings.timeouts)
        self._clock = clock

    def place(self, repository: str, endpoint: str | None = None, token: str | None = None) -> Place:
        """`endpoint`: of the spec, None for the default."""
        return Place(_clean_endpoint(endpoint or self._settings.endpoint), repository, clean_token(token))

    async def revision(self, place: Place, revision: str | None) -> Revision:
        """The commit that a branch, tag or commit stands for, with its files."""
        wanted = revision or DEFAULT_REVISION
        path = f"/api/models/{quote(place.repository)}/revision/{quote(wanted, safe='')}?blobs=true"
        answer = await self._getter.get(place.endpoint + path, place.token, _LISTING_LIMIT)
        self._raise_for_status(answer, place, f"revision {wanted}")
        try:
            info = msgspec.json.decode(answer.body, type=_RepositoryInfo)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise _no_hub(place) from None
        if not is_commit(info.sha):
            raise _no_hub(place)
        if is_commit(wanted) and info.sha != wanted:
            raise _revision_not_found(place, f"revision {wanted}")
        return Revision(info.sha, tuple(_hub_file(sibling) for sibling in info.siblings))

    async def read(self, place: Place, commit: str, path: str, span: Span | None = None) -> bytes:
        """A file, or a part of it: fewer bytes than asked for where the file ends."""
        url = f"{place.endpoint}/{quote(place.repository)}/resolve/{commit}/{quote(path)}"
        answer = await self._getter.get(url, place.token, _FILE_LIMIT, span)
        if answer.status == 416:  # the span begins behind the end
            return b""
        self._raise_for_status(answer, place, f"file {path}")
        return answer.body

    async def read_url(self, url: str, token: str | None, span: Span) -> Answer:
        """A part of the file at an address that is no hub's; `total` of the answer is its size."""
        place = Place(str(URL(url).origin()), url, clean_token(token))
        answer = await self._getter.get(url, place.token, span.length, span)
        if answer.status == 416:
            return Answer(206, answer.headers, b"", 0)
        self._raise_for_status(answer, place, "such file")
        return answer

    def _raise_for_status(self, answer: Answer, place: Place, what: str) -> None:
        if answer.status in (200, 206):
            return
        code = answer.headers.get("X-Error-Code", "")
        if answer.status == 429:
            raise self._rate_limited(answer, place)
        if code == "RevisionNotFound":
            raise _revision_not_found(place, what)
        if code == "EntryNotFound":
            raise ModelProblem(
                Reason.MODEL_CORRUPT, f"{place.repository} lists {what}, but does not give it; upload it again."
            )
        if code == "RepoNotFound" or answer.status == 404:
            raise _model_not_found(place)
        if answer.status in (401, 403, 451):
            raise _denied(place, answer.status)
        if answer.status == 408 or answer.status >= 500:
            raise ModelProblem(
                Reason.HUB_UNREACHABLE,
                f"{place.endpoint} answers {answer.status} for {place.repository}; it is asked again.",
            )
        raise _no_hub(place, answer.status)

    def _rate_limited(self, answer: Answer, place: Place) -> ModelProblem:
        seconds = retry_after(answer.headers, self._clock())
        when = f"in {seconds:.0f} seconds" if seconds is not None else "later"
        remedy = "" if place.token else "; a token in spec.model.credentials has a higher limit"
        return ModelProblem(
            Reason.MODEL_RATE_LIMITED,
            f"{place.endpoint} limits requests for {place.repository}; it is asked again {when}{remedy}.",
            seconds,
        )


def is_commit(text: str) -> bool:
    """Whether it is the 40 hex digits of a commit."""
    return len(text) == _COMMIT_LENGTH and all(character in "0123456789abcdef" for character in text)


def clean_token(token: str | None) -> str | None:
    """Without the line break that files end with. Raises ModelProblem when it cannot be a token."""
    stripped = token.strip() if token else ""
    if not stripped:
        return None
    if not (stripped.isascii() and stripped.isprintable()) or " " in stripped:
        raise ModelProblem(
            Reason.MODEL_ACCESS_DENIED,
            "The Secret of spec.model.credentials holds spaces, line breaks or control characters within the token; "
            "store the bare token.",
        )
    return stripped


def is_endpoint(text: str) -> bool:
    """Whether it is the address of a hub or a mirror: scheme and host, without user and query."""
    try:
        url = URL(text)
    except ValueError:
        return False
    return url.scheme in ("http", "https") and bool(url.host) and not url.query_string and not url.raw_user


def _clean_endpoint(endpoint: str) -> str:
    if not is_endpoint(endpoint):
        raise ModelProblem(
            Reason.SPEC_INVALID,
            "spec.model.endpoint is no address of a hub; write https://HOST, such as https://huggingface.co.",
        )
    return endpoint.rstrip("/")


def _hub_file(sibling: _Sibling) -> HubFile:
    lfs = sibling.lfs or _Lfs()
    size = sibling.size if sibling.size is not None else lfs.size
    return HubFile(sibling.rfilename, max(0, size or 0), lfs.sha256)


def _denied(place: Place, status: int) -> ModelProblem:
    if place.token:
        remedy = "accept its licence with the token's account, or put another token into the Secret of spec.model.credentials"
    else:
        remedy = (
            "if it is gated or private, name a Secret with a token in spec.model.credentials; else check spec.model.uri"
        )
    return ModelProblem(
        Reason.MODEL_ACCESS_DENIED, f"{place.endpoint} denies access to {place.repository} ({status}); {remedy}."
    )


def _model_not_found(place: Place) -> ModelProblem:
    private = "the token of spec.model.credentials may not see it" if place.token else "it needs spec.model.credentials"
    return ModelProblem(
        Reason.MODEL_NOT_FOUND,
        f"{place.endpoint} knows no model {place.repository}, or {private}; check spec.model.uri.",
    )


def _revision_not_found(place: Place, what: str) -> ModelProblem:
    return ModelProblem(
        Reason.REVISION_NOT_FOUND,
        f"{place.repository} has no {what}; write a branch, tag or commit of it into spec.model.revision.",
    )


def _no_hub(place: Place, status: int = 200) -> ModelProblem:
    return ModelProblem(
        Reason.HUB_UNREACHABLE,
        f"{place.endpoint} does not answer like a Hugging Face hub (status {status}); check spec.model.endpoint.",
    )
