"""Every name, label, annotation, selector and owner reference of what the operator makes for an `LLMDeployment`.

Given the resource or its name. Knows no manifest; whoever writes one takes its metadata from here.
A resource's name has at most 50 characters, so that each name made from it fits the 63 of a DNS label.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from octavo_operator.api import GROUP, KIND, VERSION, LLMDeployment

MANAGER = "octavo-operator"  # of our objects and of their fields, and the source of our Events
MANAGED_BY = "app.kubernetes.io/managed-by"
APP_NAME = "app.kubernetes.io/name"
INSTANCE = "app.kubernetes.io/instance"
DEPLOYMENT = f"{GROUP}/deployment"
REVISION = f"{GROUP}/revision"
COMPONENT = f"{GROUP}/component"
ROUTED = f"{GROUP}/routed"

SERVER = "server"
DOWNLOADER = "downloader"
RUNTIME_APP = "octavo-runtime"
OPERATOR_APP = "octavo-operator"

DRAIN_STARTED_AT = f"{GROUP}/drain-started-at"
DRAIN_REQUESTED = f"{GROUP}/drain-requested"
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
STARTED_AT = f"{GROUP}/started-at"
SUCCEEDED_AT = f"{GROUP}/succeeded-at"
FAILURE = f"{GROUP}/failure"

CONTAINER = "octavo"
DOWNLOADER_CONTAINER = "download"
PORT_NAME = "http"

LONGEST_NAME = 50  # of an LLMDeployment
REVISION_DIGITS = 10
DOWNLOAD_DIGITS = 8  # 50 + len("-dl-") + 8 = 62; the Job's name becomes a label of its pods

Labels = dict[str, str]
Key = tuple[str, str]
"""Namespace and name of an LLMDeployment."""


def service(name: str) -> str:
    """What clients talk to."""
    return name


def pods_service(name: str) -> str:
    """Headless: every serving pod, ready or not."""
    return f"{name}-pods"


def service_account(name: str) -> str:
    return name


def disruption_budget(name: str) -> str:
    return name


def network_policy(name: str) -> str:
    """Of the serving pods."""
    return name


def download_policy(name: str) -> str:
    """Of the downloader's pods."""
    return f"{name}-dl"


def pod_monitor(name: str) -> str:
    return name


def keys_secret(name: str) -> str:
    """Hashes of API keys and of the admin key."""
    return f"{name}-keys"


def claim(name: str) -> str:
    """The claim that the operator makes for weights."""
    return f"{name}-cache"


def revision(name: str, revision_hash: str) -> str:
    """The Deployment and the ControllerRevision of one revision."""
    return f"{name}-{revision_hash}"


def downloader(name: str, claim_name: str, folder: str) -> str:
    """The Job that fills `folder` of a claim; another claim, model, commit or choice of files is another Job."""
    return f"{name}-dl-{digest(claim_name, folder, length=DOWNLOAD_DIGITS)}"


def digest(*parts: str, length: int) -> str:
    """Hex digits that stand for these texts, the same in every process and release."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:length]


def owner_labels(name: str) -> Labels:
    """On every child."""
    return {APP_NAME: RUNTIME_APP, INSTANCE: name, MANAGED_BY: MANAGER, DEPLOYMENT: name}


def revision_labels(name: str, revision_hash: str) -> Labels:
    """On the children of one revision."""
    return owner_labels(name) | {REVISION: revision_hash}


def server_labels(name: str, revision_hash: str) -> Labels:
    """On a new serving pod."""
    return revision_labels(name, revision_hash) | {COMPONENT: SERVER, ROUTED: "true"}


def downloader_labels(name: str) -> Labels:
    """On a downloader's pod and Job."""
    return owner_labels(name) | {COMPONENT: DOWNLOADER}


def server_selector(name: str) -> Labels:
    """All serving pods of all revisions, draining ones too."""
    return {DEPLOYMENT: name, COMPONENT: SERVER}


def routed_selector(name: str) -> Labels:
    """The pods that the Service sends requests to."""
    return server_selector(name) | {ROUTED: "true"}


def revision_selector(name: str, revision_hash: str) -> Labels:
    """The pods of one revision. Without ROUTED: a pod that drains still belongs to its Deployment."""
    return server_selector(name) | {REVISION: revision_hash}


def downloader_selector(name: str) -> Labels:
    return {DEPLOYMENT: name, COMPONENT: DOWNLOADER}


def selector_text(labels: Mapping[str, str]) -> str:
    """`a=b,c=d`, as /scale, list calls and kubectl take selectors."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def is_protected_label(key: str) -> bool:
    """Whether selectors or other tools rely on this label of a pod, so that spec.pod may not set it."""
    return key.startswith(f"{GROUP}/") or key in (APP_NAME, INSTANCE, MANAGED_BY, "pod-template-hash")


def is_protected_annotation(key: str) -> bool:
    """Whether the operator or the ReplicaSet controller goes by this annotation of a pod."""
    return key.startswith(f"{GROUP}/") or key == DELETION_COST


def owner_reference(deployment: LLMDeployment) -> dict[str, Any]:
    """Cleans up when the resource goes. blockOwnerDeletion is false: no deletion ever waits for a child."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": KIND,
        "name": deployment.name,
        "uid": deployment.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def child_metadata(deployment: LLMDeployment, name: str, labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Metadata of a child; `labels` come to those that every child has."""
    return {
        "name": name,
        "namespace": deployment.namespace,
        "labels": owner_labels(deployment.name) | dict(labels or {}),
        "ownerReferences": [owner_reference(deployment)],
    }


def url(deployment: LLMDeployment, scheme: str) -> str:
    """Where clients inside the cluster find the model. The Service's port is the scheme's own: 80 or 443."""
    return f"{scheme}://{service(deployment.name)}.{deployment.namespace}.svc"
