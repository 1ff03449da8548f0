"""The vocabulary is whole: every cause of the runtime has a reason, every reason is a word that Kubernetes accepts."""

import re

from octavo_operator.reasons import FROM_CAUSE, Reason

CONTRACT = {
    *("ModelNotFound", "RevisionNotFound", "ModelAccessDenied", "ModelRateLimited", "HubUnreachable", "ModelCorrupt"),
    *("DigestMismatch", "ModelUnsupported", "OutOfMemory", "KVCacheTooSmall", "ContextTooLarge", "InvalidSettings"),
    *("AddressInUse", "DiskFull", "DeviceUnavailable", "DeviceMemoryBusy", "QuantizationUnsupported"),
    *("ParallelismUnsupported", "StartupDeadlineExceeded", "EngineDied", "EngineHung", "Internal"),
}


def test_every_start_cause_of_the_runtime_is_a_reason() -> None:
    assert set(FROM_CAUSE) == CONTRACT


def test_reasons_are_words_that_a_condition_may_carry() -> None:
    assert all(re.fullmatch(r"[A-Z][A-Za-z]+", reason.value) for reason in Reason)


def test_a_cause_that_is_a_reason_by_name_is_that_reason() -> None:
    words = {reason.value for reason in Reason}
    assert all(FROM_CAUSE[cause].value == cause for cause in FROM_CAUSE if cause in words)
