"""`spec.pod` over a rendered pod template: the user's own variables, labels, placement and patch, applied last.

What selectors and the operator itself rely on cannot be changed this way; such a spec is refused with SpecProblem.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment
from octavo_operator.desired.strategic_merge import MergeError, merge
from octavo_operator.spec_problem import SpecProblem

_PATCH = "spec.pod.patch"
_SECRET_NAME = re.compile(  # as the CRD's rule for spec.pod.env has it; TOKENIZERS_PARALLELISM is none
    r"(^|_)(token|secret|api_?key|access_?key|private_?key|credentials?)(_|$)|passw(or)?d", re.IGNORECASE
)
_SECRET_VALUE = re.compile(r"(?<![A-Za-z0-9])(hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,})")
_TEMPLATE_METADATA = frozenset({"labels", "annotations"})
_OF_THE_SERVER = frozenset({"$patch", "containers", "initContainers", "volumes", "terminationGracePeriodSeconds"})

Template = dict[str, Any]


def customize_server(deployment: LLMDeployment, template: Template) -> Template:
    """A serving pod's template with spec.pod in it. Raises SpecProblem, which names the field."""
    _check(deployment)
    typed = _merge(template, _typed_fields(deployment, names.CONTAINER), "spec.pod")
    patched = _merge(typed, deployment.spec.pod.patch, _PATCH)
    _check_selected(template, patched)
    _check_serving(patched)
    _check_images(patched)
    return patched


def customize_downloader(deployment: LLMDeployment, template: Template) -> Template:
    """A downloader's template with what spec.pod says of the pod; what it says of the serving container stays away."""
    _check(deployment)
    patch = deployment.spec.pod.patch
    spec = {key: value for key, value in (patch.get("spec") or {}).items() if key not in _OF_THE_SERVER}
    typed = _merge(template, _typed_fields(deployment, names.DOWNLOADER_CONTAINER), "spec.pod")
    patched = _merge(typed, {**patch, "spec": spec}, _PATCH)
    _check_selected(template, patched)
    return patched


def _typed_fields(deployment: LLMDeployment, container: str) -> dict[str, Any]:
    """In the form of a patch. Tolerations were placed among the operator's own."""
    pod = deployment.spec.pod
    spec: dict[str, Any] = {}
    if pod.env:
        spec["containers"] = [{"name": container, "env": list(pod.env)}]
    if pod.node_selector:
        spec["nodeSelector"] = dict(pod.node_selector)
    if pod.service_account_name:
        spec["serviceAccountName"] = pod.service_account_name
    metadata = {"labels": dict(pod.labels), "annotations": dict(pod.annotations)}
    return {"metadata": {key: value for key, value in metadata.items() if value}, "spec": spec}


def _merge(template: Template, patch: Mapping[str, Any], path: str) -> Template:
    try:
        return merge(template, patch, path)
    except MergeError as error:
        raise SpecProblem(error.path, str(error)) from error


def _check(deployment: LLMDeployment) -> None:
    pod = deployment.spec.pod
    _check_labels("spec.pod.labels", pod.labels)
    _check_annotations("spec.pod.annotations", pod.annotations)
    _check_environment("spec.pod.env", pod.env)
    unknown = set(pod.patch) - {"metadata", "spec"}
    if unknown:
        raise SpecProblem(f"{_PATCH}.{min(unknown)}", "is no part of a pod template; write metadata or spec.")
    metadata, spec = _mapping(pod.patch, "metadata", _PATCH), _mapping(pod.patch, "spec", _PATCH)
    others = set(metadata) - _TEMPLATE_METADATA
    if others:
        raise SpecProblem(f"{_PATCH}.metadata.{min(others)}", "only labels and annotations of a pod can be set.")
    _check_labels(f"{_PATCH}.metadata.labels", _mapping(metadata, "labels", f"{_PATCH}.metadata"))
    _check_annotations(f"{_PATCH}.metadata.annotations", _mapping(metadata, "annotations", f"{_PATCH}.metadata"))
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(_items(spec.get(kind))):
            if isinstance(container, Mapping):
                _check_environment(f"{_PATCH}.spec.{kind}[{index}].env", _items(container.get("env")))
    for field, value in (("labels", pod.labels), ("annotations", pod.annotations), ("patch", pod.patch)):
        _check_literals(f"spec.pod.{field}", value)


