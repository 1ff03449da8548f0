"""The three probes of a serving container, and the hook before its end.

startup waits as long as the model may take to load, so that liveness never kills a loading pod; liveness asks for the
engine's life, not for an answer under load; readiness is quick, so that a ready replica is used at once.
"""

from typing import Any

from octavo_operator import names
from octavo_operator.effective import RenderDefaults
from octavo_operator.quantity import round_up

_GRACE_SECONDS = 30  # the runtime ends itself at its own deadline and says why; the probe comes after it


def probes(startup_seconds: int, defaults: RenderDefaults, *, tls: bool) -> dict[str, Any]:
    """Keys of the container."""
    period = defaults.startup_period_seconds
    patience = round_up(startup_seconds + _GRACE_SECONDS, period) // period
    return {
        "startupProbe": _probe("/health/startup", tls=tls, period=period, timeout=5, failures=patience),
        "livenessProbe": _probe(
            "/health/live", tls=tls, period=defaults.liveness_period_seconds, timeout=10, failures=3
        ),
        "readinessProbe": _probe(
            "/health/ready", tls=tls, period=defaults.readiness_period_seconds, timeout=5, failures=3
        ),
    }


def hooks(unroute_seconds: int, *, tls: bool) -> dict[str, Any]:
    """Keys of the container. However the pod comes to its end, it still serves while routers forget it; where the operator
    has drained it they have forgotten it already, and the runtime, which was told, answers at once."""
    if not unroute_seconds:
        return {}
    return {"lifecycle": {"preStop": {"httpGet": _get(f"/health/unrouted?seconds={unroute_seconds}", tls=tls)}}}


def _get(path: str, *, tls: bool) -> dict[str, Any]:
    return {"path": path, "port": names.PORT_NAME, "scheme": "HTTPS" if tls else "HTTP"}


def _probe(path: str, *, tls: bool, period: int, timeout: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": _get(path, tls=tls),
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }
