"""What the client wrote -> token ids that fit the model: strings, token ids, messages; truncation; length checks.

Long texts are encoded on a thread, so that open streams do not stutter, and refused by their length alone when they can
not fit. Every refusal is an InvalidRequestError that names the field.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from octavo_runtime.errors import InvalidRequestError
from octavo_runtime.server.interfaces import TextLayer
from octavo_runtime.server.schema import ChatBody, CompletionBody, GenerationBody

T = TypeVar("T")

_LONG_TEXT = 8192  # characters; below it encoding takes about a millisecond


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt. `text` is None when the client sent token ids."""

    token_ids: list[int]
    text: str | None


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """Sizes of the model that serves, in tokens; `max_num_seqs` sequences run at once."""

    max_model_len: int
    vocab_size: int
    max_num_seqs: int


class PromptEncoder:
    """Encodes prompts for one model. Owns the threads for long ones."""

    def __init__(self, text: TextLayer) -> None:
        self._text = text
        self._threads = ThreadPoolExecutor(max_workers=2, thread_name_prefix="tokenize")
        self._longest_token: int | None = None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, size: int, work: Callable[[], T]) -> T:
        """Run `work` on a text of `size` characters here, or on a thread when it is long."""
        if size < _LONG_TEXT:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def encode(self, text: str, add_special_tokens: bool, limit: int | None, size: int = 0) -> list[int]:
        """`limit`: tokens that fit, None for a prompt that will be cut. `size`: characters of the whole call."""
        if limit is not None and len(text) > 4 * limit:
            await self._refuse_hopeless(text, limit)
        return await self.run(max(size, len(text)), lambda: self._text.tokenizer.encode(text, add_special_tokens))

    async def completion_prompts(self, body: CompletionBody, limits: ModelLimits, max_prompts: int) -> list[Prompt]:
        """Prompts of a completion, in order."""
        prompts = _split_prompts(body.prompt, max_prompts)
        limit = limits.max_model_len if body.truncate_prompt_tokens is None else None
        add_special_tokens = body.add_special_tokens is not False
        size = sum(len(prompt) for prompt in prompts if isinstance(prompt, str))
        encoded = []
        for index, prompt in enumerate(prompts):
            field = "prompt" if len(prompts) == 1 else f"prompt[{index}]"
            if isinstance(prompt, str):
                ids = await self.encode(prompt, add_special_tokens, limit, size)
            else:
                ids = prompt
            check_token_ids(ids, limits.vocab_size, field)
            if not ids:
                raise InvalidRequestError(f"{field} is empty; write at least one token.", field)
            encoded.append(Prompt(_truncate(ids, body, limits), prompt if isinstance(prompt, str) else None))
        return encoded

    async def chat_prompt(self, body: ChatBody, limits: ModelLimits) -> Prompt:
        """The prompt that the chat template makes of the messages."""
        messages = checked_messages(body.messages)
        text = await self.run(_text_size(messages), lambda: self._render(messages, body))
        limit = limits.max_model_len if body.truncate_prompt_tokens is None else None
        ids = await self.encode(text, bool(body.add_special_tokens), limit)
        check_token_ids(ids, limits.vocab_size, "messages")
        if not ids:
            raise InvalidRequestError("The messages make an empty prompt.", "messages")
        return Prompt(_truncate(ids, body, limits), text)

    def _render(self, messages: Sequence[dict[str, Any]], body: ChatBody) -> str:
        template = self._text.chat_template
        if template is None:
            raise InvalidRequestError(
                "This model has no chat template; use /v1/completions, or start the server with --chat-template.",
                "messages",
            )
        continue_final = bool(body.continue_final_message)
        if continue_final and body.add_generation_prompt:
            raise InvalidRequestError(
                "continue_final_message and add_generation_prompt exclude each other.", "continue_final_message"
            )
        kwargs = dict(body.chat_template_kwargs or {})
        if body.reasoning_effort is not None:
            kwargs.setdefault("reasoning_effort", body.reasoning_effort)
        return template.render(
            messages,
            add_generation_prompt=not continue_final and body.add_generation_prompt is not False,
            continue_final_message=continue_final,
            kwargs=kwargs,
        )

    async def _refuse_hopeless(self, text: str, limit: int) -> None:
        """A text of many times the context cannot fit, whatever its tokens: no token is longer than the longest."""
        if self._longest_token is None:
            tokenizer = self._text.tokenizer
            work: Callable[[], int] = lambda: max(  # noqa: E731
                (len(tokenizer.token_text(token_id)) for token_id in range(tokenizer.vocab_size)), default=1
            )
            self._longest_token = max(1, await self.run(_LONG_TEXT, work))
        least = -(-len(text) // self._longest_token)
        if least > limit:
            raise InvalidRequestError(
                f"This model's maximum context length is {limit} tokens. The prompt has {len(text)} characters, which is "
                f"at least {least} tokens. Shorten it.",
                "input_tokens",
            )


def _split_prompts(prompt: str | list[Any] | None, max_prompts: int) -> list[str | list[int]]:
    """One entry per prompt: text or token ids."""
    if prompt is None:
        raise InvalidRequestError("prompt is required: a string, a list of strings, or token ids.", "prompt")
    if isinstance(prompt, str):
        return [prompt]
    if not prompt:
        raise InvalidRequestError("prompt must not be an empty list.", "prompt")
    kinds = {type(item) for item in prompt}
    if kinds == {int}:
        return [prompt]
    if len(kinds) != 1:
        raise InvalidRequestError("prompt must not mix strings, token ids and lists of token ids.", "prompt")
    if len(prompt) > max_prompts:
        raise InvalidRequestError(f"prompt takes at most {max_prompts} prompts, got {len(prompt)}.", "prompt")
    return list(prompt)


def check_token_ids(ids: Sequence[int], vocab_size: int, field: str) -> None:
    """Raises when an id is none of the model's: the client's own, or of a tokenizer that knows more tokens."""
    if ids and (min(ids) < 0 or max(ids) >= vocab_size):
        wrong = next(token_id for token_id in ids if not 0 <= token_id < vocab_size)
        raise InvalidRequestError(f"{field}: {wrong} is not a token id of this model (0 to {vocab_size - 1}).", field)


def checked_messages(messages: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Every message has a role and its content is text, parts, or absent beside tool calls."""
    if messages is None:
        raise InvalidRequestError("messages is required.", "messages")
    if not messages:
        raise InvalidRequestError("messages must have at least one message.", "messages")
    for index, message in enumerate(messages):
        role = message.get("role")
        if not isinstance(role, str) or not role:
            raise InvalidRequestError(
                f"messages[{index}].role: expected a string such as user, got {_kind(role)}.", f"messages[{index}].role"
            )
        _check_content(message, index)
    return messages


def _text_size(messages: Sequence[Mapping[str, Any]]) -> int:
    """Characters that a template has to copy, roughly."""
    size = 0
    for message in messages:
        content = message.get("content") or ""
        parts = content if isinstance(content, list) else (content,)
        size += sum(len(str(part)) for part in parts)
    return size


def _check_content(message: dict[str, Any], index: int) -> None:
    field = f"messages[{index}].content"
    content = message.get("content")
    if content is None:
        if message.get("role") != "assistant":
            raise InvalidRequestError(f"{field} is required.", field)
        return
    if isinstance(content, str):
        return
    if not isinstance(content, list):
        raise InvalidRequestError(f"{field}: expected a string or a list of parts, got {_kind(content)}.", field)
    for place, part in enumerate(content):
        if not isinstance(part, (dict, str)):
            raise InvalidRequestError(f"{field}[{place}]: expected an object, got {_kind(part)}.", f"{field}[{place}]")


def _kind(value: Any) -> str:
    names = {
        str: "a string",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), "nothing")


def _truncate(ids: list[int], body: GenerationBody, limits: ModelLimits) -> list[int]:
    """Keep `truncate_prompt_tokens` of the prompt; -1 keeps what leaves room for the answer."""
    keep = body.truncate_prompt_tokens
    if keep is None:
        return ids
    if keep > limits.max_model_len:
        raise InvalidRequestError(
            f"truncate_prompt_tokens must be at most the model's context ({limits.max_model_len}), got {keep}.",
            "truncate_prompt_tokens",
        )
    if keep == -1:
        wanted = (body.max_completion_tokens if isinstance(body, ChatBody) else None) or body.max_tokens or 1
        keep = max(1, limits.max_model_len - wanted)
    if keep < 1 or len(ids) <= keep:
        return ids
    return ids[:keep] if body.truncation_side == "right" else ids[-keep:]


def resolve_max_tokens(prompts: Sequence[Prompt], wanted: int | None, default: int | None, limits: ModelLimits) -> int:
    """How many tokens may be generated. What was asked for must fit behind the longest prompt; a default is cut."""
    longest = max(len(prompt.token_ids) for prompt in prompts)
    room = limits.max_model_len - longest
    if wanted is not None and wanted < 0:
        raise InvalidRequestError(f"max_tokens must be at least 1, got {wanted}.", "max_tokens")
    if room < 1 or (wanted is not None and wanted > room):
        asked = wanted or 1
        raise InvalidRequestError(
            f"This model's maximum context length is {limits.max_model_len} tokens. The prompt has {longest} and up to "
            f"{asked} more were asked for, {longest + asked} in all. Shorten the prompt or lower max_tokens.",
            "input_tokens",
        )
    if wanted is not None:
        return wanted
    return min(room, default) if default is not None else room
