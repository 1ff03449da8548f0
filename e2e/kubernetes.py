"""The API server as a test sees it: kubectl for what a person types, plain HTTP for what a test looks at often.

`start_proxy` runs one `kubectl proxy` for all tests, so any kubeconfig works whatever its credentials are; `Kubernetes` talks
to it. Objects are the dictionaries that the server sends.
"""

import asyncio
import json
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import yaml

Object = dict[str, Any]
Value = TypeVar("Value")
Answer = subprocess.CompletedProcess[str]
Kubectl = Callable[..., Answer]  # arguments; `given` is its standard input

# kind -> (path of its group and version, plural, whether it lives in a namespace)
KINDS: Mapping[str, tuple[str, str, bool]] = {
    "Namespace": ("api/v1", "namespaces", False),
    "Node": ("api/v1", "nodes", False),
    "PersistentVolume": ("api/v1", "persistentvolumes", False),
    "PersistentVolumeClaim": ("api/v1", "persistentvolumeclaims", True),
    "Pod": ("api/v1", "pods", True),
    "Service": ("api/v1", "services", True),
    "ServiceAccount": ("api/v1", "serviceaccounts", True),
    "Secret": ("api/v1", "secrets", True),
    "ConfigMap": ("api/v1", "configmaps", True),
    "ResourceQuota": ("api/v1", "resourcequotas", True),
    "Event": ("api/v1", "events", True),
    "Deployment": ("apis/apps/v1", "deployments", True),
    "ReplicaSet": ("apis/apps/v1", "replicasets", True),
    "ControllerRevision": ("apis/apps/v1", "controllerrevisions", True),
    "Job": ("apis/batch/v1", "jobs", True),
    "PodDisruptionBudget": ("apis/policy/v1", "poddisruptionbudgets", True),
    "NetworkPolicy": ("apis/networking.k8s.io/v1", "networkpolicies", True),
    "HorizontalPodAutoscaler": ("apis/autoscaling/v2", "horizontalpodautoscalers", True),
    "Lease": ("apis/coordination.k8s.io/v1", "leases", True),
    "CustomResourceDefinition": ("apis/apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    "LLMDeployment": ("apis/octavo.dev/v1alpha1", "llmdeployments", True),
}
POLL_S = 0.2


class RefusedError(RuntimeError):
    """The API server said no; the message is its own."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class NeverHappenedError(AssertionError):
    """What a test waited for did not come; the message has what was seen last."""


@contextmanager
def start_proxy(kubeconfig: Path, socket: Path) -> Iterator[Path]:
    """A `kubectl proxy` on a local socket, for as long as the block lasts."""
    command = ["kubectl", f"--kubeconfig={kubeconfig}", "proxy", f"--unix-socket={socket}", "--reject-methods=^$"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + 20
            while not socket.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    process.kill()
                    raise RuntimeError(f"kubectl proxy did not start: {process.communicate()[1]}")
                time.sleep(0.05)
            yield socket
        finally:
            process.kill()


@dataclass(frozen=True, slots=True)
class Kubernetes:
    """One test's connection to the cluster."""

    kubeconfig: Path
    session: aiohttp.ClientSession

    async def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """The object, or None."""
        try:
            return await self._request("GET", _path(kind, namespace, name))
        except RefusedError as error:
            if error.status == 404:
                return None
            raise

    async def select(self, kind: str, namespace: str = "", labels: str = "") -> list[Object]:
        answer = await self._request("GET", _path(kind, namespace), params={"labelSelector": labels} if labels else {})
        return list(answer["items"])

    async def create(self, manifest: Object) -> Object:
        """:raises RefusedError: also when it exists."""
        namespace = manifest["metadata"].get("namespace", "")
        return await self._request("POST", _path(manifest["kind"], namespace), json=manifest)

    async def replace(self, manifest: Object) -> Object:
        metadata = manifest["metadata"]
        return await self._request(
            "PUT", _path(manifest["kind"], metadata.get("namespace", ""), metadata["name"]), json=manifest
        )

    async def patch(self, kind: str, name: str, body: Object, namespace: str = "", subresource: str = "") -> Object:
        """A merge patch."""
        path = _path(kind, namespace, name) + (f"/{subresource}" if subresource else "")
        headers = {"Content-Type": "application/merge-patch+json"}
        return await self._request("PATCH", path, data=json.dumps(body), headers=headers)

    async def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Without an error when it is gone already."""
        try:
            await self._request("DELETE", _path(kind, namespace, name))
        except RefusedError as error:
            if error.status != 404:
                raise

    async def logs(self, pod: str, namespace: str) -> str:
        async with self.session.get(f"/{_path('Pod', namespace, pod)}/log") as answer:
            return await answer.text()

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints.

        :raises RefusedError: with its exit code and its own words
        """
        process = await asyncio.create_subprocess_exec(
            "kubectl",
            f"--kubeconfig={self.kubeconfig}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, said = await process.communicate(stdin.encode())
        if process.returncode:
            raise RefusedError(process.returncode, said.decode().strip())
        return out.decode()

    async def apply(self, manifest: Object | str, namespace: str = "") -> str:
        """`kubectl apply`, as a person does it."""
        text = manifest if isinstance(manifest, str) else yaml.safe_dump(manifest)
        scope = (f"--namespace={namespace}",) if namespace else ()
        return await self.kubectl("apply", *scope, "--filename=-", stdin=text)

    async def _request(self, method: str, path: str, **options: Any) -> Object:
        async with self.session.request(method, f"/{path}", **options) as answer:
            body = await answer.json(content_type=None)
            if answer.status >= 400:
                raise RefusedError(answer.status, body.get("message", str(body)))
            return dict(body)


async def wait_for(what: str, probe: Callable[[], Awaitable[Value]], within: float = 60.0) -> Value:
    """The probe's first true value.

    :raises NeverHappenedError: after `within` seconds, naming `what`
    """
    deadline = time.monotonic() + within
    while not (value := await probe()):
        if time.monotonic() > deadline:
            raise NeverHappenedError(f"waited {within:.0f} s for {what}")
        await asyncio.sleep(POLL_S)
    return value


async def holds(what: str, probe: Callable[[], Awaitable[Value]], seconds: float) -> None:
    """The probe is true all along."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not await probe():
            raise NeverHappenedError(f"{what} did not last {seconds:.0f} s")
        await asyncio.sleep(POLL_S)


def condition(resource: Object | None, kind: str) -> Object:
    """One condition of an object's status; {} when it has none of that type."""
    conditions = ((resource or {}).get("status") or {}).get("conditions") or []
    return next((dict(each) for each in conditions if each["type"] == kind), {})


def serving_container(pod: Object) -> Object:
    return next(dict(each) for each in pod["spec"]["containers"] if each["name"] == "octavo")


def argument(pod: Object, flag: str) -> str:
    """What a serving pod's runtime is told behind a flag."""
    arguments = serving_container(pod)["args"]
    return str(arguments[arguments.index(flag) + 1])


def _path(kind: str, namespace: str, name: str = "") -> str:
    group, plural, namespaced = KINDS[kind]
    scope = f"/namespaces/{namespace}" if namespaced and namespace else ""
    return f"{group}{scope}/{plural}" + (f"/{name}" if name else "")
