"""Log-probabilities as OpenAI writes them: one form for completions, one for chat, and vLLM's prompt_logprobs.

Given the engine's `TokenLogprobs`; -inf is written -9999.0, since JSON has no infinity.
"""

import codecs
from collections.abc import Sequence
from typing import Any

from octavo_runtime.engine.messages import TokenLogprobs
from octavo_runtime.server.interfaces import Tokenizer

_LOWEST = -9999.0


class TokenNames:
    """How tokens are written: as their text, or as "token_id:N"."""

    def __init__(self, tokenizer: Tokenizer, as_ids: bool) -> None:
        self._tokenizer = tokenizer
        self._as_ids = as_ids

    def name(self, token_id: int) -> str:
        return f"token_id:{token_id}" if self._as_ids else self._tokenizer.token_text(token_id)

    def data(self, token_id: int) -> bytes:
        return self._tokenizer.token_bytes(token_id)


class CompletionLogprobs:
    """`logprobs` of one completion choice, across the chunks of a stream: text offsets go on where they were."""

    def __init__(self, names: TokenNames, hidden: frozenset[int]) -> None:
        """`hidden`: tokens that the text does not show (special ones), so that offsets pass over them."""
        self._names = names
        self._hidden = hidden
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._offset = 0

    def first(self, token_id: int) -> dict[str, Any]:
        """The first prompt token, which has no log-probability."""
        offset = self._advance(token_id)
        name = self._names.name(token_id)
        return {"text_offset": [offset], "token_logprobs": [None], "tokens": [name], "top_logprobs": [None]}

    def write(self, entries: Sequence[TokenLogprobs]) -> dict[str, Any]:
        """Lists side by side: offset in characters, log-probability, token, and {token: logprob} of the likeliest."""
        return {
            "text_offset": [self._advance(entry.token_id) for entry in entries],
            "token_logprobs": [_finite(entry.logprob) for entry in entries],
            "tokens": [self._names.name(entry.token_id) for entry in entries],
            "top_logprobs": [self._top(entry) for entry in entries],
        }

    def _top(self, entry: TokenLogprobs) -> dict[str, float]:
        top = {self._names.name(token_id): _finite(logprob) for token_id, logprob in entry.top}
        top.setdefault(self._names.name(entry.token_id), _finite(entry.logprob))
        return top

    def _advance(self, token_id: int) -> int:
        offset = self._offset
        if token_id not in self._hidden:
            self._offset += len(self._decoder.decode(self._names.data(token_id)))
        return offset


def joined(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Completion log-probabilities one after the other."""
    return {key: [item for part in parts for item in part[key]] for key in parts[0]}


def chat_logprobs(names: TokenNames, entries: Sequence[TokenLogprobs]) -> dict[str, Any]:
    """`logprobs` of a chat choice."""
    return {"content": [_chat_entry(names, entry) for entry in entries]}


def _chat_entry(names: TokenNames, entry: TokenLogprobs) -> dict[str, Any]:
    written = _chat_token(names, entry.token_id, entry.logprob)
    written["top_logprobs"] = [_chat_token(names, token_id, logprob) for token_id, logprob in entry.top]
    return written


def _chat_token(names: TokenNames, token_id: int, logprob: float) -> dict[str, Any]:
    return {"token": names.name(token_id), "logprob": _finite(logprob), "bytes": list(names.data(token_id))}


def prompt_logprobs(names: TokenNames, entries: Sequence[TokenLogprobs]) -> list[dict[str, Any] | None]:
    """vLLM's form: null for the first token, then {token id: {logprob, rank, decoded_token}}, its own first."""
    written: list[dict[str, Any] | None] = [None]
    for entry in entries:
        places = {
            str(token_id): {"logprob": _finite(logprob), "rank": rank, "decoded_token": names.name(token_id)}
            for rank, (token_id, logprob) in enumerate(entry.top, start=1)
        }
        own = {"logprob": _finite(entry.logprob), "rank": entry.rank, "decoded_token": names.name(entry.token_id)}
        written.append({str(entry.token_id): own} | places)
    return written


def _finite(logprob: float) -> float:
    return max(logprob, _LOWEST)
