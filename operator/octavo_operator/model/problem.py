"""How a model is turned down: `ModelProblem` is raised while it is resolved, `Refusal` is the answer of a plan.

Both carry the reason for status and sentences for a person. A refusal knows the model and the device, so it says itself
what to write instead: general advice beside it would only disagree. Neither holds a secret.
"""

from dataclasses import dataclass

from octavo_operator.reasons import Reason


class ModelProblem(Exception):  # noqa: N818  a problem of the model, not an error of ours
    """The model of a spec cannot be used. `retry_after`: seconds that the hub asked for, if it did."""

    def __init__(self, reason: Reason, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Refusal:
    """The model does not fit the device or the settings."""

    reason: Reason
    message: str  # the fact, with its figures
    advice: str  # what to do about it, the only advice that is given: an imperative sentence
