"""Probes that never kill a pod for loading or for being busy."""

from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator.desired.probes import probes
from octavo_operator.effective import RenderDefaults

DEFAULTS = RenderDefaults(image="i", operator_version="1")


@pytest.mark.parametrize("seconds", [1, 600, 3601])
def test_the_startup_probe_is_more_patient_than_the_runtime_itself(seconds: int) -> None:
    startup = probes(seconds, DEFAULTS, tls=False)["startupProbe"]
    patience = startup["failureThreshold"] * startup["periodSeconds"]
    assert seconds + 30 <= patience < seconds + 30 + startup["periodSeconds"]


def test_liveness_waits_for_a_busy_server_and_readiness_is_quick() -> None:
    made = probes(600, DEFAULTS, tls=False)
    assert (made["livenessProbe"]["timeoutSeconds"], made["livenessProbe"]["failureThreshold"]) == (10, 3)
    assert made["readinessProbe"]["periodSeconds"] == 2
    paths = [probe["httpGet"]["path"] for probe in made.values()]
    assert paths == ["/health/startup", "/health/live", "/health/ready"]


def test_probes_speak_the_containers_scheme(render: Callable[..., Any]) -> None:
    for access, scheme in (({}, "HTTP"), ({"tls": {"secretName": "cert"}}, "HTTPS")):
        container = render({"access": access}).container
        for name in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert container[name]["httpGet"]["scheme"] == scheme
            assert container[name]["httpGet"]["port"] == "http"
