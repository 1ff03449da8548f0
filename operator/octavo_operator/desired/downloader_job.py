"""The Job that fetches one commit of one model into a claim, once for all replicas.

The runtime image downloads to a temporary folder, verifies and renames, so that a folder under its final name is always
whole. The pod is as restricted as a serving one and has no GPU.
"""

from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment
from octavo_operator.desired.arguments import download_arguments
from octavo_operator.desired.customization import customize_downloader
from octavo_operator.desired.environment import download_environment
from octavo_operator.desired.pod_template import pull_secrets
from octavo_operator.desired.security import container_security, pod_security
from octavo_operator.desired.volumes import claim_volume, scratch_volumes
from octavo_operator.effective import PORT, Effective, RenderDefaults
from octavo_operator.weights import SHARED_MOUNT, Weights, shared_claim, shared_folder

_RETRIES = 1000  # never gives up: the kubelet restarts it ever more slowly, every five minutes in the end
_RESOURCES = {"requests": {"cpu": "500m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}}


def downloader_name(deployment: LLMDeployment, weights: Weights) -> str:
    """Of the Job that these weights need."""
    folder = shared_folder(deployment, weights.commit)
    return names.downloader(deployment.name, shared_claim(deployment), folder)


def downloader_job(
    deployment: LLMDeployment, effective: Effective, weights: Weights, defaults: RenderDefaults
) -> dict[str, Any]:
    """A Job cannot be changed: it is created once, then only observed, and stays when done. Raises SpecProblem."""
    labels = names.downloader_labels(deployment.name)
    template = {"metadata": {"labels": labels}, "spec": _pod_spec(deployment, effective, weights, defaults)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": names.child_metadata(deployment, downloader_name(deployment, weights), labels),
        "spec": {
            "backoffLimit": _RETRIES,
            "template": customize_downloader(deployment, template),
        },
    }


def _pod_spec(
    deployment: LLMDeployment, effective: Effective, weights: Weights, defaults: RenderDefaults
) -> dict[str, Any]:
    volumes, mounts = scratch_volumes()
    volume, mount = claim_volume(shared_claim(deployment), SHARED_MOUNT, read_only=False)
    container = {
        "name": names.DOWNLOADER_CONTAINER,
        "image": effective.image,
        "imagePullPolicy": defaults.image_pull_policy,
        "command": ["octavo"],
        "args": download_arguments(deployment, weights, SHARED_MOUNT),
        "env": download_environment(deployment, effective),
        "ports": [{"name": names.PORT_NAME, "containerPort": PORT, "protocol": "TCP"}],
        "resources": _RESOURCES,
        "securityContext": container_security(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [*mounts, mount],
    }
    spec: dict[str, Any] = {
        "restartPolicy": "OnFailure",
        "serviceAccountName": names.service_account(deployment.name),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": pod_security(defaults.fs_group),
        "containers": [container],
        "volumes": [*volumes, volume],
        **pull_secrets(defaults),
    }
    tolerations = [dict(toleration) for toleration in deployment.spec.pod.tolerations]
    return spec | ({"tolerations": tolerations} if tolerations else {})