def _mapping(parent: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    """Null is nothing: it would remove what the operator needs, and is refused as that later."""
    value = parent.get(key)
    if value is not None and not isinstance(value, Mapping):
        raise SpecProblem(f"{path}.{key}", "must be a map of fields.")
    return value or {}


def _items(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _check_labels(field: str, labels: Mapping[str, Any]) -> None:
    for key in labels:
        if names.is_protected_label(key):
            raise SpecProblem(f"{field}[{key}]", "belongs to the operator, which finds its pods by it; choose another.")


def _check_annotations(field: str, annotations: Mapping[str, Any]) -> None:
    for key in annotations:
        if names.is_protected_annotation(key):
            raise SpecProblem(f"{field}[{key}]", "belongs to the operator, which drains pods by it; choose another.")


def _check_environment(field: str, variables: Iterable[Any]) -> None:
    """A value in a spec is read by everybody who may read pods. The message never repeats it."""
    for variable in variables:
        if not isinstance(variable, Mapping) or not variable.get("value"):
            continue
        name = str(variable.get("name", ""))
        if _SECRET_NAME.search(name) or _SECRET_VALUE.search(str(variable["value"])):
            raise _literal_secret(f"{field}[{name}]")


def _check_literals(field: str, value: Any) -> None:
    """A token can stand anywhere in a patch: in an argument, a command, an annotation."""
    if isinstance(value, str):
        if _SECRET_VALUE.search(value):
            raise _literal_secret(field)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _check_literals(f"{field}.{key}", item)
    else:
        for index, item in enumerate(_items(value)):
            _check_literals(f"{field}[{index}]", item)


def _literal_secret(field: str) -> SpecProblem:
    return SpecProblem(field, "looks like a secret; put it into a Secret and write valueFrom.secretKeyRef.")


def _check_selected(before: Template, after: Template) -> None:
    """Whatever way the patch took: the labels that select the pods are as they were."""
    labels = (after.get("metadata") or {}).get("labels") or {}
    for key, value in before["metadata"]["labels"].items():
        if labels.get(key) != value:
            raise SpecProblem(f"{_PATCH}.metadata.labels", f"takes away {key}, by which the operator finds its pods.")


def _check_serving(after: Template) -> None:
    containers = [item for item in _items((after.get("spec") or {}).get("containers")) if isinstance(item, Mapping)]
    serving = next((container for container in containers if container.get("name") == names.CONTAINER), None)
    if serving is None:
        raise SpecProblem(f"{_PATCH}.spec.containers", f"takes away the serving container {names.CONTAINER}.")
    if not serving.get("image"):
        raise SpecProblem(f"{_PATCH}.spec.containers", f"takes away the image of the container {names.CONTAINER}.")
    if names.PORT_NAME not in [port.get("name") for port in _items(serving.get("ports"))]:
        raise SpecProblem(f"{_PATCH}.spec.containers", f"takes away the port {names.PORT_NAME} that clients reach.")


def _check_images(after: Template) -> None:
    """What is called otherwise than any container of the pod is a new one, and the API server would want its image."""
    for kind, what in (("containers", "a container"), ("initContainers", "an init container")):
        for container in _items((after.get("spec") or {}).get(kind)):
            name = container.get("name") if isinstance(container, Mapping) else None
            if name is not None and not container.get("image"):
                raise SpecProblem(
                    f"{_PATCH}.spec.{kind}",
                    f'adds {what} "{name}" without an image; the serving container is called {names.CONTAINER}.',
                )
