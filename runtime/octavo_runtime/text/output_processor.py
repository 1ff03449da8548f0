"""From a sequence's tokens to the text its client gets: detokenizing, stop strings, the stop token left out.

One `OutputProcessor` per sequence, in the HTTP process. Given token ids as the engine sends them; the concatenation of
the deltas is the same for every way of cutting the tokens into pushes.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.text.detokenizer import Detokenizer
from octavo_runtime.text.stop import StopStrings


class TokenSource(Protocol):
    """What an output needs of a tokenizer."""

    @property
    def special_ids(self) -> frozenset[int]: ...

    def token_bytes(self, token_id: int) -> bytes: ...


@dataclass(frozen=True, slots=True)
class TextDelta:
    """New text of a sequence, and the tokens it came with (fewer than were pushed when a stop string ended it)."""

    text: str
    token_ids: Sequence[int]
    stopped_by: str | None = None


class OutputProcessor:
    """`eos_token_ids` and `params.stop_token_ids` are left out of the text where they end the sequence."""

    def __init__(
        self,
        tokenizer: TokenSource,
        params: SamplingParams,
        prompt_token_ids: Sequence[int] = (),
        eos_token_ids: Collection[int] = (),
    ) -> None:
        skipped = tokenizer.special_ids if params.skip_special_tokens else frozenset()
        self._detokenizer = Detokenizer(tokenizer.token_bytes, skipped, prompt_token_ids)
        self._stop = StopStrings(params.stop, params.include_stop_str_in_output) if params.stop else None
        self._min_tokens = params.min_tokens
        self._num_tokens = 0
        ending = frozenset(params.stop_token_ids) | (frozenset() if params.ignore_eos else frozenset(eos_token_ids))
        self._silent_ends = frozenset() if params.include_stop_str_in_output else ending
        self._stopped = False

    def push(self, token_ids: Sequence[int], finished: bool = False) -> TextDelta:
        """Take the sequence's next tokens; `finished`: they are its last.

        When the delta's `stopped_by` is set, a stop string was completed by its last token: the caller aborts the
        sequence, and everything pushed after is ignored.
        """
        if self._stopped:
            return TextDelta("", ())
        visible = token_ids
        if finished and token_ids and token_ids[-1] in self._silent_ends:
            visible = token_ids[:-1]
        if self._stop is None:
            text = self._detokenizer.push(visible)
            return TextDelta(text + self._detokenizer.flush() if finished else text, token_ids)
        return self._push_until_stop(self._stop, token_ids, len(visible), finished)

    def _push_until_stop(
        self, stop: StopStrings, token_ids: Sequence[int], num_visible: int, finished: bool
    ) -> TextDelta:
        pieces: list[str] = []
        for count, token_id in enumerate(token_ids[:num_visible], start=1):
            self._num_tokens += 1
            result = stop.push(self._detokenizer.push((token_id,)), self._num_tokens > self._min_tokens)
            pieces.append(result.text)
            if result.stopped_by is not None:
                self._stopped = True
                return TextDelta("".join(pieces), token_ids[:count], result.stopped_by)
        if finished:
            result = stop.push(self._detokenizer.flush(), self._num_tokens > self._min_tokens)
            pieces.append(result.text)
            if result.stopped_by is not None:
                return TextDelta("".join(pieces), token_ids, result.stopped_by)
            pieces.append(stop.flush())
        return TextDelta("".join(pieces), token_ids)
