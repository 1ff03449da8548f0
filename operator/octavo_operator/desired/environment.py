"""Environment of the serving and the downloading container. Nothing secret but by reference."""

from typing import Any

from octavo_operator.api import LLMDeployment
from octavo_operator.desired.volumes import CACHE_FOLDER
from octavo_operator.effective import HUB_TOKEN, Effective, token_key
from octavo_operator.weights import Download, Weights, place_of

Variable = dict[str, Any]


def serving_environment(deployment: LLMDeployment, effective: Effective, weights: Weights) -> list[Variable]:
    """A pod that finds its weights on a volume is never given a token, and asks nobody for anything."""
    if isinstance(place_of(deployment, weights), Download):
        return [*_common(), *_hub(deployment, effective)]
    return [*_common(), {"name": "HF_HUB_OFFLINE", "value": "1"}]


def download_environment(deployment: LLMDeployment, effective: Effective) -> list[Variable]:
    return [*_common(), *_hub(deployment, effective)]


def _common() -> list[Variable]:
    """Any user id works: every cache is on a writable folder, and libraries that ask for the user's name get one."""
    return [
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
        {"name": "HOME", "value": CACHE_FOLDER},
        {"name": "USER", "value": "octavo"},
        {"name": "XDG_CACHE_HOME", "value": CACHE_FOLDER},
        {"name": "HF_HOME", "value": f"{CACHE_FOLDER}/hf"},
        {"name": "HF_HUB_DISABLE_TELEMETRY", "value": "1"},
        {"name": "TRITON_CACHE_DIR", "value": f"{CACHE_FOLDER}/triton"},
        {"name": "TORCHINDUCTOR_CACHE_DIR", "value": f"{CACHE_FOLDER}/inductor"},
    ]


def _hub(deployment: LLMDeployment, effective: Effective) -> list[Variable]:
    variables: list[Variable] = []
    if effective.hub_endpoint:
        variables.append({"name": "HF_ENDPOINT", "value": effective.hub_endpoint})
    credentials = deployment.spec.model.credentials
    if credentials:
        source = {"name": credentials.secret_ref.name, "key": token_key(credentials)}
        variables.append({"name": HUB_TOKEN, "valueFrom": {"secretKeyRef": source}})
    return variables
