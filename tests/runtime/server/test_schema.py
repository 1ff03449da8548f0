import msgspec
import pytest

from octavo_runtime.server.schema import ChatBody, CompletionBody, DetokenizeBody, TokenizeBody

SHARED = """
model n seed temperature top_p top_k min_p frequency_penalty presence_penalty repetition_penalty stop stop_token_ids
include_stop_str_in_output ignore_eos min_tokens bad_words allowed_token_ids logit_bias skip_special_tokens
spaces_between_special_tokens truncate_prompt_tokens truncation_side use_beam_search length_penalty prompt_logprobs
stream stream_options response_format structured_outputs priority request_id cache_salt return_token_ids
return_tokens_as_token_ids best_of max_tokens echo add_special_tokens
"""


def test_every_shared_field_is_known_to_both():
    for body in (CompletionBody, ChatBody):
        assert set(SHARED.split()) <= set(body.__struct_fields__)


def test_own_fields():
    assert {"prompt", "suffix", "logprobs"} <= set(CompletionBody.__struct_fields__)
    own = {
        "messages",
        "max_completion_tokens",
        "logprobs",
        "top_logprobs",
        "tools",
        "tool_choice",
        "chat_template_kwargs",
    }
    assert own <= set(ChatBody.__struct_fields__)
    assert {"prompt", "messages", "return_token_strs"} <= set(TokenizeBody.__struct_fields__)
    assert "tokens" in DetokenizeBody.__struct_fields__


def test_integers_stop_at_64_bits():
    decode = msgspec.json.Decoder(CompletionBody).decode
    assert decode(b'{"seed": 9223372036854775807}').seed == 2**63 - 1
    with pytest.raises(msgspec.ValidationError, match="seed"):
        decode(b'{"seed": 9223372036854775808}')
