"""Why pods cannot even be made: the API server's refusal that a Deployment carries in its ReplicaFailure condition."""

import re

from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding

_QUOTA = re.compile(
    r"exceeded quota: (?P<name>[^,]+), requested: (?P<asked>.+?), used: (?P<used>.+?), limited: (?P<limit>.+)$"
)
_FORBIDDEN = re.compile(r"^.*?is forbidden: ")
_MISSING = re.compile(
    r'(?i)serviceaccount "[^"]+" not found|no PriorityClass with name \S+|error looking up service account'
)
_PASSING = re.compile(r"(?i)failed calling webhook|timeout|connection refused|too many requests")


def diagnose_create(error: str) -> Finding | None:
    """The finding of a refusal; None for an empty one."""
    text = error.strip()
    if not text:
        return None
    quota = _QUOTA.search(text)
    if quota is not None:
        return Finding(Reason.WAITING_FOR_QUOTA, _quota_sentence(quota))
    words = _FORBIDDEN.sub("", text)
    if "violates PodSecurity" in text:
        return Finding(Reason.POD_SECURITY_DENIED, words)
    if _MISSING.search(text):
        return Finding(Reason.REFERENCE_MISSING, words)
    return Finding(Reason.ADMISSION_DENIED, words, stalled=_PASSING.search(text) is None)


def _quota_sentence(quota: re.Match[str]) -> str:
    return (
        f"ResourceQuota {quota['name']} leaves no room: "
        f"asked {quota['asked']}, used {quota['used']}, limited to {quota['limit'].rstrip('.')}."
    )
