"""Every kopf decorator of the operator: the table of contents of what it listens to. Each body is one call.

Only low-level events are used, so kopf stores nothing on any object: no finalizer, no annotation, no progress. `register`
is called by `watching.py` with a registry of its own; nothing is registered by import.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import kopf

from octavo_operator.api import GROUP, PLURAL, VERSION
from octavo_operator.kinds import WATCHED, Kind
from octavo_operator.kube_client import Raw

WATCH_SECONDS = 600  # then the server ends a watch and a new one begins
INACTIVE_SECONDS = 75  # bookmarks come every minute; a watch that is silent for longer is dead
RETRIES = (0.5, 1.0, 2.0, 3.0, *[5.0] * 60)  # seconds: some minutes; then everything is listed anew
CHUNK = 500  # objects of one answer to a list
VALIDATE = "validate"  # the webhook's path
UNPROCESSABLE = 422


@dataclass(frozen=True, slots=True)
class Webhook:
    """The validating webhook: where it listens, its certificate, and what it has against a resource (empty: nothing)."""

    port: int
    cert_dir: str
    objection: Callable[[Raw], str]


class Listener(Protocol):
    """Who is told of watch events."""

    def __call__(self, event: str | None, raw: Raw, /) -> None:
        """ADDED, MODIFIED, DELETED, or None for an object of the watch's first list."""
        ...


def register(
    registry: kopf.OperatorRegistry, listener: Listener, webhook: Webhook | None = None, api_server: str = ""
) -> None:
    """Put all handlers into the registry. `api_server`: its address for a pod; kopf's own would need a cluster's DNS."""

    @kopf.on.login(registry=registry)
    async def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
        own = kopf.login_with_service_account(**kwargs)
        if own is not None and api_server:
            return replace(own, server=api_server)
        return own or kopf.login_with_kubeconfig(**kwargs)

    async def happened(event: kopf.RawEvent, **_: Any) -> None:
        listener(event["type"], dict(event["object"]))

    for kind in WATCHED:
        kopf.on.event(kind.group, kind.version, kind.plural, registry=registry, id=kind.plural)(happened)

    if webhook is not None:

        @kopf.on.validate(GROUP, VERSION, PLURAL, id=VALIDATE, registry=registry)
        async def validate(body: kopf.Body, **_: Any) -> None:
            _refuse(webhook.objection(dict(body)))


def kopf_settings(kinds: tuple[Kind, ...] = WATCHED, *, webhook: Webhook | None = None) -> kopf.OperatorSettings:
    """kopf's own settings: quiet, impatient, and nothing of ours under its names."""
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.posting.loggers = False
    settings.peering.standalone = True
    settings.scanning.disabled = True  # our kinds are known, and the list of CRDs is not ours to read
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.inactivity_timeout = INACTIVE_SECONDS
    settings.watching.connect_timeout = 10
    settings.watching.chunk_size = CHUNK
    settings.networking.request_timeout = 60
    settings.networking.connect_timeout = 10
    settings.networking.error_backoffs = RETRIES
    settings.persistence.finalizer = "octavo.dev/unused"
    settings.persistence.diffbase_storage = _NoEssence()
    settings.persistence.progress_storage = _NoProgress()
    settings.process.ultimate_exiting_timeout = None  # its thread ends with the process
    if webhook is not None:
        settings.admission.server = kopf.WebhookServer(
            port=webhook.port, certfile=f"{webhook.cert_dir}/tls.crt", pkeyfile=f"{webhook.cert_dir}/tls.key"
        )
    for kind in kinds:
        selector = (kind.group, kind.version, kind.plural)
        if kind.labels:
            settings.watching.label_selectors[selector] = kind.labels
        if kind.fields:
            settings.watching.field_selectors[selector] = kind.fields
    return settings


class _NoEssence(kopf.DiffBaseStorage):
    """Nothing is remembered of an object, and nothing of it copied at each event to be compared with that."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        pass


class _NoProgress(kopf.ProgressStorage):
    """Nothing is remembered of handlers either."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        pass

    def purge(self, **_: Any) -> None:
        pass

    def touch(self, **_: Any) -> None:
        pass

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


def _refuse(objection: str) -> None:
    if objection:
        raise kopf.AdmissionError(objection, code=UNPROCESSABLE)
