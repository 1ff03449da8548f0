"""What offline generation gives back, and the collector that builds it from the engine's events.

One `RequestCollector` per request: it turns tokens into text, finds stop strings, keeps log-probabilities, and picks
the best `n` of `best_of`. Knows no engine; `offline.py` drives it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from octavo_runtime.engine.messages import FinishReason, PromptLogprobs, RequestFinished, SequenceOutput, TokenLogprobs
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.text.output_processor import OutputProcessor, TextDelta, TokenSource


class NamedTokens(TokenSource, Protocol):
    """A tokenizer that can also write a token for people."""

    def token_text(self, token_id: int) -> str: ...


@dataclass(frozen=True, slots=True)
class Logprob:
    """Natural log of a token's probability, its rank (1 = likeliest) and its text."""

    logprob: float
    rank: int
    decoded_token: str


TokenPlace = Mapping[int, Logprob]
"""The tokens reported at one place, by id: the chosen one and the likeliest."""


@dataclass(frozen=True, slots=True)
class CompletionOutput:
    """One generated sequence. `stop_reason`: the stop string or stop token that ended it; None for EOS and length."""

    index: int
    text: str
    token_ids: Sequence[int]
    cumulative_logprob: float | None
    logprobs: Sequence[TokenPlace] | None
    finish_reason: str | None
    stop_reason: str | int | None = None


@dataclass(frozen=True, slots=True)
class RequestOutput:
    """A prompt with everything generated from it. `prompt` is None when only token ids were given."""

    request_id: str
    prompt: str | None
    prompt_token_ids: Sequence[int]
    outputs: Sequence[CompletionOutput]
    finished: bool
    prompt_logprobs: Sequence[TokenPlace | None] | None = None
    num_cached_tokens: int = 0


@dataclass(slots=True)
class _Sequence:
    """One sequence as it grows."""

    processor: OutputProcessor
    text: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    cumulative_logprob: float = 0.0
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None


class RequestCollector:
    """Takes one request's events until `finished` is set."""

    def __init__(
        self,
        request_id: str,
        prompt: str | None,
        prompt_token_ids: Sequence[int],
        params: SamplingParams,
        tokenizer: NamedTokens,
        eos_token_ids: tuple[int, ...] = (),
    ) -> None:
        self.finished: RequestFinished | None = None
        self._head = (request_id, prompt, prompt_token_ids)
        self._params = params
        self._tokenizer = tokenizer
        self._prompt_logprobs: list[TokenPlace | None] | None = None
        self._sequences = [
            _Sequence(OutputProcessor(tokenizer, params, prompt_token_ids, eos_token_ids))
            for _ in range(params.num_sequences)
        ]

    def take(self, event: SequenceOutput | PromptLogprobs | RequestFinished) -> TextDelta | None:
        """Take an event in. The delta of a sequence's event may have `stopped_by` set: then abort that sequence."""
        if isinstance(event, RequestFinished):
            self.finished = event
            return None
        if isinstance(event, PromptLogprobs):
            self._prompt_logprobs = [None, *map(self._place, event.logprobs)]
            return None
        return self._take_tokens(self._sequences[event.index], event)

    def output(self) -> RequestOutput:
        """All that has come so far: the best `n` sequences, likeliest first where there was a choice."""
        chosen = self._sequences
        if self._params.num_sequences > self._params.n and not self._params.use_beam_search:
            chosen = sorted(chosen, key=lambda sequence: -sequence.cumulative_logprob)
        outputs = [self._completion(index, sequence) for index, sequence in enumerate(chosen[: self._params.n])]
        cached = self.finished.num_cached_tokens if self.finished else 0
        return RequestOutput(*self._head, outputs, self.finished is not None, self._prompt_logprobs, cached)

    def _take_tokens(self, sequence: _Sequence, event: SequenceOutput) -> TextDelta:
        if isinstance(sequence.stop_reason, str):
            return TextDelta("", ())
        delta = sequence.processor.push(event.token_ids, finished=event.finish_reason is not None)
        sequence.text.append(delta.text)
        sequence.token_ids.extend(delta.token_ids)
        sequence.logprobs.extend((event.logprobs or ())[: len(delta.token_ids)])
        sequence.cumulative_logprob = event.cumulative_logprob
        sequence.finish_reason = event.finish_reason
        sequence.stop_reason = event.stop_token_id
        if delta.stopped_by is not None:
            sequence.finish_reason, sequence.stop_reason = FinishReason.STOP, delta.stopped_by
        return delta

    def _completion(self, index: int, sequence: _Sequence) -> CompletionOutput:
        wanted = self._params.logprobs is not None
        logprobs = [self._place(entry) for entry in sequence.logprobs] if wanted else None
        known = wanted or self._params.use_beam_search or self._params.num_sequences > self._params.n
        reason = sequence.finish_reason or (self.finished.reason if self.finished else None)
        return CompletionOutput(
            index=index,
            text="".join(sequence.text),
            token_ids=tuple(sequence.token_ids),
            cumulative_logprob=sequence.cumulative_logprob if known else None,
            logprobs=logprobs,
            finish_reason=reason.value if reason else None,
            stop_reason=sequence.stop_reason,
        )

    def _place(self, entry: TokenLogprobs) -> TokenPlace:
        text = self._tokenizer.token_text
        place = {entry.token_id: Logprob(entry.logprob, entry.rank, text(entry.token_id))}
        for rank, (token_id, logprob) in enumerate(entry.top, start=1):
            place.setdefault(token_id, Logprob(logprob, rank, text(token_id)))
        return place
