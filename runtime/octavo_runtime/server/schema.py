"""Request bodies of the OpenAI API as vLLM serves it: fields and types, no behaviour.

Unknown fields are ignored. A field that is null counts as not given. Ranges are checked in `params.py`.
"""

from typing import Annotated, Any, Literal

import msgspec

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Body(msgspec.Struct, kw_only=True):
    """Base of all bodies."""

    model: str | None = None


class StreamOptions(msgspec.Struct, kw_only=True):
    """What a stream carries besides text."""

    include_usage: bool | None = None
    continuous_usage_stats: bool | None = None


class GenerationBody(Body):
    """Fields that completions and chat share."""

    n: Int64 | None = None
    best_of: Int64 | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: Int64 | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: Int64 | None = None  # -1: none
    stop: str | list[str] | None = None
    stop_token_ids: list[Int64] | None = None
    include_stop_str_in_output: bool | None = None
    ignore_eos: bool | None = None
    max_tokens: Int64 | None = None
    min_tokens: Int64 | None = None
    prompt_logprobs: Int64 | None = None
    logit_bias: dict[str, float] | None = None
    allowed_token_ids: list[Int64] | None = None
    bad_words: list[str] | None = None
    use_beam_search: bool | None = None
    length_penalty: float | None = None
    early_stopping: bool | None = None
    skip_special_tokens: bool | None = None
    spaces_between_special_tokens: bool | None = None  # without effect: no spaces are put there
    truncate_prompt_tokens: Int64 | None = None
    truncation_side: Literal["left", "right"] | None = None

    stream: bool | None = None
    stream_options: StreamOptions | None = None
    stream_interval: Int64 | None = None
    echo: bool | None = None
    add_special_tokens: bool | None = None
    return_token_ids: bool | None = None
    return_tokens_as_token_ids: bool | None = None
    priority: Int64 | None = None
    request_id: str | None = None
    cache_salt: str | None = None

    # not available yet: refused by params.refuse_unavailable, whatever their type
    response_format: Any = None
    structured_outputs: Any = None
    guided_json: Any = None
    guided_regex: Any = None
    guided_choice: Any = None
    guided_grammar: Any = None
    guided_json_object: Any = None
    structural_tag: Any = None
    logprob_token_ids: Any = None
    thinking_token_budget: Any = None
    repetition_detection: Any = None
    kv_transfer_params: Any = None
    prompt_embeds: Any = None
    lora_request: Any = None


class CompletionBody(GenerationBody):
    """POST /v1/completions. `prompt`: a string, a list of strings, a list of token ids, or a list of such lists."""

    prompt: str | list[str | Int64 | list[Int64]] | None = None
    suffix: str | None = None
    logprobs: Int64 | None = None


class ChatBody(GenerationBody):
    """POST /v1/chat/completions."""

    messages: list[dict[str, Any]] | None = None
    add_generation_prompt: bool | None = None
    continue_final_message: bool | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    reasoning_effort: str | None = None
    tools: Any = None
    tool_choice: Any = None
    functions: Any = None
    function_call: Any = None
    documents: Any = None
    mm_processor_kwargs: Any = None
    max_completion_tokens: Int64 | None = None
    logprobs: bool | None = None
    top_logprobs: Int64 | None = None


class TokenizeBody(ChatBody):
    """POST /tokenize: `prompt`, or what a chat would send."""

    prompt: str | None = None
    return_token_strs: bool | None = None


class DetokenizeBody(Body):
    """POST /detokenize."""

    tokens: list[Int64]
