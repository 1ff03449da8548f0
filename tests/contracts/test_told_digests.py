"""A model's digest that does not match reaches a person whole, whoever found it: it is what has to be written instead."""

import pytest

from octavo_operator.reasons import FROM_CAUSE, Reason
from octavo_operator.status.redaction import redact
from octavo_runtime.errors import StartError
from octavo_runtime.fetch.manifest import FileSum, check_digest, manifest_digest


def test_the_runtimes_message_keeps_the_digest_that_it_found() -> None:
    files = [FileSum("model.safetensors", 3, "0" * 64)]
    with pytest.raises(StartError) as caught:
        check_digest("org/name", files, f"sha256:{'1' * 64}")
    assert FROM_CAUSE[caught.value.cause] is Reason.DIGEST_MISMATCH
    assert manifest_digest(files) in redact(str(caught.value))
