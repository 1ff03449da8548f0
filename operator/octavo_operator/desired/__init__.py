"""The objects that an `LLMDeployment` stands for, as manifests: one file per kind, all pure.

`children` are those that it has once, in the order in which they are applied; `revision_children` those of a revision.
A downloader's Job is made apart (`downloader_job.py`), before there is a revision.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from octavo_operator.api import LLMDeployment
from octavo_operator.desired.claim import claim
from octavo_operator.desired.disruption_budget import FEWEST_REPLICAS, disruption_budget
from octavo_operator.desired.headless_service import headless_service
from octavo_operator.desired.keys_secret import keys_secret
from octavo_operator.desired.network_policy import download_policy, network_policy, source_ports
from octavo_operator.desired.pod_monitor import pod_monitor
from octavo_operator.desired.service import service
from octavo_operator.desired.service_account import service_account
from octavo_operator.desired.workload import workload
from octavo_operator.effective import Effective, OperatorIdentity
from octavo_operator.revision import RevisionRecord, controller_revision
from octavo_operator.weights import is_shared

Manifest = dict[str, Any]

PRUNABLE = ("PodDisruptionBudget", "NetworkPolicy", "PodMonitor", "Job")
"""Kinds whose objects go when they are no longer wanted. A Job's weights stay on the claim, and the claim stays as long as
the LLMDeployment: an older revision may still read from it."""


@dataclass(frozen=True, slots=True)
class ChildInputs:
    """What children need to know beside the resource itself."""

    replicas: int  # wanted now
    operator: OperatorIdentity
    admin_key_hash: str  # sha256:<hex>
    scheme: str  # see service_scheme
    api_key_hashes: Mapping[str, str] = field(default_factory=dict)  # "<secret>/<key>" -> sha256:<hex>
    kept_api_keys: str = ""  # see keys_secret
    egress_ports: frozenset[int] = frozenset()  # revision.egress_ports of all stored revisions


def children(deployment: LLMDeployment, effective: Effective, inputs: ChildInputs) -> list[Manifest]:
    """What pods refer to comes first. Raises SpecProblem."""
    manifests = [
        service_account(deployment),
        keys_secret(deployment, inputs.admin_key_hash, inputs.api_key_hashes, inputs.kept_api_keys),
        service(deployment, inputs.scheme),
        headless_service(deployment),
    ]
    if effective.network_policy:
        manifests.append(network_policy(deployment, inputs.operator, inputs.egress_ports))
    if is_shared(deployment):
        if not _names_a_claim(deployment):
            manifests.append(claim(deployment))
        if effective.network_policy:
            ports = source_ports(deployment, effective.hub_endpoint)
            manifests.append(download_policy(deployment, inputs.operator, ports))
    if effective.disruption_budget and inputs.replicas >= FEWEST_REPLICAS:
        manifests.append(disruption_budget(deployment))
    if effective.pod_monitor:
        manifests.append(pod_monitor(deployment))
    return manifests


def revision_children(deployment: LLMDeployment, record: RevisionRecord, replicas: int | None) -> list[Manifest]:
    """The record first: a Deployment without one would be an orphan after a crash in between."""
    return [
        controller_revision(deployment, record),
        workload(deployment, record.hash, record.template, replicas),
    ]


def _names_a_claim(deployment: LLMDeployment) -> bool:
    shared = deployment.spec.cache.shared_pvc
    return shared is not None and shared.claim_name is not None
