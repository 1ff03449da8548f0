"""`Cluster`: what the verbs read of one namespace, as views; and the pages that pods serve, through the API server."""

from dataclasses import dataclass
from typing import Protocol

from octavo_operator import names
from octavo_operator.effective import PORT
from octavo_operator.kube_client import ApiError, KubeClient, NotFound, Raw
from octavo_operator.observed import EventView, PodView
from octavo_operator.plugin.errors import PluginError
from octavo_operator.views import view_event, view_pod


class PodPages(KubeClient, Protocol):
    """A KubeClient that also reaches into pods."""

    async def pod_page(self, namespace: str, pod: str, port: int, path: str) -> str:
        """What a pod answers to GET `path`."""
        ...


@dataclass(frozen=True, slots=True)
class Cluster:
    """A connection and the namespace that is meant."""

    kube: PodPages
    namespace: str

    async def deployment(self, name: str) -> Raw:
        """One LLMDeployment. Raises PluginError when there is none."""
        try:
            return await self.kube.get("LLMDeployment", self.namespace, name)
        except NotFound as error:
            message = f"Namespace {self.namespace} has no LLMDeployment {name}; `kubectl get llmd -A` lists all."
            raise PluginError(message) from error

    async def deployments(self, everywhere: bool) -> list[Raw]:
        """All of the namespace, or of the cluster; by namespace and name."""
        found = await self.kube.list("LLMDeployment", None if everywhere else self.namespace)
        return sorted(found.items, key=lambda raw: (raw["metadata"]["namespace"], raw["metadata"]["name"]))

    async def pods(self, name: str) -> list[PodView]:
        """Pods of one LLMDeployment, downloader included, with their Events where they are not ready."""
        found = await self.kube.list("Pod", self.namespace, labels=f"{names.DEPLOYMENT}={name}")
        views = [view_pod(raw) for raw in found.items]
        return [
            view if view.ready else view_pod(raw, None, await self._events(view))
            for raw, view in zip(found.items, views, strict=True)
        ]

    async def serving_pods(self, name: str) -> list[PodView]:
        """Pods that answer requests or will."""
        found = await self.kube.list("Pod", self.namespace, labels=names.selector_text(names.server_selector(name)))
        return sorted((view_pod(raw) for raw in found.items), key=lambda pod: pod.name)

    async def pod(self, name: str) -> Raw:
        """A serving pod. Raises PluginError when it is none of ours."""
        try:
            raw = await self.kube.get("Pod", self.namespace, name)
        except NotFound as error:
            message = f"Namespace {self.namespace} has no pod {name}; `kubectl octavo top` lists those of models."
            raise PluginError(message) from error
        labels = raw["metadata"].get("labels") or {}
        if labels.get(names.COMPONENT) != names.SERVER:
            raise PluginError(f"Pod {name} does not serve an LLMDeployment; `kubectl octavo top` lists those that do.")
        return raw

    async def page(self, pod: str, path: str) -> str | None:
        """A page of a pod, by HTTPS when it does not speak HTTP; None when it gives no answer."""
        for target in (pod, f"https:{pod}"):
            try:
                return await self.kube.pod_page(self.namespace, target, PORT, path)
            except ApiError:
                continue
        return None

    async def _events(self, pod: PodView) -> list[EventView]:
        found = await self.kube.list("Event", self.namespace, fields=f"involvedObject.uid={pod.uid}")
        return [view_event(raw) for raw in found.items]
