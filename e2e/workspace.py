"""A test's own namespace: it enforces the restricted Pod Security standard, and everything in it goes with the test."""

import contextlib
import re
import secrets
from dataclasses import dataclass
from typing import Any

from e2e.kubernetes import Kubernetes, NeverHappenedError, Object, condition, wait_for

RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@dataclass(frozen=True, slots=True)
class Workspace:
    """One namespace, and what a test does in it."""

    kube: Kubernetes
    name: str

    async def apply(self, manifest: Object | str) -> str:
        """`kubectl apply` into this namespace."""
        return await self.kube.apply(manifest, self.name)

    async def kubectl(self, *arguments: str, stdin: str = "") -> str:
        return await self.kube.kubectl(f"--namespace={self.name}", *arguments, stdin=stdin)

    async def get(self, kind: str, name: str) -> Object | None:
        return await self.kube.get(kind, name, self.name)

    async def select(self, kind: str, labels: str = "") -> list[Object]:
        return await self.kube.select(kind, self.name, labels)

    async def patch(self, kind: str, name: str, body: Object, subresource: str = "") -> Object:
        return await self.kube.patch(kind, name, body, self.name, subresource)

    async def delete(self, kind: str, name: str) -> None:
        await self.kube.delete(kind, name, self.name)

    async def deployment(self, name: str) -> Object:
        """The LLMDeployment, which must exist."""
        found = await self.get("LLMDeployment", name)
        if found is None:
            raise NeverHappenedError(f"LLMDeployment {self.name}/{name} does not exist")
        return found

    async def pods(self, name: str, component: str = "server") -> list[Object]:
        """Pods of an LLMDeployment that are not on their way out."""
        labels = f"octavo.dev/deployment={name},octavo.dev/component={component}"
        return [pod for pod in await self.select("Pod", labels) if "deletionTimestamp" not in pod["metadata"]]

    async def wait_condition(
        self, name: str, kind: str, status: str = "True", *, reason: str = "", within: float = 90
    ) -> Object:
        """The LLMDeployment once a condition of its present generation has that status (and reason)."""

        async def probe() -> Object | None:
            seen = await self.deployment(name)
            found = condition(seen, kind)
            current = found.get("observedGeneration") == seen["metadata"]["generation"]
            agrees = found.get("status") == status and reason in ("", found.get("reason"))
            return seen if current and agrees else None

        try:
            found = await wait_for(f"{kind}={status} {reason} of {name}", probe, within)
        except NeverHappenedError as error:
            raise NeverHappenedError(f"{error}\n{await self.story(name)}") from None
        if found is None:
            raise NeverHappenedError(name)
        return found

    async def wait_ready(self, name: str, within: float = 90) -> Object:
        return await self.wait_condition(name, "Ready", within=within)

    async def wait_stalled(self, name: str, reason: str, within: float = 90) -> Object:
        return await self.wait_condition(name, "Stalled", reason=reason, within=within)

    async def events(self, name: str) -> list[Object]:
        """Events about one object of any kind, oldest first."""
        found = [event for event in await self.select("Event") if event["involvedObject"]["name"] == name]
        return sorted(found, key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""))

    async def url(self, service: str) -> str:
        """Where this machine reaches a Service: its cluster address."""
        found = await self.get("Service", service)
        if found is None:
            raise NeverHappenedError(f"Service {self.name}/{service} does not exist")
        port = found["spec"]["ports"][0]
        scheme = "https" if port.get("name") == "https" else "http"
        return f"{scheme}://{found['spec']['clusterIP']}:{port['port']}"

    async def story(self, name: str) -> str:
        """What a person would look at when it went wrong: status, pods, their last log lines, events."""
        parts: list[str] = []
        with contextlib.suppress(Exception):
            parts.append(await self.kubectl("get", "llmdeployment", name, "--output=yaml", "--ignore-not-found"))
        with contextlib.suppress(Exception):
            parts.append(await self.kubectl("get", "pods,jobs,deployments", "--output=wide"))
        with contextlib.suppress(Exception):
            for pod in await self.select("Pod"):
                log = await self.kube.logs(pod["metadata"]["name"], self.name)
                parts.append(f"log of {pod['metadata']['name']}:\n{log[-2000:]}")
        with contextlib.suppress(Exception):
            parts.append(await self.kubectl("get", "events", "--sort-by=.lastTimestamp"))
        return "\n".join(parts)


async def make_workspace(kube: Kubernetes, test: str, labels: dict[str, Any] | None = None) -> Workspace:
    """A namespace named after the test."""
    words = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-").removeprefix("test-")[:40].strip("-")
    name = f"e2e-{words}-{secrets.token_hex(2)}"
    metadata = {"name": name, "labels": {**RESTRICTED, "octavo.dev/e2e": "true", **(labels or {})}}
    await kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return Workspace(kube, name)


async def remove_workspace(workspace: Workspace, within: float = 120) -> None:
    """Delete the namespace, and see it gone: nothing in it may hang.

    Pods go first and at once: the namespace's controller would otherwise look again only after half their grace period.
    """
    await workspace.kubectl("delete", "llmdeployments", "--all", "--wait=false")
    await workspace.kubectl("delete", "deployments,jobs", "--all", "--wait=false")
    await workspace.kubectl("delete", "pods", "--all", "--grace-period=1", "--wait=true", "--timeout=60s")
    await workspace.kube.delete("Namespace", workspace.name)

    async def gone() -> bool:
        return await workspace.kube.get("Namespace", workspace.name) is None

    await wait_for(f"namespace {workspace.name} to be gone", gone, within)
