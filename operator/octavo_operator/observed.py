"""What was seen of one LLMDeployment and of the cluster around it: frozen views of raw objects, one read per reconcile.

Built by `observe.py` from the caches; read by everything that decides. Times are seconds since the epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from octavo_operator.api import LLMDeployment


@dataclass(frozen=True, slots=True)
class ContainerView:
    """State of the serving (or downloading) container of a pod."""

    waiting_reason: str = ""  # ImagePullBackOff, CrashLoopBackOff, ContainerCreating ...
    waiting_message: str = ""
    running_since: float | None = None
    terminated_reason: str = ""  # now or last time: OOMKilled, Error, Completed
    terminated_message: str = ""  # the termination log: the runtime's JSON {"cause", "message"}
    exit_code: int | None = None
    finished_at: float | None = None
    restarts: int = 0


@dataclass(frozen=True, slots=True)
class RuntimeView:
    """The last answer of a pod's `/status` (and `/metrics`), with the time it was read."""

    at: float
    phase: str = ""
    in_flight: int = 0
    waiting: int = 0
    kv_cache_usage: float = 0.0
    status: Mapping[str, Any] = field(default_factory=dict)  # the whole JSON of /status


@dataclass(frozen=True, slots=True)
class PodView:
    """One pod of a revision, or of the downloader."""

    name: str
    uid: str
    revision: str  # label octavo.dev/revision
    created_at: float
    phase: str  # Pending, Running, Succeeded, Failed
    ready: bool
    routed: bool  # label octavo.dev/routed is "true": the Service sends requests to it
    drain_started_at: float | None  # annotation octavo.dev/drain-started-at
    terminating: bool  # metadata.deletionTimestamp is set
    deletion_cost: int = 0  # annotation controller.kubernetes.io/pod-deletion-cost
    drain_requested: bool = False  # annotation octavo.dev/drain-requested: a person wants it replaced
    node: str = ""
    ip: str = ""
    scheduled_reason: str = ""  # PodScheduled=False: its reason and message
    scheduled_message: str = ""
    scheduled_at: float | None = None
    ready_at: float | None = None
    status_reason: str = ""  # pod.status.reason: Evicted, NodeLost, UnexpectedAdmissionError ...
    status_message: str = ""
    container: ContainerView = ContainerView()
    requests: Mapping[str, int] = field(default_factory=dict)  # canonical units, see quantity.py
    runtime: RuntimeView | None = None
    events: tuple["EventView", ...] = ()  # Events of this pod, asked for while it is not ready

    @property
    def has_ended(self) -> bool:
        """It holds nothing of its node any more."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_active(self) -> bool:
        """It counts as a replica, for its ReplicaSet too: not ended, not on its way out."""
        return not self.terminating and not self.has_ended

    @property
    def is_there(self) -> bool:
        """It holds its devices, or may: of an ended pod nothing but the object may linger."""
        return self.is_active or self.terminating


@dataclass(frozen=True, slots=True)
class EventView:
    """A Kubernetes Event about one of our objects."""

    reason: str
    message: str
    at: float
    kind: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class RevisionView:
    """One revision: its ControllerRevision, its Deployment and its pods."""

    hash: str
    number: int  # ControllerRevision.revision, rising with each new revision
    data: Mapping[
        str, Any
    ]  # ControllerRevision.data: {"template", "effective", "model", "memoryPlan", "egressPorts", "operatorVersion"}
    replicas: int | None  # the Deployment's spec.replicas; None when there is no Deployment
    pods: tuple[PodView, ...] = ()
    started_at: float | None = None  # when it last became the target
    succeeded_at: float | None = None  # when all its wanted pods were first ready, since it was last begun
    failure: Mapping[str, Any] | None = None  # {"reason", "message", "at"} when its rollout was given up
    create_error: str = ""  # ReplicaFailure condition: quota, Pod Security, admission


@dataclass(frozen=True, slots=True)
class NodeView:
    """A node, and what pods on it ask for together. Resources in canonical units (quantity.py)."""

    name: str
    schedulable: bool  # ready, not cordoned
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, Any], ...]
    allocatable: Mapping[str, int]
    requested: Mapping[str, int]
    ready: bool = True  # the kubelet reports


@dataclass(frozen=True, slots=True)
class QuotaView:
    """A ResourceQuota: hard limits and use, keys as Kubernetes writes them (requests.nvidia.com/gpu)."""

    name: str
    hard: Mapping[str, int]
    used: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A PersistentVolumeClaim that the resource uses."""

    name: str
    phase: str  # Pending, Bound, Lost
    access_modes: tuple[str, ...]
    storage_class: str
    events: tuple[EventView, ...] = ()


@dataclass(frozen=True, slots=True)
class JobView:
    """The downloader Job of one (claim, revision)."""

    name: str
    active: int
    succeeded: int
    failed: int
    complete: bool
    gave_up: bool  # condition Failed
    pods: tuple[PodView, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What the namespace and the nodes offer."""

    nodes: tuple[NodeView, ...] = ()
    quotas: tuple[QuotaView, ...] = ()
    storage_classes: frozenset[str] = frozenset()
    default_storage_class: str = ""
    kinds: frozenset[str] = frozenset()  # optional kinds that exist: "PodMonitor"


@dataclass(frozen=True, slots=True)
class Observed:
    """Everything that one reconcile decides on."""

    now: float
    deployment: LLMDeployment
    cluster: ClusterView
    revisions: tuple[RevisionView, ...] = ()  # by rising number
    claim: ClaimView | None = None
    downloads: tuple[JobView, ...] = ()
    api_key_hashes: Mapping[str, str] = field(default_factory=dict)  # "<secret>/<key>" -> "sha256:<hex>"
    token_hash: str = ""  # of the hub token; empty: there is none, or it is in a Secret that is not watched
    missing_references: tuple[str, ...] = ()  # "Secret hub-token", "ConfigMap template": named in the spec, not there

    @property
    def lost_nodes(self) -> frozenset[str]:
        """Nodes of our pods that are gone or no longer report; none where no node can be seen at all."""
        if not self.cluster.nodes:
            return frozenset()
        alive = {node.name for node in self.cluster.nodes if node.ready}
        return frozenset(pod.node for view in self.revisions for pod in view.pods if pod.node and pod.node not in alive)

    def beside(self, revision_hash: str) -> tuple[PodView, ...]:
        """Pods of other revisions: what this one takes over from. Without any it starts, whatever served before it.

        What terminates on a lost node is gone: its object stays until somebody removes the node.
        """
        lost = self.lost_nodes
        others = (pod for view in self.revisions if view.hash != revision_hash for pod in view.pods if pod.is_there)
        return tuple(pod for pod in others if not (pod.terminating and pod.node in lost))
