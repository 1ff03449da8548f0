"""What kopf is told: only to watch, quietly, and what of it."""

from typing import Any

import kopf
import pytest

from octavo_operator.handlers import VALIDATE, Webhook, kopf_settings, register
from octavo_operator.kinds import KINDS, OURS, WATCHED
from octavo_operator.kube_client import Raw


class Heard:
    """Events that came through."""

    def __init__(self) -> None:
        self.events: list[tuple[str | None, Raw]] = []

    def __call__(self, event: str | None, raw: Raw) -> None:
        self.events.append((event, raw))


def registered(heard: Heard | None = None) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()
    register(registry, heard or Heard())
    return registry


def watched(registry: kopf.OperatorRegistry) -> list[Any]:
    return list(registry._watching.get_all_handlers())


def test_every_watched_kind_has_one_low_level_handler() -> None:
    selectors = {(str(each.selector.group), each.selector.version, each.id) for each in watched(registered())}
    assert selectors == {(kind.group, kind.version, kind.plural) for kind in WATCHED}


def test_nothing_is_registered_that_would_store_something_on_an_object() -> None:
    registry = registered()
    assert not registry._changing.get_all_handlers()  # annotations, finalizers
    assert not registry._spawning.get_all_handlers()  # finalizers
    assert not registry._webhooks.get_all_handlers()


def test_no_object_is_copied_to_be_compared_and_nothing_is_remembered_of_it() -> None:
    persistence = kopf_settings().persistence
    body, patch = kopf.Body({"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {"a": 1}}), kopf.Patch()
    essence = persistence.diffbase_storage.build(body=body)
    assert essence == {}
    assert persistence.progress_storage.clear(essence=essence) is essence
    assert persistence.diffbase_storage.fetch(body=body) is None
    assert persistence.progress_storage.fetch(key="h", body=body) is None  # type: ignore[arg-type]
    persistence.diffbase_storage.store(body=body, patch=patch, essence=essence)
    persistence.progress_storage.store(key="h", record={}, body=body, patch=patch)  # type: ignore[arg-type,typeddict-item]
    persistence.progress_storage.purge(key="h", body=body, patch=patch)  # type: ignore[arg-type]
    persistence.progress_storage.touch(body=body, patch=patch, value="now")
    assert not patch


def test_nothing_is_registered_globally() -> None:
    registered()
    assert not kopf.get_default_registry()._watching.get_all_handlers()


@pytest.mark.parametrize("event", ["ADDED", "MODIFIED", "DELETED", None])
async def test_a_handler_hands_on_the_raw_object_and_nothing_else(event: str | None) -> None:
    heard = Heard()
    handler = watched(registered(heard))[0]
    assert await handler.fn(event={"type": event, "object": {"kind": "Pod"}}, patch={}, memo=None) is None
    assert heard.events == [(event, {"kind": "Pod"})]


def test_selectors_are_the_servers() -> None:
    settings = kopf_settings()
    assert settings.watching.label_selectors["apps", "v1", "deployments"] == OURS
    assert settings.watching.field_selectors["", "v1", "secrets"] == "type=Opaque"
    assert ("", "v1", "pods") not in settings.watching.label_selectors
    assert len(settings.watching.label_selectors) == sum(bool(kind.labels) for kind in KINDS.values())


def test_nothing_is_posted_and_a_dead_watch_is_noticed() -> None:
    settings = kopf_settings()
    assert not settings.posting.enabled
    assert settings.peering.standalone
    assert settings.watching.server_timeout == 600
    assert settings.watching.inactivity_timeout == 75
    assert settings.networking.request_timeout == 60


def test_neither_crds_nor_namespaces_are_scanned() -> None:
    """The chart grants neither; kopf would ask again and again, and give up watching."""
    assert kopf_settings().scanning.disabled


def refusing(message: str) -> Webhook:
    return Webhook(port=9443, cert_dir="/etc/octavo/webhook", objection=lambda _: message)


@pytest.mark.parametrize("message", ["", "spec.resources.memory: 'plenty' is not a quantity."])
async def test_the_webhook_refuses_with_the_objection_and_otherwise_says_nothing(message: str) -> None:
    registry = kopf.OperatorRegistry()
    register(registry, Heard(), refusing(message))
    (handler,) = registry._webhooks.get_all_handlers()
    assert (handler.id, handler.reason.value) == (VALIDATE, "validating")
    if not message:
        await handler.fn(body={})
        return
    with pytest.raises(kopf.AdmissionError) as caught:
        await handler.fn(body={})
    assert (str(caught.value), caught.value.code) == (message, 422)


def test_the_webhook_reads_its_certificate_where_the_chart_puts_it() -> None:
    server = kopf_settings(webhook=refusing("")).admission.server
    assert isinstance(server, kopf.WebhookServer)
    assert (server.port, server.certfile, server.pkeyfile) == (
        9443,
        "/etc/octavo/webhook/tls.crt",
        "/etc/octavo/webhook/tls.key",
    )
    assert kopf_settings().admission.server is None
