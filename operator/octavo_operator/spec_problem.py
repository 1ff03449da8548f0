"""`SpecProblem`: a spec that can be read but not followed, with the field and what to write instead."""

from octavo_operator.api import SpecError


class SpecProblem(SpecError):  # noqa: N818  # a fault of the spec, not of the operator
    """`field` is the path of the field (`spec.pod.patch`), `message` one sentence without it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message
