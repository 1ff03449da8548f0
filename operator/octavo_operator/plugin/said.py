"""`Said`: what the operator last reported of a model that is not ready, taken apart for `why`."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from octavo_operator.conditions import condition
from octavo_operator.explanations import EXPLANATIONS
from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding
from octavo_operator.status.redaction import redact

_OF_A_POD = re.compile(r"^Pod (?P<pod>[a-z0-9.-]+): ")
_LIKE_IT = re.compile(r" \(\d+ pods? more like it\.\)$")
_BETWEEN_STATEMENTS = re.compile(r"(?<=[.:]) ")


@dataclass(frozen=True, slots=True)
class Said:
    """What the operator last reported in condition Ready, without the remedy that ends it."""

    word: str  # the reason as it is written; a newer operator may know more of them
    sentence: str
    remedy: str

    @classmethod
    def of(cls, status: Mapping[str, Any]) -> "Said":
        ready, failure = condition(status, "Ready"), status.get("lastFailure") or {}
        word, message = str(ready.get("reason", "")), str(ready.get("message", ""))
        general = EXPLANATIONS[Reason(word)].remedy if word in set(Reason) else ""
        own = " ".join(str(failure.get("remedy", "")).split()) if failure.get("reason") == word else ""
        remedy = own if own and message.endswith(own) else general  # of the present failure, which need not be the last
        return cls(word, message.removesuffix(remedy).strip(), remedy)

    @property
    def reason(self) -> Reason | None:
        return Reason(self.word) if self.word in set(Reason) else None

    @property
    def pod(self) -> str:
        """The pod that it speaks of, if any."""
        match = _OF_A_POD.match(self.sentence)
        return match["pod"] if match else ""

    @property
    def message(self) -> str:
        """Without the pod's name, and without how many others are like it: each has a node of its own."""
        return _LIKE_IT.sub("", _OF_A_POD.sub("", self.sentence))

    def beside(self, findings: Iterable[Finding]) -> str:
        """The sentence up to where it only repeats a finding, which is told in full next to it."""
        sentence = " ".join(self.sentence.split())
        messages = [" ".join(redact(finding.message).split()) for finding in findings]
        for gap in _BETWEEN_STATEMENTS.finditer("" if self.pod else sentence):
            rest = sentence[gap.end() :].rstrip(".…")  # clipped where it was long
            if rest and any(rest in message for message in messages):
                return f"{sentence[: gap.start()].rstrip('.:')}."
        return sentence
