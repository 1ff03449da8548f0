"""`LLM`: generating offline, in this process, without a server.

    llm = LLM(model="HuggingFaceTB/SmolLM2-135M-Instruct")
    outputs = llm.generate(["The capital of France is"], SamplingParams(temperature=0.8, max_tokens=16))

Keyword arguments are the flags of `octavo serve` with underscores. Torch is imported when the first `LLM` is made.
"""

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import msgspec

from octavo_runtime.engine.sampling_params import SamplingParams
from octavo_runtime.errors import InvalidRequestError
from octavo_runtime.hub import resolve_model
from octavo_runtime.offline import OfflineRunner, Prompt
from octavo_runtime.progress import generation_progress, load_progress
from octavo_runtime.request_output import RequestOutput
from octavo_runtime.settings import Settings, load_settings
from octavo_runtime.text.chat_template import ChatTemplate
from octavo_runtime.text.generation_defaults import generation_defaults
from octavo_runtime.text.tokenizer import Tokenizer

PromptInput = str | Sequence[int] | Mapping[str, Any]
"""A text, its token ids, or {"prompt": text} / {"prompt_token_ids": ids}."""
Conversation = Sequence[Mapping[str, Any]]

DEFAULT_TOKENS = 16
"""What `LLM.generate` stops at when neither `max_tokens` nor the model's defaults say where, as in vLLM."""


