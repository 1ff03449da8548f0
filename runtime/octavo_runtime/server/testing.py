"""Fakes for tests of the server: an engine that answers from a script, a tokenizer of bytes, a plain chat template.

Used by the tests and by examples; the fake engine keeps every promise of `interfaces.Engine`.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from octavo_runtime.engine.messages import (
    AddRequest,
    EngineFailed,
    EngineReady,
    FinishReason,
    LoadProgress,
    PromptLogprobs,
    RequestFinished,
    SchedulerStats,
    SequenceOutput,
    StepOutputs,
    TokenLogprobs,
)
from octavo_runtime.errors import EngineDeadError, InvalidRequestError
from octavo_runtime.server.interfaces import RequestEvent

BOS, EOS = 256, 257
VOCAB_SIZE = 258


class ByteTokenizer:
    """One token per UTF-8 byte, and two special ones."""

    vocab_size = VOCAB_SIZE
    special_ids = frozenset({BOS, EOS})

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        ids = list(text.encode())
        return [BOS, *ids] if add_special_tokens else ids

    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        kept = [token_id for token_id in token_ids if token_id < BOS or not skip_special_tokens]
        return b"".join(self.token_bytes(token_id) for token_id in kept).decode(errors="replace")

    def token_text(self, token_id: int) -> str:
        data = self.token_bytes(token_id)
        try:
            return data.decode()
        except UnicodeDecodeError:
            return f"bytes:\\x{data[0]:02x}"

    def token_string(self, token_id: int) -> str:
        return self.token_text(token_id)

    def token_bytes(self, token_id: int) -> bytes:
        return bytes([token_id]) if token_id < BOS else {BOS: b"<bos>", EOS: b"<eos>"}[token_id]


class PlainTemplate:
    """`role: content` lines; refuses a message whose content is "refuse me"."""

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool,
        continue_final_message: bool,
        tools: Sequence[Mapping[str, Any]] | None = None,  # noqa: ARG002  part of the interface
        kwargs: Mapping[str, Any] | None = None,
    ) -> str:
        lines = []
        for index, message in enumerate(messages):
            if message.get("content") == "refuse me":
                raise InvalidRequestError("The chat template refuses this.", f"messages[{index}]")
            lines.append(f"{message['role']}: {message.get('content') or ''}\n")
        text = "".join(lines)
        if continue_final_message:
            return text.removesuffix("\n")
        if kwargs and kwargs.get("shout"):
            text = text.upper()
        return text + "assistant: " if add_generation_prompt else text


class FakeEngine:
    """Answers every sequence with `answer` (token ids), then EOS, one token per step of `step_seconds`."""

    def __init__(self, answer: Sequence[int] | Callable[[AddRequest, int], Sequence[int]] = b"Hello, world!") -> None:
        self.answer = answer if callable(answer) else lambda _request, _index: answer
        self.ready: EngineReady | None = ready_message()
        self.progress: LoadProgress | None = None
        self.dead: EngineFailed | None = None
        self.stats = SchedulerStats()
        self.on_step: list[Callable[[StepOutputs], None]] = []
        self.step_seconds = 0.0
        self.tokens_per_event = 1
        self.age = 0.0
        self.refusal: str | None = None  # ends the next requests with ERROR
        self.running = asyncio.Event()  # cleared: no request gets on
        self.running.set()
        self.requests: dict[str, AddRequest] = {}
        self.seen: list[AddRequest] = []
        self.aborted: list[tuple[str, int | None]] = []
        self.num_resets = 0
        self._stopped: set[tuple[str, int | None]] = set()

    @property
    def num_requests(self) -> int:
        return len(self.requests)

    @property
    def has_work(self) -> bool:
        return bool(self.requests)

    def heartbeat_age(self) -> float:
        return self.age

    def abort(self, request_id: str, index: int | None = None) -> None:
        self.aborted.append((request_id, index))
        self._stopped.add((request_id, index))

    def abort_all(self) -> None:
        for request_id in list(self.requests):
            self.abort(request_id)
        self.running.set()

    def reset_prefix_cache(self) -> None:
        self.num_resets += 1

    def die(self, message: str = "The engine process ended unexpectedly.") -> None:
        self.dead = EngineFailed(cause="EngineDied", message=message)
        self.running.set()

    async def generate(self, request: AddRequest) -> AsyncGenerator[RequestEvent, None]:
        if self.dead is not None:
            raise EngineDeadError(self.dead.message)
        self.requests[request.request_id] = request
        self.seen.append(request)
        finished = False
        try:
            async for event in self._events(request):
                finished = isinstance(event, RequestFinished)
                if isinstance(event, RequestFinished):
                    for observe in self.on_step:
                        observe(StepOutputs(finished=[event], stats=self.stats))
                yield event
        finally:
            del self.requests[request.request_id]
            if not finished:
                self.abort(request.request_id)

    async def _events(self, request: AddRequest) -> AsyncGenerator[RequestEvent, None]:
        params, request_id = request.params, request.request_id
        await self._step()
        if self.refusal is not None:
            yield RequestFinished(request_id=request_id, reason=FinishReason.ERROR, error=self.refusal)
            return
        if params.prompt_logprobs is not None:
            entries = [_logprob(token_id, params.prompt_logprobs) for token_id in request.prompt_token_ids[1:]]
            yield PromptLogprobs(request_id=request_id, logprobs=entries)
        answers = {index: self._tokens(request, index) for index in range(params.num_sequences)}
        produced = dict.fromkeys(answers, 0)
        reason = FinishReason.STOP
        while answers:
            await self._step()
            if self.dead is not None:
                yield RequestFinished(request_id=request_id, reason=FinishReason.ERROR, error=self.dead.message)
                return
            if (request_id, None) in self._stopped:
                reason = FinishReason.ABORT
                break
            for index in list(answers):
                if (request_id, index) in self._stopped:
                    del answers[index]
                    continue
                output = self._output(request, index, answers[index], produced[index])
                produced[index] += len(output.token_ids)
                if output.finish_reason is not None:
                    del answers[index]
                yield output
        yield RequestFinished(
            request_id=request_id,
            reason=reason,
            num_prompt_tokens=len(request.prompt_token_ids),
            num_cached_tokens=len(request.prompt_token_ids) // 2,
            num_generation_tokens=sum(produced.values()),
            queue_time=0.01,
            prefill_time=0.02,
            decode_time=0.1,
        )

    async def _step(self) -> None:
        await asyncio.sleep(self.step_seconds)
        await self.running.wait()

    def _tokens(self, request: AddRequest, index: int) -> list[int]:
        tokens = list(self.answer(request, index))
        if request.params.ignore_eos:
            tokens = tokens * ((request.params.max_tokens or 1) // max(1, len(tokens)) + 1)
        else:
            tokens.append(EOS)
        return tokens[: request.params.max_tokens]

    def _output(self, request: AddRequest, index: int, answer: list[int], start: int) -> SequenceOutput:
        tokens = answer[start : start + self.tokens_per_event]
        wanted = request.params.logprobs
        end = start + len(tokens)
        reason = None
        if end == len(answer):
            reason = FinishReason.STOP if tokens[-1:] == [EOS] else FinishReason.LENGTH
        return SequenceOutput(
            request_id=request.request_id,
            index=index,
            token_ids=tokens,
            logprobs=None if wanted is None else [_logprob(token_id, wanted) for token_id in tokens],
            finish_reason=reason,
            cumulative_logprob=-float(end),
        )


def ready_message(max_model_len: int = 512, max_num_seqs: int = 32) -> EngineReady:
    """A small engine's EngineReady."""
    return EngineReady(
        num_blocks=64,
        num_host_blocks=8,
        block_size=16,
        max_model_len=max_model_len,
        max_num_seqs=max_num_seqs,
        vocab_size=VOCAB_SIZE,
        backend="fake",
        dtype="float32",
        weight_bytes=1,
        cache_bytes=1,
        timings={},
    )


def _logprob(token_id: int, num_top: int) -> TokenLogprobs:
    """-1 for the token itself, lower for its neighbours."""
    top = [((token_id + place) % BOS, -1.0 - place) for place in range(max(0, num_top))]
    return TokenLogprobs(token_id=token_id, logprob=-1.0, rank=1, top=top)
