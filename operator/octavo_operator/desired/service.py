"""The Service that clients talk to: the serving pods of every revision that are not being drained."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment
from octavo_operator.desired.pod_template import scheme_of
from octavo_operator.observed import RevisionView

_PORTS = {"http": 80, "https": 443}  # of the schemes themselves, so that URLs need none


def service_scheme(deployment: LLMDeployment, revisions: Iterable[RevisionView]) -> str:
    """What most of the pods behind it speak, and while none serves what the spec asks for.

    So it changes in the middle of a rollout that changes `access.tls`, and not at all when that rollout fails.
    """
    wanted = "https" if deployment.spec.access.tls else "http"
    spoken = Counter(
        scheme_of(view.data["template"])
        for view in revisions
        for pod in view.pods
        if view.data.get("template") and pod.is_active and pod.ready and pod.routed
    )
    return max((wanted, *spoken), key=lambda scheme: spoken[scheme])  # the wanted one where they are as many


def service(deployment: LLMDeployment, scheme: str) -> dict[str, Any]:
    """Plain or TLS, on the scheme's own port."""
    port = {
        "name": scheme,
        "appProtocol": scheme,
        "port": _PORTS[scheme],
        "protocol": "TCP",
        "targetPort": names.PORT_NAME,
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": names.child_metadata(deployment, names.service(deployment.name)),
        "spec": {"type": "ClusterIP", "selector": names.routed_selector(deployment.name), "ports": [port]},
    }
