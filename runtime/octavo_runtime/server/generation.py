"""One HTTP call's work in the engine: one `AddRequest` per prompt, their events as text deltas of numbered choices.

Chat and completions, streaming or not, read the same deltas, so that a stream's concatenation is the whole reply.
Closing the deltas early (client gone, error) aborts what still runs.
"""

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from octavo_runtime.engine.messages import (
    AddRequest,
    FinishReason,
    PromptLogprobs,
    RequestFinished,
    SequenceOutput,
    TokenLogprobs,
)
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.errors import EngineDeadError, GenerationFailedError, InvalidRequestError
from octavo_runtime.metrics import RequestTimer, ServerMetrics
from octavo_runtime.server.admission import Admission
from octavo_runtime.server.event_merge import merged_events
from octavo_runtime.server.interfaces import Engine, RequestEvent, TextLayer
from octavo_runtime.server.prompts import Prompt
from octavo_runtime.text.output_processor import OutputProcessor


@dataclass(frozen=True, slots=True)
class Job:
    """What one HTTP call wants of the engine. `arrival`: time.perf_counter() when the call came in."""

    public_id: str
    prompts: Sequence[Prompt]
    params: SamplingParams
    priority: int = 0
    cache_salt: str | None = None
    stream_interval: int = 1
    wants_cached_tokens: bool = False
    arrival: float = field(default_factory=time.perf_counter)


@dataclass(slots=True)
class Delta:
    """What a choice gained. `finish_reason` set: it is complete. `stop_reason`: stop string or token id, or None."""

    choice: "Choice"
    text: str
    token_ids: list[int]
    logprobs: list[TokenLogprobs] | None
    finish_reason: FinishReason | None = None
    stop_reason: str | int | None = None


@dataclass(slots=True)
class Choice:
    """A sequence as the client numbers it: `index` = prompt * sequences per prompt + sequence."""

    index: int
    prompt: int
    sequence: int
    processor: OutputProcessor
    num_tokens: int = 0
    cumulative_logprob: float = 0.0
    done: bool = False
    last_output: float = 0.0
    held: Delta | None = None  # not sent yet, because of stream_interval


