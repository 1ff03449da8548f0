"""`KeySet`: which keys open a door, kept as SHA-256 digests; `Keys`: the server's two doors.

A key is written as itself or as `sha256:<64 hex>` of it. Comparing takes the same time whatever was given.
"""

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

_HASH_LINE = re.compile(r"sha256:([0-9a-fA-F]{64})(\s.*)?")
_HASH_PREFIX = "sha256:"


@dataclass(frozen=True, slots=True)
class KeySet:
    """Several keys. An empty set opens to nobody."""

    digests: tuple[bytes, ...] = ()

    @classmethod
    def parse(cls, lines: Iterable[str]) -> "KeySet":
        """One key a line; blank ones and `#` comments are left out, and what follows a hash and a space.

        Raises ValueError, which names the number of the line and not its content, for a hash that is none.
        """
        digests: list[bytes] = []
        for number, line in enumerate(lines, start=1):
            key = line.strip()
            if not key or key.startswith("#"):
                continue
            match = _HASH_LINE.fullmatch(key)
            if match is None and key.startswith(_HASH_PREFIX):
                raise ValueError(f"line {number} must be sha256: and 64 hexadecimal digits")
            digests.append(sha256(key.encode()).digest() if match is None else bytes.fromhex(match[1]))
        return cls(tuple(dict.fromkeys(digests)))

    def opens(self, key: str) -> bool:
        """Whether it is one of them. Every one is compared."""
        given = sha256(key.encode("utf-8", "surrogateescape")).digest()
        return sum([hmac.compare_digest(given, digest) for digest in self.digests]) > 0

    def __or__(self, other: "KeySet") -> "KeySet":
        return KeySet(tuple(dict.fromkeys(self.digests + other.digests)))


@dataclass(slots=True)
class Keys:
    """What opens now; a set is replaced when its file changes."""

    api: KeySet | None = None  # None: the API is open to everybody
    admin: KeySet | None = None  # None: there is no /drain

    def refuse(self, authorization: str) -> bool:
        """Whether a call of the API with this header stays outside."""
        return self.api is not None and not self.api.opens(bearer(authorization))


def bearer(header: str) -> str:
    """The key of `Authorization: Bearer KEY`; empty for anything else."""
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""
