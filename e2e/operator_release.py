"""The operator as a user installs it: the chart, by helm, with the images of this run."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from e2e.cluster.commands import run, succeeds
from e2e.cluster.settings import child_environment
from e2e.settings import Settings

NAMESPACE = "octavo-system"
RELEASE = "octavo"
RUNTIME_CPU, RUNTIME_MEMORY = "250m", "1Gi"  # of a serving pod; several fit this machine
_DEPLOYMENT = "deployment/octavo-operator"
_PODS = "--selector=app.kubernetes.io/name=octavo-operator"


@dataclass(frozen=True, slots=True)
class OperatorRelease:
    """The one release that the suite's tests share."""

    settings: Settings

    def install(self, values: Mapping[str, Any] | None = None) -> None:
        """Install it, or bring it to these images and values; returns when its pods are ready."""
        self._prepare_namespace()
        chart = self.settings.places.checkout / "charts" / "octavo"
        given = [
            f"--set-json={name}={json.dumps(value)}" for name, value in {**self.values(), **(values or {})}.items()
        ]
        self.helm("upgrade", "--install", RELEASE, str(chart), *given, "--wait", "--timeout=120s")

    def uninstall(self) -> None:
        self.helm("uninstall", RELEASE, "--ignore-not-found", "--wait", "--timeout=60s")

    @contextmanager
    def put_back(self) -> Iterator[None]:
        """Whatever the block does to the release, after it the release is as the suite installs it."""
        try:
            yield
        finally:
            self.install()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Inside the block no pod of the operator runs."""
        replicas = await self._kubectl("get", _DEPLOYMENT, "--output=jsonpath={.spec.replicas}")
        try:
            await self._kubectl("scale", _DEPLOYMENT, "--replicas=0")
            await self._kubectl("wait", "pods", _PODS, "--for=delete", "--timeout=60s")
            yield
        finally:
            await self._kubectl("scale", _DEPLOYMENT, f"--replicas={replicas}")
            await self._kubectl("rollout", "status", _DEPLOYMENT, "--timeout=90s")

    async def _kubectl(self, *arguments: str) -> str:
        return await asyncio.to_thread(self.kubectl, *arguments)

    def values(self) -> dict[str, Any]:
        """Chart values of the suite: our images, small resources, and everything goes when the chart goes."""
        runtime, runtime_tag = self.settings.runtime_image.rsplit(":", 1)
        operator, operator_tag = self.settings.operator_image.rsplit(":", 1)
        return {
            "image.repository": operator,
            "image.tag": operator_tag,
            "runtime.image.repository": runtime,
            "runtime.image.tag": runtime_tag,
            "runtime.cpu": RUNTIME_CPU,
            "runtime.memory": RUNTIME_MEMORY,
            "crds.keep": False,
            "log.level": "debug",
            "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}},
        }

    def helm(self, *arguments: str) -> str:
        environment = child_environment(KUBECONFIG=str(self.settings.kubeconfig))
        return run([self.settings.helm, f"--namespace={NAMESPACE}", *arguments], environment=environment, timeout=180)

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        command = ["kubectl", f"--kubeconfig={self.settings.kubeconfig}", f"--namespace={NAMESPACE}", *arguments]
        return run(command, stdin=stdin.encode(), timeout=120)

    def _prepare_namespace(self) -> None:
        """The operator's own pods keep to the restricted standard too."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
        self.kubectl("apply", "--filename=-", stdin=json.dumps(manifest))

    def installed(self) -> bool:
        command = [
            self.settings.helm,
            f"--kubeconfig={self.settings.kubeconfig}",
            f"--namespace={NAMESPACE}",
            "status",
            RELEASE,
        ]
        return succeeds(command)
