"""Manifests of small models, several of which fit a machine with two cores."""

from typing import Any

from e2e.kubernetes import Object
from e2e.models import HUB_NAME

START_S = 240.0  # for one to be Ready beside other tests
_DRAIN_SECONDS = 30


def small_model(name: str, **spec: Any) -> Object:
    """An LLMDeployment that serves the claim `model`; fields of the spec replace those that are here."""
    defaults: Object = {
        "model": {"uri": "pvc://model"},
        "engine": {"device": "cpu", "maxModelLen": 1024},
        "resources": {"cpu": "200m", "memory": "2Gi"},
        "rollout": {"drain": {"timeoutSeconds": _DRAIN_SECONDS, "unrouteSeconds": 1}},
    }
    return {
        "apiVersion": "octavo.dev/v1alpha1",
        "kind": "LLMDeployment",
        "metadata": {"name": name},
        "spec": {**defaults, **spec},
    }


def hub_model(url: str, **fields: Any) -> Object:
    """`spec.model` of the model at a mirror."""
    return {"uri": f"hf://{HUB_NAME}", "endpoint": url, **fields}
