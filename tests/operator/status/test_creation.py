"""Refusals of the API server, in its own words, become reasons."""

import pytest

from octavo_operator.reasons import Reason
from octavo_operator.status.creation import diagnose_create

QUOTA = (
    'pods "smollm-1" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=1,pods=1, '
    "used: requests.nvidia.com/gpu=2,pods=2, limited: requests.nvidia.com/gpu=2,pods=2"
)
POD_SECURITY = (
    'pods "smollm-1" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false '
    '(container "octavo" must set securityContext.allowPrivilegeEscalation=false)'
)


def test_quota_is_told_with_its_numbers() -> None:
    finding = diagnose_create(QUOTA)
    assert finding is not None
    assert finding.reason is Reason.WAITING_FOR_QUOTA
    assert finding.message == (
        "ResourceQuota gpus leaves no room: asked requests.nvidia.com/gpu=1,pods=1, "
        "used requests.nvidia.com/gpu=2,pods=2, limited to requests.nvidia.com/gpu=2,pods=2."
    )
    assert not finding.blocks


def test_pod_security_says_what_it_wants() -> None:
    finding = diagnose_create(POD_SECURITY)
    assert finding is not None
    assert finding.reason is Reason.POD_SECURITY_DENIED
    assert finding.message.startswith('violates PodSecurity "restricted:latest"')


@pytest.mark.parametrize(
    ("error", "reason", "blocks"),
    [
        ('admission webhook "policy.example" denied the request: no latest tags', Reason.ADMISSION_DENIED, True),
        (
            'pods "x" is forbidden: maximum memory usage per Container is 8Gi, but limit is 16Gi',
            Reason.ADMISSION_DENIED,
            True,
        ),
        ('pods "x" is forbidden: failed quota: q: must specify limits.cpu for: octavo', Reason.ADMISSION_DENIED, True),
        ("Internal error occurred: failed calling webhook: context deadline exceeded", Reason.ADMISSION_DENIED, False),
        ('error looking up service account team/x: serviceaccount "x" not found', Reason.REFERENCE_MISSING, True),
        ('pods "x" is forbidden: no PriorityClass with name urgent was found', Reason.REFERENCE_MISSING, True),
    ],
)
def test_reason_of_other_refusals(error: str, reason: Reason, blocks: bool) -> None:
    finding = diagnose_create(error)
    assert finding is not None
    assert finding.reason is reason
    assert finding.blocks is blocks


@pytest.mark.parametrize("error", ["", "  "])
def test_no_refusal_is_no_finding(error: str) -> None:
    assert diagnose_create(error) is None
