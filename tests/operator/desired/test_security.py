"""Security contexts as the `restricted` Pod Security Standard wants them."""

from collections.abc import Callable
from typing import Any

from octavo_operator.desired.security import container_security, pod_security


def test_contexts_have_everything_that_the_restricted_standard_asks_for() -> None:
    assert pod_security() == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert container_security() == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def test_a_group_is_set_only_where_a_claim_is_written() -> None:
    assert pod_security(1000)["fsGroup"] == 1000
    assert pod_security(1000)["fsGroupChangePolicy"] == "OnRootMismatch"


def test_serving_pods_fix_no_user_and_hold_no_token_of_the_api(render: Callable[..., Any]) -> None:
    pod = render({}).pod
    assert not {"runAsUser", "runAsGroup", "fsGroup"} & pod["securityContext"].keys()
    assert "runAsUser" not in render({}).container["securityContext"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["enableServiceLinks"] is False
    assert not [key for key in ("hostNetwork", "hostPID", "hostIPC") if key in pod]
