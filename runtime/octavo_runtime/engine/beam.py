"""`BeamSearch`: which beams live on after a step, and which finished hypotheses are the best.

The rules are those of `transformers`' `num_beams` generation: candidates of all beams compete by cumulative
log-probability; an ending candidate counts only among the first `width`; a hypothesis scores cumulative / length **
length_penalty; the search ends when `width` hypotheses are there and either early_stopping is set or no live beam
beats the worst at its current length. Differences: stop_token_ids end a hypothesis as EOS does, and with fewer
distinct sequences than n the last one is repeated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from operator import itemgetter

from octavo_runtime.engine.messages import FinishReason


@dataclass(frozen=True, slots=True)
class Beam:
    """A live beam before the step's token; candidates are (token id, logprob), likeliest first."""

    cumulative_logprob: float
    output_token_ids: Sequence[int]
    candidates: Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True)
class Child:
    """A beam that lives on: beam number `parent` with `token_id` appended."""

    parent: int
    token_id: int
    cumulative_logprob: float


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A finished beam; `token_ids` are its output, the ending token included."""

    score: float
    token_ids: list[int]
    cumulative_logprob: float
    finish_reason: FinishReason


class BeamSearch:
    """State of one request's search."""

    __slots__ = ("_early_stopping", "_length_penalty", "_terminators", "hypotheses", "width")

    def __init__(self, width: int, length_penalty: float, early_stopping: bool, terminators: frozenset[int]) -> None:
        self.width = width
        self.hypotheses: list[Hypothesis] = []  # best first, at most `width`
        self._length_penalty = length_penalty
        self._early_stopping = early_stopping
        self._terminators = terminators

    @property
    def num_candidates(self) -> int:
        """Candidates wanted per beam: enough that `width` go on even if every terminator is among the best."""
        return self.width + len(self._terminators)

    def advance(self, beams: Sequence[Beam], banned: frozenset[int], at_limit: bool) -> list[Child]:
        """Take one step's candidates in; the beams to go on with, best first, or none when the search is over.

        `at_limit`: no sequence may grow beyond the token chosen now. Candidates with probability 0 are ignored.
        Raises ArithmeticError when a score leaves the range of a float.
        """
        length = len(beams[0].output_token_ids) + 1
        children: list[Child] = []
        for rank, child in enumerate(_ranked(beams, banned)):
            if at_limit or child.token_id in self._terminators:
                if rank < self.width:
                    self._finish(beams[child.parent], child)
            else:
                children.append(child)
                if len(children) == self.width:
                    break
        if not children or self._is_over(children[0].cumulative_logprob / length**self._length_penalty):
            return []
        return children

    def best(self, num: int) -> list[Hypothesis]:
        """The `num` best hypotheses, best first; empty if nothing could be generated."""
        found = self.hypotheses[:num]
        return found + found[-1:] * (num - len(found))

    def _finish(self, beam: Beam, child: Child) -> None:
        token_ids = [*beam.output_token_ids, child.token_id]
        stopped = child.token_id in self._terminators
        self.hypotheses.append(
            Hypothesis(
                score=child.cumulative_logprob / len(token_ids) ** self._length_penalty,
                token_ids=token_ids,
                cumulative_logprob=child.cumulative_logprob,
                finish_reason=FinishReason.STOP if stopped else FinishReason.LENGTH,
            )
        )
        self.hypotheses.sort(key=lambda hypothesis: -hypothesis.score)
        del self.hypotheses[self.width :]

    def _is_over(self, best_possible: float) -> bool:
        if len(self.hypotheses) < self.width:
            return False
        return self._early_stopping or best_possible <= self.hypotheses[-1].score


def _ranked(beams: Sequence[Beam], banned: frozenset[int]) -> Iterator[Child]:
    """The candidates of all beams, best first; ties go to the earlier beam, then candidate."""
    pool = [
        (beam.cumulative_logprob + logprob, parent, token_id)
        for parent, beam in enumerate(beams)
        for token_id, logprob in beam.candidates
        if logprob > -inf and token_id not in banned
    ]
    pool.sort(key=itemgetter(0), reverse=True)
    return (Child(parent, token_id, score) for score, parent, token_id in pool)