class Generation:
    """Runs one job. After the deltas ended, `prompt_logprobs` and the counts are final."""

    def __init__(self, engine: Engine, text: TextLayer, admission: Admission, metrics: ServerMetrics, job: Job) -> None:
        self.job = job
        self.prompt_logprobs: list[list[TokenLogprobs] | None] = [None] * len(job.prompts)
        self.num_cached_tokens = 0
        self._engine = engine
        self._admission = admission
        self._width = job.params.num_sequences
        self._timers = [RequestTimer(metrics, job.arrival) for _ in job.prompts]
        self.choices = [
            Choice(
                prompt * self._width + sequence,
                prompt,
                sequence,
                OutputProcessor(text.tokenizer, job.params, job.prompts[prompt].token_ids, text.eos_token_ids),
            )
            for prompt in range(len(job.prompts))
            for sequence in range(self._width)
        ]
        self._open = len(self.choices)
        self._open_of = [self._width] * len(job.prompts)
        self._stopped_by_text = False
        self._eos_token_ids = text.eos_token_ids
        metrics.requests_accepted(job.params, [len(prompt.token_ids) for prompt in job.prompts])

    @property
    def num_prompt_tokens(self) -> int:
        return sum(len(prompt.token_ids) for prompt in self.job.prompts)

    async def deltas(self) -> AsyncGenerator[list[Delta], None]:
        """Batches of deltas as the engine's steps give them. Raises RequestError or EngineDeadError on failure.

        Iterate inside `contextlib.aclosing`: leaving early aborts the requests.
        """
        requests = self._requests()
        tickets = [self._admission.enter(len(request.prompt_token_ids)) for request in requests]
        try:
            async with aclosing(merged_events(self._engine, requests, single=self._width == 1)) as batches:
                async for batch in batches:
                    now = time.perf_counter()
                    deltas: list[Delta] = []
                    for prompt, event in batch:
                        tickets[prompt].started()
                        self._take(prompt, event, now, deltas)
                    if deltas:
                        yield deltas
                    if self._open == 0 and self._stopped_by_text and not self.job.wants_cached_tokens:
                        return  # the engine hears of a stop string a step later: its terminal event is not waited for
        finally:
            for prompt, ticket in enumerate(tickets):
                ticket.leave()
                self._end(prompt, FinishReason.ABORT)  # no effect on a request that has ended

    def _requests(self) -> list[AddRequest]:
        unique = uuid.uuid4().hex[:12]  # clients may send the same X-Request-Id twice at once
        return [
            AddRequest(
                request_id=f"{self.job.public_id}-{unique}-{place}",
                prompt_token_ids=prompt.token_ids,
                params=self.job.params,
                eos_token_ids=self._eos_token_ids,
                priority=self.job.priority,
                cache_salt=self.job.cache_salt,
            )
            for place, prompt in enumerate(self.job.prompts)
        ]

    def _take(self, prompt: int, event: RequestEvent, now: float, deltas: list[Delta]) -> None:
        match event:
            case SequenceOutput():
                choice = self.choices[prompt * self._width + event.index]
                if not choice.done:
                    self._take_tokens(choice, event, now, deltas)
            case PromptLogprobs():
                self.prompt_logprobs[prompt] = event.logprobs
            case RequestFinished():
                self._take_finish(prompt, event, deltas)

    def _take_tokens(self, choice: Choice, event: SequenceOutput, now: float, deltas: list[Delta]) -> None:
        timer = self._timers[choice.prompt]
        timer.tokens(now, choice.last_output)
        choice.last_output = now
        piece = choice.processor.push(event.token_ids, event.finish_reason is not None)
        token_ids = list(piece.token_ids)
        logprobs = event.logprobs
        if logprobs is not None and len(token_ids) < len(event.token_ids):
            logprobs = logprobs[: len(token_ids)]
        delta = Delta(choice, piece.text, token_ids, logprobs, event.finish_reason, event.stop_token_id)
        choice.num_tokens += len(token_ids)
        choice.cumulative_logprob = event.cumulative_logprob
        if piece.stopped_by is not None:
            delta.finish_reason, delta.stop_reason = FinishReason.STOP, piece.stopped_by
            if event.finish_reason is None:
                self._engine.abort(event.request_id, event.index)
                self._stopped_by_text = True
        self._emit(delta, deltas)

    def _take_finish(self, prompt: int, event: RequestFinished, deltas: list[Delta]) -> None:
        self.num_cached_tokens += event.num_cached_tokens
        choices = self._choices_of(prompt)
        if event.reason is FinishReason.ERROR:
            self._end(prompt, FinishReason.ERROR)
            raise self._failure(event, any(choice.num_tokens for choice in choices))
        for choice in choices:
            if not choice.done:
                piece = choice.processor.push((), True)
                self._emit(Delta(choice, piece.text, [], None, event.reason), deltas)

    def _choices_of(self, prompt: int) -> list[Choice]:
        return self.choices[prompt * self._width : (prompt + 1) * self._width]

    def _end(self, prompt: int, reason: FinishReason) -> None:
        self._timers[prompt].ended(reason, max(choice.num_tokens for choice in self._choices_of(prompt)))

    def _failure(self, event: RequestFinished, begun: bool) -> Exception:
        """Every value was checked before, so what the engine refuses at the start is a size."""
        message = event.error or "The engine gave the request up."
        if self._engine.dead is not None:
            return EngineDeadError(message)
        return GenerationFailedError(message) if begun else InvalidRequestError(message, "input_tokens")

    def _emit(self, delta: Delta, deltas: list[Delta]) -> None:
        """Send, or hold back until `stream_interval` tokens are there; the first token and the last go at once."""
        choice = delta.choice
        if delta.finish_reason is not None:
            choice.done = True
            self._open -= 1
            self._open_of[choice.prompt] -= 1
            if self._open_of[choice.prompt] == 0:
                self._end(choice.prompt, delta.finish_reason)
        if self.job.stream_interval > 1:
            held = choice.held
            if held is not None:
                _append(held, delta)
                delta = held
            first = choice.num_tokens == len(delta.token_ids) and held is None
            if delta.finish_reason is None and not first and len(delta.token_ids) < self.job.stream_interval:
                choice.held = delta
                return
            choice.held = None
        deltas.append(delta)


def _append(held: Delta, delta: Delta) -> None:
    held.text += delta.text
    held.token_ids += delta.token_ids
    if delta.logprobs is not None:
        held.logprobs = (held.logprobs or []) + delta.logprobs
    held.finish_reason = delta.finish_reason
    held.stop_reason = delta.stop_reason


@dataclass(slots=True)
class Output:
    """A whole choice of a reply that does not stream."""

    index: int
    prompt: int
    text: str
    token_ids: list[int]
    logprobs: list[TokenLogprobs] | None
    finish_reason: FinishReason
    stop_reason: str | int | None


async def collect(generation: Generation) -> list[Output]:
    """Run to the end: for each prompt its best `n` choices, numbered prompt-major."""
    parts: list[list[Delta]] = [[] for _ in generation.choices]
    async with aclosing(generation.deltas()) as batches:
        async for batch in batches:
            for delta in batch:
                parts[delta.choice.index].append(delta)
    params = generation.job.params
    outputs = []
    for prompt in range(len(generation.job.prompts)):
        choices = [choice for choice in generation.choices if choice.prompt == prompt]
        if params.num_sequences > params.n and not params.use_beam_search:
            choices.sort(key=lambda choice: -choice.cumulative_logprob)
        for place, choice in enumerate(choices[: params.n]):
            outputs.append(_joined(prompt * params.n + place, parts[choice.index], choice))
    return outputs


def _joined(index: int, deltas: list[Delta], choice: Choice) -> Output:
    last = deltas[-1]
    logprobs = [entry for delta in deltas for entry in delta.logprobs or ()]
    return Output(
        index=index,
        prompt=choice.prompt,
        text="".join(delta.text for delta in deltas),
        token_ids=[token_id for delta in deltas for token_id in delta.token_ids],
        logprobs=logprobs if any(delta.logprobs is not None for delta in deltas) else None,
        finish_reason=last.finish_reason or FinishReason.ABORT,
        stop_reason=last.stop_reason,
    )
