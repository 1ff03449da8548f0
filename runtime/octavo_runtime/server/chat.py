"""POST /v1/chat/completions: messages -> generation -> `chat.completion` objects, whole or as a stream."""

from collections.abc import Iterable
from typing import Any

import msgspec
from aiohttp import web

from octavo_runtime.server.body import read_body
from octavo_runtime.server.generation import Delta, Generation, Output, collect
from octavo_runtime.server.logprobs import TokenNames, chat_logprobs, prompt_logprobs
from octavo_runtime.server.params import OutputOptions, output_options, refuse_unavailable
from octavo_runtime.server.reply import EventEncoder, Head, generated_tokens, json_response, usage_of
from octavo_runtime.server.schema import ChatBody
from octavo_runtime.server.service import SERVICE, Service, WantedTokens
from octavo_runtime.server.sse import stream_reply

_KIND = "chat.completion"
_CHUNK_KIND = "chat.completion.chunk"
_decode = msgspec.json.Decoder(ChatBody).decode


async def chat_completions(request: web.Request) -> web.StreamResponse:
    """The handler."""
    service = request.app[SERVICE]
    limits = service.admission.limits()
    body = await read_body(request, _decode)
    service.check_model(body.model)
    refuse_unavailable(body)
    options = output_options(body, service.config)
    prompt = await service.encoder.chat_prompt(body, limits)
    explicit = body.max_completion_tokens if body.max_completion_tokens is not None else body.max_tokens
    wanted = WantedTokens(explicit, service.text.defaults.max_tokens)
    generation = service.new_generation(request, body, [prompt], wanted, options)
    head = Head(generation.job.public_id, service.config.model_name)
    writer = MessageWriter(service, generation, options, body)
    if options.stream:
        return await stream_reply(request, generation, ChatEvents(head, writer))
    return await _whole_reply(head, writer)


async def _whole_reply(head: Head, writer: "MessageWriter") -> web.Response:
    outputs = await collect(writer.generation)
    tokens = sum(len(output.token_ids) for output in outputs)
    reply = head.reply(_KIND, choices=[writer.choice(output) for output in outputs], usage=writer.usage(tokens))
    generation = writer.generation
    if writer.options.prompt_logprobs:
        reply["prompt_logprobs"] = prompt_logprobs(writer.names, generation.prompt_logprobs[0] or ())
    if writer.options.return_token_ids:
        reply["prompt_token_ids"] = generation.job.prompts[0].token_ids
    return json_response(reply)


class MessageWriter:
    """Choices of a chat as JSON objects."""

    def __init__(self, service: Service, generation: Generation, options: OutputOptions, body: ChatBody) -> None:
        self.generation = generation
        self.options = options
        self.names = TokenNames(service.text.tokenizer, options.tokens_as_ids)
        self.role = _answering_role(body)
        self.echo = _echoed_text(body, self.role) if options.echo else ""
        self.wants_logprobs = generation.job.params.logprobs is not None
        self._details = generation.job.wants_cached_tokens

    def usage(self, completion_tokens: int) -> dict[str, Any]:
        return usage_of(self.generation, completion_tokens, self._details)

    def choice(self, output: Output) -> dict[str, Any]:
        """One object of `choices` of a whole reply."""
        choice: dict[str, Any] = {
            "index": output.index,
            "message": {"role": self.role, "content": self.echo + output.text},
            "logprobs": chat_logprobs(self.names, output.logprobs or ()) if self.wants_logprobs else None,
            "finish_reason": output.finish_reason,
            "stop_reason": output.stop_reason,
        }
        if self.options.return_token_ids:
            choice["token_ids"] = output.token_ids
        return choice


class ChatEvents:
    """Deltas -> events: the role first, then content, then the finish."""

    def __init__(self, head: Head, writer: MessageWriter) -> None:
        self._writer = writer
        options = writer.options
        self._plain = not (writer.wants_logprobs or options.return_token_ids or options.continuous_usage)
        after = b'},"logprobs":null,"finish_reason":null}]}\n\n'
        num_choices = len(writer.generation.choices)
        self._encoder = EventEncoder(head, _CHUNK_KIND, num_choices, b',"delta":{"content":', after)
        self._begun: set[int] = set()

    def events(self, deltas: Iterable[Delta]) -> bytes:
        parts = []
        for delta in deltas:
            index = delta.choice.index
            if index not in self._begun:
                self._begun.add(index)
                parts.append(self._first(index))
            if not self._plain or delta.finish_reason is not None:
                parts.append(self._full(delta))
            elif delta.text:
                parts.append(self._encoder.plain(index, delta.text))
        return b"".join(parts)

    def last_events(self) -> bytes:
        if not self._writer.options.include_usage:
            return b""
        return self._encoder.usage(self._writer.usage(generated_tokens(self._writer.generation)))

    def _first(self, index: int) -> bytes:
        """The role, and the echo of the message that the answer continues."""
        writer = self._writer
        choice = _chunk_choice(index, {"role": writer.role, "content": ""})
        if writer.options.return_token_ids:
            choice["prompt_token_ids"] = writer.generation.job.prompts[0].token_ids
        usage = writer.usage(0) if writer.options.continuous_usage else None
        event = self._encoder.full(choice, usage)
        if writer.echo:
            event += self._encoder.full(_chunk_choice(index, {"content": writer.echo}), usage)
        return event

    def _full(self, delta: Delta) -> bytes:
        writer = self._writer
        choice = _chunk_choice(delta.choice.index, {"content": delta.text})
        if writer.wants_logprobs:
            choice["logprobs"] = chat_logprobs(writer.names, delta.logprobs or ())
        if delta.finish_reason is not None:
            choice["finish_reason"] = delta.finish_reason
            choice["stop_reason"] = delta.stop_reason
        if writer.options.return_token_ids:
            choice["token_ids"] = delta.token_ids
        usage = writer.usage(delta.choice.num_tokens) if writer.options.continuous_usage else None
        return self._encoder.full(choice, usage)


def _chunk_choice(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": None, "finish_reason": None}


def _answering_role(body: ChatBody) -> str:
    """Whoever continues the last message keeps its role."""
    messages = body.messages or []
    if messages and (body.continue_final_message or body.add_generation_prompt is False):
        return str(messages[-1]["role"])
    return "assistant"


def _echoed_text(body: ChatBody, role: str) -> str:
    last = (body.messages or [{}])[-1]
    content = last.get("content")
    return content if last.get("role") == role and isinstance(content, str) else ""
