"""What the server needs from its neighbours: the engine, and the text layer (tokenizer and chat template).

Protocols only, so that tests bring fakes and `main.py` brings the real ones.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from octavo_runtime.engine.messages import (
    AddRequest,
    EngineFailed,
    EngineReady,
    LoadProgress,
    PromptLogprobs,
    RequestFinished,
    SchedulerStats,
    SequenceOutput,
)

RequestEvent = SequenceOutput | PromptLogprobs | RequestFinished


class Engine(Protocol):
    """`AsyncLLMEngine` as the server sees it."""

    @property
    def ready(self) -> EngineReady | None: ...
    @property
    def progress(self) -> LoadProgress | None: ...
    @property
    def dead(self) -> EngineFailed | None: ...
    @property
    def stats(self) -> SchedulerStats: ...
    @property
    def num_requests(self) -> int: ...
    @property
    def has_work(self) -> bool: ...

    def heartbeat_age(self) -> float:
        """Seconds since the engine last showed life."""

    def generate(self, request: AddRequest) -> AsyncGenerator[RequestEvent, None]:
        """Events of one request; the last is its `RequestFinished`. Closing it earlier aborts the request."""

    def abort(self, request_id: str, index: int | None = None) -> None:
        """Give up a request or one of its sequences; its terminal event still comes."""

    def abort_all(self) -> None:
        """Give up everything that is open."""

    def reset_prefix_cache(self) -> None:
        """Forget cached prefixes that nothing uses."""


class Tokenizer(Protocol):
    """Text <-> token ids."""

    @property
    def vocab_size(self) -> int: ...
    @property
    def special_ids(self) -> frozenset[int]: ...

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...
    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = True) -> str: ...

    def token_text(self, token_id: int) -> str:
        """The token as a person reads it."""

    def token_string(self, token_id: int) -> str:
        """The token as the vocabulary spells it; empty for an unknown id."""

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that the token adds to the text, possibly part of a character."""


class ChatTemplate(Protocol):
    """Messages -> prompt text."""

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        add_generation_prompt: bool,
        continue_final_message: bool,
        tools: Sequence[Mapping[str, Any]] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> str:
        """Raises InvalidRequestError that names the message when the template refuses it."""


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """What a request that does not say gets: the model's generation_config.json, or nothing."""

    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class TextLayer:
    """The text side of one model."""

    tokenizer: Tokenizer
    chat_template: ChatTemplate | None = None  # None: the model has none, chat is refused
    eos_token_ids: tuple[int, ...] = ()
    defaults: SamplingDefaults = SamplingDefaults()
