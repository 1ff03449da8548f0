"""`Finding`: one thing that keeps an LLMDeployment from serving as asked, or that is still going on."""

from dataclasses import dataclass

from octavo_operator.explanations import EXPLANATIONS
from octavo_operator.reasons import Reason


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found, where. `message` is a fact of one or two sentences and gives no advice."""

    reason: Reason
    message: str
    stalled: bool | None = None  # None: as the reason says
    pod: str = ""
    container: str = ""
    exit_code: int | None = None
    since: float | None = None
    crashed: bool = False  # a container ended that should run
    advice: str = ""  # of whoever found it, where it knows better than the reason's remedy

    @property
    def blocks(self) -> bool:
        """Whether it will not heal without a person or a change of the spec."""
        return EXPLANATIONS[self.reason].stalled if self.stalled is None else self.stalled

    @property
    def remedy(self) -> str:
        """The one thing to do that is told."""
        return self.advice or EXPLANATIONS[self.reason].remedy

    @property
    def sentence(self) -> str:
        """The message with the pod that it speaks of, and with a full stop: the remedy may follow."""
        message = ended(self.message)
        return f"Pod {self.pod}: {message}" if self.pod else message


def ended(text: str) -> str:
    """With a full stop: what the kubelet and others say often has none."""
    text = text.strip()
    return text if not text or text.endswith((".", "!", "?", "…")) else f"{text}."
