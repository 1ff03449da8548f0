"""`Complaint`: one thing that the API server would refuse of a manifest, said for the person who wrote it."""

from collections.abc import Iterable
from dataclasses import dataclass

from octavo_operator.status.redaction import redact


@dataclass(frozen=True, slots=True)
class Complaint:
    """`field` is a path (`spec.engine.extraArgs[0]`), empty for the whole object; `message` says what to write."""

    field: str
    message: str

    def __str__(self) -> str:
        """By parts: a message is ours and may say `--api-key: write access.apiKeys`, a key of a map can be anything."""
        return f"{redact(self.field)}: {self.message}" if self.field else self.message


def field_of(steps: Iterable[str | int]) -> str:
    """The path as a person writes it."""
    field = ""
    for step in steps:
        field = f"{field}[{step}]" if isinstance(step, int) else below(field, step)
    return field


def below(parent: str, name: str) -> str:
    """The path of a field of `parent`."""
    return f"{parent}.{name}" if parent else str(name)
