"""Runs requests through a synchronous engine in this process, to the end or as a stream. `llm.py` is its public face.

Given an `LLMEngine` and token ids; knows no settings and no model files.
"""

import itertools
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Protocol

from octavo_runtime.engine.messages import (
    AddRequest,
    FinishReason,
    PromptLogprobs,
    RequestFinished,
    SequenceOutput,
    StepOutputs,
)
from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.errors import InvalidRequestError
from octavo_runtime.request_output import NamedTokens, RequestCollector, RequestOutput


class Engine(Protocol):
    """`LLMEngine` as it is used here."""

    def add_request(self, request: AddRequest) -> None: ...
    def abort_request(self, request_id: str, index: int | None = None) -> None: ...
    def has_unfinished_requests(self) -> bool: ...
    def step(self) -> StepOutputs: ...


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is generated from. `text` is None when only the token ids are known."""

    token_ids: Sequence[int]
    text: str | None = None


OnProgress = Callable[[int, int], None]
"""Called after each step with the requests finished and the tokens generated in it."""


class OfflineRunner:
    """One engine, one caller at a time. Whatever ends a call early (Ctrl-C, an error) leaves no request behind."""

    def __init__(self, engine: Engine, tokenizer: NamedTokens, eos_token_ids: tuple[int, ...]) -> None:
        self._engine = engine
        self._tokenizer = tokenizer
        self._eos_token_ids = eos_token_ids
        self._numbers = itertools.count()

    def run(
        self, prompts: Sequence[Prompt], params: Sequence[SamplingParams], on_progress: OnProgress | None = None
    ) -> list[RequestOutput]:
        """One output per prompt, in order. Raises InvalidRequestError when the engine refuses one of them."""
        collectors: dict[str, RequestCollector] = {}
        try:
            for prompt, chosen in zip(prompts, params, strict=True):
                self._add(prompt, chosen, collectors)
            while any(collector.finished is None for collector in collectors.values()):
                finished, tokens = self._step(collectors)
                if on_progress is not None:
                    on_progress(finished, tokens)
        finally:
            self._abort_unfinished(collectors)
        for collector in collectors.values():
            _check(collector)
        return [collector.output() for collector in collectors.values()]

    def stream(self, prompt: Prompt, params: SamplingParams) -> Generator[str, None, None]:
        """The text of one sequence, piece by piece. Closing the iterator aborts it. Raises InvalidRequestError."""
        collectors: dict[str, RequestCollector] = {}
        try:
            collector = self._add(prompt, params, collectors)
            while collector.finished is None:
                pieces: list[str] = []
                self._step(collectors, pieces)
                yield from filter(None, pieces)
        finally:
            self._abort_unfinished(collectors)
        _check(collector)

    def _add(self, prompt: Prompt, params: SamplingParams, collectors: dict[str, RequestCollector]) -> RequestCollector:
        request_id = f"offline-{next(self._numbers)}"
        eos = self._eos_token_ids
        collector = RequestCollector(request_id, prompt.text, prompt.token_ids, params, self._tokenizer, eos)
        collectors[request_id] = collector
        request = AddRequest(
            request_id=request_id, prompt_token_ids=list(prompt.token_ids), params=params, eos_token_ids=eos
        )
        self._engine.add_request(request)
        return collector

    def _step(self, collectors: dict[str, RequestCollector], pieces: list[str] | None = None) -> tuple[int, int]:
        """One step of the engine: (requests finished, tokens generated); new text goes to `pieces`."""
        outputs = self._engine.step()
        events: list[SequenceOutput | PromptLogprobs | RequestFinished] = [
            *outputs.prompts,
            *outputs.sequences,
            *outputs.finished,
        ]
        for event in events:
            collector = collectors.get(event.request_id)
            delta = collector.take(event) if collector else None
            if delta is None or not isinstance(event, SequenceOutput):
                continue
            if pieces is not None:
                pieces.append(delta.text)
            if delta.stopped_by is not None and event.finish_reason is None:
                self._engine.abort_request(event.request_id, event.index)
        return len(outputs.finished), sum(len(output.token_ids) for output in outputs.sequences)

    def _abort_unfinished(self, collectors: dict[str, RequestCollector]) -> None:
        open_ids = [request_id for request_id, collector in collectors.items() if collector.finished is None]
        for request_id in open_ids:
            self._engine.abort_request(request_id)
        if open_ids and self._engine.has_unfinished_requests():
            self._engine.step()  # lets the engine report the ends that nobody waits for any more


def _check(collector: RequestCollector) -> None:
    finished = collector.finished
    if finished is not None and finished.reason is FinishReason.ERROR:
        raise InvalidRequestError(finished.error or "The engine gave the request up.", "prompt")
