"""Every kind of object that the operator touches: where the API server keeps it, what of it is watched, what is done to it.

The one table behind the client's paths, the watches and the chart's RBAC: `testing.FakeKube` refuses a verb that is not
here, and a test compares the chart with it. Knows no object.
"""

from dataclasses import dataclass

from octavo_operator.names import MANAGED_BY, MANAGER

OURS = f"{MANAGED_BY}={MANAGER}"

_READ = ("list", "watch")
_KEPT = (*_READ, "get", "create", "patch")  # goes with its owner
_CHILD = (*_KEPT, "delete")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind. `labels` and `fields` are the server-side selectors of its watch."""

    name: str
    api_version: str
    plural: str
    verbs: tuple[str, ...]
    namespaced: bool = True
    labels: str = ""
    fields: str = ""
    subresources: tuple[str, ...] = ()  # each is patched
    optional: bool = False  # not every cluster serves it

    @property
    def group(self) -> str:
        """`apps`; empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        """`v1`."""
        return self.api_version.rpartition("/")[2]

    @property
    def watched(self) -> bool:
        """Whether the cache holds it."""
        return "watch" in self.verbs

    @property
    def base(self) -> str:
        """`/apis/apps/v1` or `/api/v1`."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"

    def path(self, namespace: str | None, name: str = "", subresource: str = "") -> str:
        """Of a collection, an object or a subresource. Without a namespace: of the whole cluster."""
        place = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return "/".join(part for part in (f"{self.base}{place}/{self.plural}", name, subresource) if part)

    def permits(self, verb: str, subresource: str = "") -> bool:
        """Whether the chart grants it."""
        return subresource in self.subresources if subresource else verb in self.verbs


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("LLMDeployment", "octavo.dev/v1alpha1", "llmdeployments", _READ, subresources=("status",)),
        Kind("Deployment", "apps/v1", "deployments", _CHILD, labels=OURS),
        Kind("ControllerRevision", "apps/v1", "controllerrevisions", _CHILD, labels=OURS),
        # All pods: what others ask of a node decides how many of ours fit. The cache keeps three facts of a foreign pod.
        Kind("Pod", "v1", "pods", (*_READ, "patch", "delete")),
        Kind("Job", "batch/v1", "jobs", _CHILD, labels=OURS),
        Kind("Service", "v1", "services", _KEPT, labels=OURS),
        Kind("ServiceAccount", "v1", "serviceaccounts", _KEPT, labels=OURS),
        Kind("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", _CHILD, labels=OURS),
        Kind("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies", _CHILD, labels=OURS),
        Kind("PodMonitor", "monitoring.coreos.com/v1", "podmonitors", _CHILD, labels=OURS, optional=True),
        # Opaque ones only: ours, API keys and hub tokens are; Helm's releases and service account tokens are not.
        Kind("Secret", "v1", "secrets", _KEPT, fields="type=Opaque"),
        Kind("ConfigMap", "v1", "configmaps", ("get",)),
        Kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims", _KEPT),
        Kind("ResourceQuota", "v1", "resourcequotas", _READ),
        Kind("Node", "v1", "nodes", _READ, namespaced=False),
        Kind("StorageClass", "storage.k8s.io/v1", "storageclasses", _READ, namespaced=False),
        Kind("Event", "v1", "events", ("list", "create")),
        Kind("Lease", "coordination.k8s.io/v1", "leases", ("get", "create", "update")),
    )
}

WATCHED = tuple(kind for kind in KINDS.values() if kind.watched)