class LLM:
    """A model ready to generate. Not thread-safe; what it raises: StartError when made, InvalidRequestError later."""

    def __init__(self, model: str, *, tensor_parallel_size: int = 1, **flags: Any) -> None:
        self._start(load_settings({"model": model, "tensor_parallel_size": tensor_parallel_size, **flags}))

    @classmethod
    def from_settings(cls, settings: Settings) -> "LLM":
        """For callers that have parsed flags already."""
        llm = cls.__new__(cls)
        llm._start(settings)
        return llm

    def _start(self, settings: Settings) -> None:
        from octavo_runtime.engine_process import build_llm_engine

        settings.check_supported()
        chosen = settings.model
        source = resolve_model(chosen.model, settings.fetch_options())
        self._tokenizer = Tokenizer.load(source, settings.log.tokenizer_cache, chosen.tokenizer)
        self._chat_template = ChatTemplate.load(source, self._tokenizer, chosen.chat_template)
        defaults = generation_defaults(source, self._tokenizer.eos_token_id, chosen.generation_config)
        self._default_params = SamplingParams(**defaults.sampling)
        with load_progress() as on_progress:
            started = build_llm_engine(settings, source, on_progress)
        self._max_model_len = started.worker.max_model_len
        self._runner = OfflineRunner(started.engine, self._tokenizer, defaults.eos_token_ids)

    def generate(
        self,
        prompts: PromptInput | Sequence[PromptInput],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        use_tqdm: bool = True,
    ) -> list[RequestOutput]:
        """One output per prompt, in order. One `sampling_params` for all, or one for each; None: the model's defaults.

        Without `max_tokens` at most `DEFAULT_TOKENS` are generated; a large number means as many as the context allows.
        `use_tqdm` shows a progress bar on standard error.
        """
        return self._generate(_as_list(prompts), sampling_params, use_tqdm, DEFAULT_TOKENS)

    def chat(
        self,
        messages: Conversation | Sequence[Conversation],
        sampling_params: SamplingParams | Sequence[SamplingParams] | None = None,
        use_tqdm: bool = True,
        **template_options: Any,
    ) -> list[RequestOutput]:
        """Like `generate`, for one conversation or several; without `max_tokens` an answer may fill the context.

        `template_options` are those of `ChatTemplate.render`.
        """
        several = bool(messages) and not isinstance(messages[0], Mapping)
        conversations: Sequence[Any] = messages if several else [messages]
        prompts = [{"prompt_token_ids": self.chat_token_ids(one, **template_options)} for one in conversations]
        return self._generate(prompts, sampling_params, use_tqdm, None)

    def stream(self, prompt: PromptInput, sampling_params: SamplingParams | None = None) -> Generator[str, None, None]:
        """The text of one sequence, piece by piece; closing the iterator stops it. `n` must be 1.

        Without `max_tokens` it may fill the context.
        """
        (params,) = self._params(sampling_params, 1)
        if params.num_sequences != 1:
            raise InvalidRequestError(f"n must be 1 to stream, got {params.num_sequences}.", "n")
        return self._runner.stream(self._cut(self._prompt(prompt), params), params)

    def chat_token_ids(self, messages: Conversation, **template_options: Any) -> list[int]:
        """The prompt that a conversation becomes."""
        text = self._chat_template.render(messages, **template_options)
        return self._tokenizer.encode(text, add_special_tokens=False)

    @property
    def has_chat_template(self) -> bool:
        """Whether `chat` can be used."""
        return self._chat_template.exists

    def get_tokenizer(self) -> Tokenizer:
        """The model's tokenizer."""
        return self._tokenizer

    def get_default_sampling_params(self) -> SamplingParams:
        """What `generate` uses when it is given none: the model's generation_config.json."""
        return self._default_params

    def _generate(
        self,
        prompts: Sequence[PromptInput],
        given: SamplingParams | Sequence[SamplingParams] | None,
        use_tqdm: bool,
        default_tokens: int | None,
    ) -> list[RequestOutput]:
        """`default_tokens` stands in for a `max_tokens` of None."""
        params = [_with_length(one, default_tokens) for one in self._params(given, len(prompts))]
        wanted = [self._cut(self._prompt(prompt), one) for prompt, one in zip(prompts, params, strict=True)]
        with generation_progress(len(wanted), shown=use_tqdm) as on_progress:
            return self._runner.run(wanted, params, on_progress)

    def _cut(self, prompt: Prompt, params: SamplingParams) -> Prompt:
        """The last `truncate_prompt_tokens` of the prompt; -1: as many as leave room for `max_tokens`."""
        keep = params.truncate_prompt_tokens
        if keep is None:
            return prompt
        if keep > self._max_model_len:
            message = f"truncate_prompt_tokens must be at most the context ({self._max_model_len}), got {keep}."
            raise InvalidRequestError(message, "truncate_prompt_tokens")
        if keep == -1:
            keep = max(1, self._max_model_len - (params.max_tokens or 1))
        return Prompt(prompt.token_ids[-keep:], prompt.text)

    def _prompt(self, prompt: PromptInput) -> Prompt:
        if isinstance(prompt, str):
            return Prompt(self._tokenizer.encode(prompt), prompt)
        if isinstance(prompt, Mapping):
            inner = prompt.get("prompt_token_ids", prompt.get("prompt"))
            if inner is None or isinstance(inner, Mapping):
                message = "A prompt must be a text, token ids, or a dict with prompt or prompt_token_ids."
                raise InvalidRequestError(message, "prompt")
            text = prompt.get("prompt")
            return Prompt(self._prompt(inner).token_ids, text if isinstance(text, str) else None)
        wrong = next((token for token in prompt if not 0 <= token < self._tokenizer.vocab_size), None)
        if wrong is not None:
            largest = self._tokenizer.vocab_size - 1
            raise InvalidRequestError(f"Token ids must be between 0 and {largest}, got {wrong}.", "prompt")
        return Prompt(list(prompt))

    def _params(self, given: SamplingParams | Sequence[SamplingParams] | None, count: int) -> list[SamplingParams]:
        chosen = self._default_params if given is None else given
        if isinstance(chosen, SamplingParams):
            return [self._completed(chosen)] * count
        if len(chosen) != count:
            message = f"sampling_params must be one, or one per prompt: got {len(chosen)} for {count} prompts."
            raise InvalidRequestError(message, "sampling_params")
        return [self._completed(params) for params in chosen]

    def _completed(self, params: SamplingParams) -> SamplingParams:
        """`stop` as a tuple however it was written, `bad_words` as token ids too."""
        given: str | Sequence[str] | None = params.stop  # whatever a caller without a type checker wrote
        stop = (given,) if isinstance(given, str) else tuple(given or ())
        forms = [form for word in params.bad_words for form in (word.lstrip(), " " + word.lstrip())]
        encoded = (tuple(self._tokenizer.encode(form, add_special_tokens=False)) for form in forms)
        banned = tuple(dict.fromkeys(ids for ids in encoded if ids))
        return msgspec.structs.replace(params, stop=stop, bad_words_token_ids=banned)


def _with_length(params: SamplingParams, default_tokens: int | None) -> SamplingParams:
    """`min_tokens` raises a default below it."""
    if params.max_tokens is not None or default_tokens is None:
        return params
    return msgspec.structs.replace(params, max_tokens=max(default_tokens, params.min_tokens))


def _as_list(prompts: PromptInput | Sequence[PromptInput]) -> list[PromptInput]:
    """A single prompt becomes a list of one: a string, a dict, or a list of token ids."""
    if isinstance(prompts, str | Mapping) or (prompts and isinstance(prompts[0], int)):
        return [prompts]  # type: ignore[list-item]
    return list(prompts)  # type: ignore[arg-type]
