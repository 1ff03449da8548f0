"""`redact`: takes secrets out of a text that a person will read.

Messages come from everywhere: the kubelet, registries, hubs, a runtime's last words. None of them may carry a token,
a password, a signed URL or the hash of an API key into a status, an Event or a terminal.
"""

import re
from collections.abc import Mapping
from typing import Any

_HIDDEN = "***"
_SECRETS = (
    (re.compile(r"\bhf_[A-Za-z0-9]{4,}"), f"hf_{_HIDDEN}"),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"), f"sk-{_HIDDEN}"),
    (re.compile(r"(?i)\b(authorization[\"']?\s*[:=]\s*[\"']?)(?:\w+\s+)?[^\s\"',;]+"), rf"\1{_HIDDEN}"),
    (re.compile(r"(?i)\b(bearer)\s+(?!token\b|\*)[^\s\"',;]+"), rf"\1 {_HIDDEN}"),
    (
        re.compile(r"(?i)\b((?:api[_-]?key|token|password|secret)[\"']?\s?[=:]\s?[\"']?)[^\s\"'&,;]{4,}"),
        rf"\1{_HIDDEN}",
    ),
    (re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/\s@\"']+@"), rf"\1{_HIDDEN}@"),
    (re.compile(r"(\bhttps?://[^\s?\"']+)\?[^\s\"']+"), rf"\1?{_HIDDEN}"),
    # Hashes of keys; eight digits are enough to tell two of them apart. Digests of images (@sha256:) and of models, which
    # a person has to copy (`digest sha256:`, the words of resolution.py and of the runtime), are no secret.
    (re.compile(r"(?<!@)(?<!\bdigest )\bsha256:([0-9a-f]{8})[0-9a-f]{56}\b"), r"sha256:\1…"),
)
_MARKS = ("hf_", "sk-", "authorization", "bearer", "key", "token", "password", "secret", "://", "sha256:")
"""A text that has none of these in any case is changed by no pattern. Most have none, so most cost next to nothing."""


def redact(text: str) -> str:
    """The text without what looks like a secret."""
    lowered = text.casefold()
    if not any(mark in lowered for mark in _MARKS):
        return text
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def redact_all(value: Any) -> Any:
    """The same JSON value, each string in it redacted."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: redact_all(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact_all(item) for item in value]
    return value
