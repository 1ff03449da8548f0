"""`Complaint`: one thing that the API server would refuse of a manifest, said for the person who wrote it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Complaint:
    """`field` is a path (`spec.engine.extraArgs[0]`), empty for the whole object; `message` says what to write."""

    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message
