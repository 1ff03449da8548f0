"""A problem of the spec is a SpecError that names its field."""

from octavo_operator.api import SpecError
from octavo_operator.spec_problem import SpecProblem


def test_problem_names_the_field_and_keeps_the_parts() -> None:
    problem = SpecProblem("spec.pod.patch", "is no map.")
    assert isinstance(problem, SpecError)
    assert (str(problem), problem.field, problem.message) == (
        "spec.pod.patch: is no map.",
        "spec.pod.patch",
        "is no map.",
    )
