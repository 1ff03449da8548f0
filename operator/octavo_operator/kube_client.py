"""What the operator knows of the API server: the verbs (`KubeClient`), the objects and the errors.

`kube.Kube` speaks to a server, `testing.FakeKube` keeps objects in memory; whoever needs objects takes a `KubeClient`.

    ApiError
    |- NotFound         404
    |- Conflict         409: someone else wrote, or the uid is another one
    |- Gone             410: a resource version too old
    |- Invalid          400, 422: the server refuses the object itself
    |- Forbidden        403: quota, Pod Security, an admission webhook, or missing rights
    |- TooManyRequests  429: not before `retry_after` seconds
    `- Unavailable      5xx, no connection, no answer in time: try again
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Raw = dict[str, Any]
"""An object as JSON."""

DEFAULT_RETRY_AFTER = 1.0


class ApiError(Exception):
    """An answer that is not the wanted one. `message` holds the server's own words."""

    def __init__(self, status: int, message: str, subject: str = "") -> None:
        super().__init__(f"{subject}: {message}" if subject else message)
        self.status = status
        self.message = message


class NotFound(ApiError):  # noqa: N818
    """There is no such object, or no such kind."""


class Conflict(ApiError):  # noqa: N818
    """The object changed meanwhile, exists already, or has another uid."""


class Gone(ApiError):  # noqa: N818
    """The resource version is too old: list again."""


class Invalid(ApiError):  # noqa: N818
    """The server refuses the object: schema, CEL, immutable field."""


class Unavailable(ApiError):  # noqa: N818
    """The server cannot answer now. Status 0: no answer at all."""


class TooManyRequests(ApiError):  # noqa: N818
    """The server asks for patience."""

    def __init__(self, status: int, message: str, subject: str = "", retry_after: float = DEFAULT_RETRY_AFTER) -> None:
        super().__init__(status, message, subject)
        self.retry_after = retry_after


class Forbidden(ApiError):  # noqa: N818
    """Refused by a quota, Pod Security, an admission webhook, or for want of rights."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: Invalid,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
}


def error_of(status: int, message: str, subject: str, retry_after: float | None = None) -> ApiError:
    """The typed error of an HTTP status."""
    if status == 429:
        return TooManyRequests(status, message, subject, DEFAULT_RETRY_AFTER if retry_after is None else retry_after)
    if status >= 500:
        return Unavailable(status, message, subject)
    return _BY_STATUS.get(status, ApiError)(status, message, subject)


@dataclass(frozen=True, slots=True)
class ObjectList:
    """What a list gave, and the resource version that it shows."""

    items: Sequence[Raw]
    resource_version: str = ""


class KubeClient(Protocol):
    """The API server's verbs, each with a timeout of its own. All raise ApiError."""

    async def get(self, kind: str, namespace: str | None, name: str) -> Raw:
        """One object."""
        ...

    async def list(self, kind: str, namespace: str | None = None, *, labels: str = "", fields: str = "") -> ObjectList:
        """Objects of a namespace, or of the cluster."""
        ...

    async def apply(self, manifest: Mapping[str, Any]) -> Raw:
        """Server-side apply as `octavo-operator`, by force: ours are the fields that we send, and only those."""
        ...

    async def create(self, manifest: Mapping[str, Any]) -> Raw:
        """A new object; Conflict when there is one."""
        ...

    async def replace(self, manifest: Mapping[str, Any]) -> Raw:
        """The whole object; Conflict unless its resourceVersion is the newest."""
        ...

    async def merge_patch(self, kind: str, namespace: str, name: str, body: Mapping[str, Any]) -> Raw:
        """JSON merge patch: null removes."""
        ...

    async def patch_status(self, namespace: str, name: str, uid: str, status: Mapping[str, Any]) -> Raw:
        """The whole status of an LLMDeployment: what is not in it is removed. Conflict when the uid is another one."""
        ...

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str | None = None, grace_seconds: int | None = None
    ) -> None:
        """Delete in the background; an object that is not there is no error. Conflict when the uid is another one."""
        ...

    async def read_secret(self, namespace: str, name: str) -> dict[str, bytes]:
        """The values of a Secret."""
        ...

    async def create_event(self, event: Mapping[str, Any]) -> None:
        """A Kubernetes Event."""
        ...

    async def serves(self, kind: str) -> bool:
        """Whether the server has this (optional) kind."""
        ...


class Witness(Protocol):
    """Who is told of own writes: the cache."""

    def see(self, raw: Raw) -> object:
        """An object as a write returned it."""
        ...

    def forget(self, kind: str, namespace: str | None, name: str) -> object:
        """An object is gone."""
        ...


def name_of(raw: Mapping[str, Any]) -> str:
    """`Pod default/smollm-1`, for messages."""
    metadata = raw.get("metadata", {})
    namespace, name = metadata.get("namespace"), metadata.get("name", "?")
    return f"{raw.get('kind', '?')} {namespace}/{name}" if namespace else f"{raw.get('kind', '?')} {name}"


def version_of(raw: Mapping[str, Any]) -> int:
    """The resource version as the number that it is; 0 when there is none."""
    text = raw.get("metadata", {}).get("resourceVersion", "")
    return int(text) if text.isdigit() else 0
