"""The three probes of a serving container.

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


def _probe(path: str, *, tls: bool, period: int, timeout: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": names.PORT_NAME, "scheme": "HTTPS" if tls else "HTTP"},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }
