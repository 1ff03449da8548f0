"""What the optional validating webhook refuses: specs that no model and no cluster could make right. Pure.

Only what the CRD's own rules cannot see: quantities that are none, patches that take away what the operator needs. It asks
the very functions that render the children, so the webhook and the status can never disagree.
"""

from collections.abc import Mapping
from typing import Any

from octavo_operator.api import SpecError, parse
from octavo_operator.desired import ChildInputs, children
from octavo_operator.desired.pod_template import pod_template
from octavo_operator.effective import OperatorIdentity, RenderDefaults, decide
from octavo_operator.observed import ClusterView
from octavo_operator.sizing import size
from octavo_operator.weights import Weights

_ANY_WEIGHTS = Weights(commit="0" * 40)
_ANY_INPUTS = ChildInputs(
    replicas=2,
    operator=OperatorIdentity(namespace="any"),
    admin_key_hash="sha256:" + "0" * 64,
    scheme="http",
    api_key_hashes={},
    egress_ports=frozenset(),
)


def objection(raw: Mapping[str, Any], defaults: RenderDefaults) -> str:
    """The field and what to write instead; empty when nothing stands against it."""
    metadata = {"uid": "", **raw["metadata"]}  # a new object may not have one yet
    try:
        deployment = parse({**raw, "metadata": metadata})
        effective = decide(deployment, ClusterView(), defaults)
        sizing = size(deployment, effective, _ANY_WEIGHTS, defaults)
        pod_template(deployment, effective, sizing, _ANY_WEIGHTS, defaults)
        children(deployment, effective, _ANY_INPUTS)
    except SpecError as error:
        return str(error)
    return ""
