"""The pod of one replica: the serving container with its probes, volumes and resources, then the user's `spec.pod`.

Rendered once per revision and stored; a newer operator, or GPU nodes that come later, do not change what is stored.
"""

from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment
from octavo_operator.desired.arguments import serve_arguments
from octavo_operator.desired.customization import Template, customize_server
from octavo_operator.desired.environment import serving_environment
from octavo_operator.desired.probes import probes
from octavo_operator.desired.security import container_security, pod_security
from octavo_operator.desired.volumes import serving_volumes
from octavo_operator.effective import PORT, Effective, RenderDefaults
from octavo_operator.quantity import format_quantity
from octavo_operator.revision import revision_hash
from octavo_operator.sizing import Sizing
from octavo_operator.weights import Weights

GPU_PRODUCT = "nvidia.com/gpu.product"
EXIT_SECONDS = 15  # beside unrouting and draining, until the process is gone


def pod_template(
    deployment: LLMDeployment, effective: Effective, sizing: Sizing, weights: Weights, defaults: RenderDefaults
) -> Template:
    """`{"metadata", "spec"}`. Raises SpecProblem for what spec.pod must not do."""
    volumes, mounts = serving_volumes(deployment, sizing, weights)
    container = _container(deployment, effective, sizing, weights, defaults) | {"volumeMounts": mounts}
    spec = {
        "serviceAccountName": names.service_account(deployment.name),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _grace_seconds(effective),
        "securityContext": pod_security(),
        "containers": [container],
        "volumes": volumes,
        **_placement(deployment, effective),
        **pull_secrets(defaults),
    }
    labels = names.server_labels(deployment.name, revision_hash(deployment.spec))
    return customize_server(deployment, {"metadata": {"labels": labels}, "spec": spec})


def scheme_of(template: Template) -> str:
    """`http` or `https`: how the pods of a stored template are spoken to."""
    container = _serving(template)
    return str(container.get("readinessProbe", {}).get("httpGet", {}).get("scheme", "HTTP")).lower()


def pull_secrets(defaults: RenderDefaults) -> dict[str, Any]:
    """Key of a pod spec; absent without any."""
    secrets = [{"name": name} for name in defaults.image_pull_secrets]
    return {"imagePullSecrets": secrets} if secrets else {}


def _container(
    deployment: LLMDeployment, effective: Effective, sizing: Sizing, weights: Weights, defaults: RenderDefaults
) -> dict[str, Any]:
    tls = deployment.spec.access.tls is not None
    return {
        "name": names.CONTAINER,
        "image": effective.image,
        "imagePullPolicy": defaults.image_pull_policy,
        "command": ["octavo"],
        "args": serve_arguments(deployment, effective, sizing, weights),
        "env": serving_environment(deployment, effective, weights),
        "ports": [{"name": names.PORT_NAME, "containerPort": PORT, "protocol": "TCP"}],
        "resources": _resources(effective, sizing),
        "securityContext": container_security(),
        **probes(sizing.startup_seconds, defaults, tls=tls),
        **_lifecycle(effective),
        # A log may hold prompts when they are logged; the pod's status must not.
        "terminationMessagePolicy": "File" if effective.log_prompts else "FallbackToLogsOnError",
    }


def _resources(effective: Effective, sizing: Sizing) -> dict[str, Any]:
    """Only what has a limit is limited: a throttled tokenizer would starve the GPU beside it."""
    wanted = {"cpu": sizing.cpu_millicores, "memory": sizing.memory_bytes}
    limits = {"cpu": sizing.cpu_limit, "memory": sizing.memory_limit}
    if sizing.ephemeral_bytes is not None:
        wanted["ephemeral-storage"] = sizing.ephemeral_bytes
    if effective.gpus_per_pod:
        wanted[effective.gpu_resource] = limits[effective.gpu_resource] = effective.gpus_per_pod
    resources = {"requests": {name: format_quantity(name, amount) for name, amount in wanted.items()}}
    limited = {name: format_quantity(name, amount) for name, amount in limits.items() if amount is not None}
    return resources | ({"limits": limited} if limited else {})


def _lifecycle(effective: Effective) -> dict[str, Any]:
    """However the pod comes to its end, it still serves while routers forget it. After the operator's drain, too: while the
    API server was silent nobody heard that the pod was unrouted, and the deletion may be the first that routers hear.
    """
    seconds = effective.rollout.unroute_seconds
    return {"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}} if seconds else {}


def _grace_seconds(effective: Effective) -> int:
    return effective.rollout.unroute_seconds + effective.rollout.drain_seconds + EXIT_SECONDS


def _placement(deployment: LLMDeployment, effective: Effective) -> dict[str, Any]:
    """Where the scheduler may put it: on the wanted GPUs, past the taint that GPU nodes bear, rather apart."""
    resources = deployment.spec.resources
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": names.server_selector(deployment.name)},
    }
    placement: dict[str, Any] = {"topologySpreadConstraints": [spread]}
    tolerations = [dict(toleration) for toleration in deployment.spec.pod.tolerations]
    if effective.gpus_per_pod:
        tolerations.append({"key": effective.gpu_resource, "operator": "Exists", "effect": "NoSchedule"})
    if tolerations:
        placement["tolerations"] = tolerations
    if resources.gpu_products and effective.gpus_per_pod:
        chosen = {"key": GPU_PRODUCT, "operator": "In", "values": list(resources.gpu_products)}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [chosen]}]}
        placement["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    if resources.priority_class_name:
        placement["priorityClassName"] = resources.priority_class_name
    return placement


def _serving(template: Template) -> dict[str, Any]:
    return next(item for item in template["spec"]["containers"] if item["name"] == names.CONTAINER)
