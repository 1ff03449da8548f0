"""Where secrets may not be: specs, statuses, Events, managed fields, logs. Looks for each value, plain and in base64."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping

from e2e.inventory import everything
from e2e.kubernetes import Object
from e2e.operator_release import NAMESPACE
from e2e.workspace import Workspace

OPERATOR_SECRET = "octavo-operator-admin"
OPERATOR_PODS = "app.kubernetes.io/name=octavo-operator"


async def places_of_secrets(workspace: Workspace, values: Mapping[str, str], holders: frozenset[str]) -> list[str]:
    """`<secret> in <place>` for each place where a value of `values` (by what it is) can be read.

    `holders` are the Secrets that are made to hold them; every other object of the namespace, every log of its pods and of
    the operator's is searched.
    """
    texts = [*_objects(await everything(workspace), holders), *await _logs(workspace)]
    return [f"{what} in {place}" for place, text in texts for what, value in values.items() if _is_in(value, text)]


async def admin_key(workspace: Workspace, name: str) -> str:
    """The key with which the operator drains an LLMDeployment's pods: derived from its own Secret, known to nobody else."""
    found = await workspace.kube.get("Secret", OPERATOR_SECRET, NAMESPACE)
    assert found is not None, f"Secret {NAMESPACE}/{OPERATOR_SECRET} does not exist"
    uid = (await workspace.deployment(name))["metadata"]["uid"]
    seed = base64.b64decode(found["data"]["seed"])
    return hmac.new(seed, f"{workspace.name}/{name}/{uid}".encode(), hashlib.sha256).hexdigest()


def _objects(found: list[Object], holders: frozenset[str]) -> Iterator[tuple[str, str]]:
    for item in found:
        kind, name = item["kind"], item["metadata"]["name"]
        if kind == "Secret" and name in holders:
            continue
        yield f"{kind} {name}", json.dumps(_decoded(item) if kind == "Secret" else item)


def _decoded(secret: Object) -> Object:
    """A Secret of ours holds hashes; its content is searched as pods read it."""
    data = secret.get("data") or {}
    return {**secret, "data": {key: base64.b64decode(value).decode() for key, value in data.items()}}


async def _logs(workspace: Workspace) -> list[tuple[str, str]]:
    """Whole logs, of all pods."""
    texts = []
    for namespace, labels in ((workspace.name, ""), (NAMESPACE, OPERATOR_PODS)):
        for pod in await workspace.kube.select("Pod", namespace, labels):
            name = pod["metadata"]["name"]
            log = await workspace.kube.kubectl("logs", f"--namespace={namespace}", name, "--all-containers")
            texts.append((f"log of {name}", log))
    return texts


def _is_in(value: str, text: str) -> bool:
    return value in text or base64.b64encode(value.encode()).decode().rstrip("=") in text
