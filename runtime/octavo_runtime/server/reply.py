"""What replies of chat and completions share: the head of the object, usage, fast encoding of stream events."""

import time
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web

from octavo_runtime.server.generation import Generation

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Head:
    """What every object of one reply begins with."""

    id: str
    model: str
    created: int = field(default_factory=lambda: int(time.time()))

    def reply(self, kind: str, **fields: Any) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, **fields}


class EventEncoder:
    """Events of one stream. `plain` is the quick way for an event that holds nothing but one string."""

    def __init__(self, head: Head, kind: str, num_choices: int, before: bytes, after: bytes) -> None:
        """`before`, `after`: the JSON around the text, from the choice's index to the end of the event."""
        self._head = head
        self._kind = kind
        start = b"data: " + _encode(head.reply(kind))[:-1] + b',"choices":[{"index":'
        self._starts = [start + str(index).encode() + before for index in range(num_choices)]
        self._after = after

    def plain(self, index: int, text: str) -> bytes:
        return self._starts[index] + _encode(text) + self._after

    def full(self, choice: dict[str, Any], usage: dict[str, Any] | None) -> bytes:
        """Any choice; `usage` is left out when None."""
        event = self._head.reply(self._kind, choices=[choice])
        if usage is not None:
            event["usage"] = usage
        return b"data: " + _encode(event) + b"\n\n"

    def usage(self, usage: dict[str, Any]) -> bytes:
        """The event after the last choice."""
        return b"data: " + _encode(self._head.reply(self._kind, choices=[], usage=usage)) + b"\n\n"


def usage_of(generation: Generation, completion_tokens: int, details: bool) -> dict[str, Any]:
    """`details`: with prompt_tokens_details."""
    prompt_tokens = generation.num_prompt_tokens
    usage: dict[str, Any] = {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
    }
    if details:
        usage["prompt_tokens_details"] = {"cached_tokens": generation.num_cached_tokens}
    return usage


def generated_tokens(generation: Generation) -> int:
    return sum(choice.num_tokens for choice in generation.choices)


def json_response(content: Any) -> web.Response:
    return web.Response(body=_encode(content), content_type="application/json")
