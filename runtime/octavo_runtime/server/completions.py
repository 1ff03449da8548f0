"""POST /v1/completions: body -> generation -> `text_completion` objects, whole or as a stream."""

from collections.abc import Iterable
from typing import Any

import msgspec
from aiohttp import web

from octavo_runtime.engine.messages import FinishReason, TokenLogprobs
from octavo_runtime.server.body import read_body
from octavo_runtime.server.generation import Delta, Generation, collect
from octavo_runtime.server.logprobs import CompletionLogprobs, TokenNames, joined, prompt_logprobs
from octavo_runtime.server.params import DEFAULT_COMPLETION_TOKENS, OutputOptions, output_options, refuse_unavailable
from octavo_runtime.server.reply import EventEncoder, Head, generated_tokens, json_response, usage_of
from octavo_runtime.server.schema import CompletionBody
from octavo_runtime.server.service import SERVICE, Service, WantedTokens
from octavo_runtime.server.sse import stream_reply

_KIND = "text_completion"
_decode = msgspec.json.Decoder(CompletionBody).decode


async def completions(request: web.Request) -> web.StreamResponse:
    """The handler."""
    service = request.app[SERVICE]
    limits = service.admission.limits()
    body = await read_body(request, _decode)
    service.check_model(body.model)
    refuse_unavailable(body)
    options = output_options(body, service.config)
    prompts = await service.encoder.completion_prompts(body, limits, service.config.max_prompts)
    only_prompt = options.echo and body.max_tokens == 0
    explicit = 1 if only_prompt else body.max_tokens
    wanted = WantedTokens(explicit, DEFAULT_COMPLETION_TOKENS)
    generation = service.new_generation(request, body, prompts, wanted, options)
    head = Head(generation.job.public_id, service.config.model_name)
    writer = ChoiceWriter(service, generation, options, only_prompt)
    if options.stream:
        return await stream_reply(request, generation, CompletionEvents(head, writer))
    return await _whole_reply(head, writer)


async def _whole_reply(head: Head, writer: "ChoiceWriter") -> web.Response:
    outputs = await collect(writer.generation)
    choices = []
    for output in outputs:
        parts = Part(output.index, output.prompt, output.text, output.token_ids, output.logprobs)
        choices.append(writer.choice(parts, output.finish_reason, output.stop_reason))
    tokens = 0 if writer.only_prompt else sum(len(output.token_ids) for output in outputs)
    return json_response(head.reply(_KIND, choices=choices, usage=writer.usage(tokens)))


class Part(msgspec.Struct, frozen=True):
    """What is new in one choice."""

    index: int
    prompt: int
    text: str
    token_ids: list[int]
    logprobs: list[TokenLogprobs] | None


class ChoiceWriter:
    """Parts of choices as JSON objects. The first part of a choice brings the echo and the prompt's details."""

    def __init__(self, service: Service, generation: Generation, options: OutputOptions, only_prompt: bool) -> None:
        """`only_prompt`: echo with max_tokens 0; the one token that the engine makes anyway is not shown."""
        self.generation = generation
        self.options = options
        self.only_prompt = only_prompt
        self._tokenizer = service.text.tokenizer
        self._details = generation.job.wants_cached_tokens
        self._names = TokenNames(service.text.tokenizer, options.tokens_as_ids)
        skips_special = generation.job.params.skip_special_tokens
        self._hidden = service.text.tokenizer.special_ids if skips_special else frozenset()
        self._logprobs: dict[int, CompletionLogprobs] = {}

    @property
    def is_plain(self) -> bool:
        """Whether an event holds nothing but text."""
        options = self.options
        wants_logprobs = self.generation.job.params.logprobs is not None
        return not (wants_logprobs or options.echo or options.return_token_ids or options.continuous_usage)

    def usage(self, completion_tokens: int) -> dict[str, Any]:
        return usage_of(self.generation, completion_tokens, self._details)

    def choice(self, part: Part, finish: FinishReason | None, stop_reason: str | int | None) -> dict[str, Any]:
        """One object of `choices`; null where nothing ended yet."""
        begins = part.index not in self._logprobs
        logprobs = self._logprobs.setdefault(part.index, CompletionLogprobs(self._names, self._hidden))
        text = "" if self.only_prompt else part.text
        written = self._write_logprobs(logprobs, part, begins)
        if begins and self.options.echo:
            text = self._prompt_text(part.prompt) + text
        if self.only_prompt and finish is not None:
            finish, stop_reason = FinishReason.LENGTH, None
        choice = {
            "index": part.index,
            "text": text,
            "logprobs": written,
            "finish_reason": finish,
            "stop_reason": stop_reason,
        }
        self._add_details(choice, part, begins)
        return choice

    def _write_logprobs(self, writer: CompletionLogprobs, part: Part, begins: bool) -> dict[str, Any] | None:
        if self.generation.job.params.logprobs is None:
            return None
        written = []
        if begins and self.options.echo:
            first = self.generation.job.prompts[part.prompt].token_ids[0]
            written.append(writer.first(first))
            written.append(writer.write(self.generation.prompt_logprobs[part.prompt] or ()))
        if not self.only_prompt:
            written.append(writer.write(part.logprobs or ()))
        return joined(written) if written else None

    def _add_details(self, choice: dict[str, Any], part: Part, begins: bool) -> None:
        if self.options.return_token_ids:
            choice["token_ids"] = [] if self.only_prompt else part.token_ids
            if begins:
                choice["prompt_token_ids"] = self.generation.job.prompts[part.prompt].token_ids
        entries = self.generation.prompt_logprobs[part.prompt]
        if self.options.prompt_logprobs:
            choice["prompt_logprobs"] = prompt_logprobs(self._names, entries or ())

    def _prompt_text(self, index: int) -> str:
        prompt = self.generation.job.prompts[index]
        if prompt.text is not None and self.generation.job.params.truncate_prompt_tokens is None:
            return prompt.text
        return self._tokenizer.decode(prompt.token_ids, skip_special_tokens=prompt.text is not None)


class CompletionEvents:
    """Deltas -> events."""

    def __init__(self, head: Head, writer: ChoiceWriter) -> None:
        self._writer = writer
        self._plain = writer.is_plain
        after = b',"logprobs":null,"finish_reason":null,"stop_reason":null}]}\n\n'
        self._encoder = EventEncoder(head, _KIND, len(writer.generation.choices), b',"text":', after)

    def events(self, deltas: Iterable[Delta]) -> bytes:
        parts = []
        for delta in deltas:
            if self._plain and delta.finish_reason is None:
                if delta.text:
                    parts.append(self._encoder.plain(delta.choice.index, delta.text))
            else:
                parts.append(self._full(delta))
        return b"".join(parts)

    def last_events(self) -> bytes:
        if not self._writer.options.include_usage:
            return b""
        return self._encoder.usage(self._writer.usage(self._num_tokens(generated_tokens(self._writer.generation))))

    def _full(self, delta: Delta) -> bytes:
        choice = delta.choice
        part = Part(choice.index, choice.prompt, delta.text, delta.token_ids, delta.logprobs)
        written = self._writer.choice(part, delta.finish_reason, delta.stop_reason)
        continuous = self._writer.options.continuous_usage
        usage = self._writer.usage(self._num_tokens(choice.num_tokens)) if continuous else None
        return self._encoder.full(written, usage)

    def _num_tokens(self, generated: int) -> int:
        return 0 if self._writer.only_prompt else generated
