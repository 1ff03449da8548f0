"""The PersistentVolumeClaim `<name>-cache` that weights are downloaded to, when the user names none."""

from typing import Any

from octavo_operator import names
from octavo_operator.api import LLMDeployment
from octavo_operator.quantity import QuantityError, format_quantity, parse_quantity
from octavo_operator.spec_problem import SpecProblem

_SIZE = "spec.cache.sharedPVC.size"


def claim(deployment: LLMDeployment) -> dict[str, Any]:
    """Without a storage class the cluster's default one is taken. Raises SpecProblem without a size."""
    shared = deployment.spec.cache.shared_pvc
    if shared is None or shared.size is None:
        raise SpecProblem(
            _SIZE, "a claim of the operator's own needs it; write size: 50Gi, or name yours in claimName."
        )
    try:
        size = parse_quantity("storage", shared.size)
    except QuantityError as error:
        raise SpecProblem(_SIZE, str(error)) from error
    spec: dict[str, Any] = {
        "accessModes": [shared.access_mode or "ReadWriteMany"],
        "resources": {"requests": {"storage": format_quantity("storage", size)}},
    }
    if shared.storage_class_name is not None:
        spec["storageClassName"] = shared.storage_class_name
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": names.child_metadata(deployment, names.claim(deployment.name)),
        "spec": spec,
    }
