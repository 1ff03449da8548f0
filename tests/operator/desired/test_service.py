"""The Service for clients."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.desired.service import service, service_scheme
from octavo_operator.observed import PodView, RevisionView

TLS = {"tls": {"secretName": "cert"}}


@pytest.mark.parametrize(("scheme", "number"), [("http", 80), ("https", 443)])
def test_the_port_is_the_schemes_own(scheme: str, number: int, deployment: Callable[..., Any]) -> None:
    made = service(deployment(), scheme)
    (port,) = made["spec"]["ports"]
    assert (port["name"], port["port"], port["targetPort"]) == (scheme, number, "http")
    assert made["metadata"]["name"] == "small"


def test_only_routed_servers_are_behind_it(deployment: Callable[..., Any]) -> None:
    assert service(deployment(), "http")["spec"]["selector"] == {
        "octavo.dev/deployment": "small",
        "octavo.dev/component": "server",
        "octavo.dev/routed": "true",
    }


def revision(rendered: Any, **pods: bool) -> RevisionView:
    """`pods`: by name, whether they are ready."""
    views = tuple(
        PodView(name, name, "a", 0.0, "Running", ready, routed=True, drain_started_at=None, terminating=False)
        for name, ready in pods.items()
    )
    return RevisionView("a", 1, {"template": rendered.template}, len(views), views)


def test_nobody_serving_it_speaks_what_the_spec_asks_for(deployment: Callable[..., Any]) -> None:
    assert service_scheme(deployment(), ()) == "http"
    assert service_scheme(deployment(access=TLS), ()) == "https"


def test_it_goes_on_speaking_what_the_serving_pods_speak_until_as_many_new_ones_are_ready(
    deployment: Callable[..., Any], render: Callable[..., Any]
) -> None:
    """A certificate that is not there, and the rollback after it, leave clients where they are."""
    plain, tls = render({}), render({"access": TLS})
    wanted = deployment(access=TLS)
    assert service_scheme(wanted, [revision(plain, a=True, b=True), revision(tls, c=False)]) == "http"
    assert service_scheme(wanted, [revision(plain, a=True, b=True), revision(tls, c=True)]) == "http"
    assert service_scheme(wanted, [revision(plain, a=True), revision(tls, c=True)]) == "https"
    assert service_scheme(wanted, [RevisionView("x", 1, {}, 0)]) == "https"
