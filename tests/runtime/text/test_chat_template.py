"""Chat templates: what they are given, how they may fail, where they come from."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from octavo_runtime.errors import InvalidRequestError, StartCause, StartError
from octavo_runtime.hub import ModelKind, ModelSource
from octavo_runtime.text.chat_template import ChatTemplate
from octavo_runtime.text.tokenizer import Tokenizer

USER = {"role": "user", "content": "Hi"}
SIMPLE = (
    "{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)


def template(text: str = SIMPLE) -> ChatTemplate:
    return ChatTemplate({"default": text}, {"eos_token": "</s>", "bos_token": "<s>"})


def test_embedded_model_writes_its_own_format(embedded: ModelSource, tokenizer: Tokenizer) -> None:
    chat = ChatTemplate.load(embedded, tokenizer)
    assert chat.render([{"role": "system", "content": "Be brief."}, USER]) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_generation_prompt_can_be_left_out() -> None:
    assert template().render([USER], add_generation_prompt=False) == "[user] Hi</s>\n"


def test_text_parts_are_joined_and_missing_content_is_empty() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    messages = [{"role": "user", "content": parts}, {"role": "assistant", "content": None}]
    assert template().render(messages) == "[user] a\nb</s>\n[assistant] </s>\n[assistant] "


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "image_url"}, "image_url"),
        ({"type": "text", "text": 3}, "text"),
        ({}, "None"),
        (7, "int"),
        (None, "None"),
    ],
)
def test_other_parts_are_refused_with_their_place(part: object, kind: str) -> None:
    messages = [USER, {"role": "user", "content": [{"type": "text", "text": "a"}, part]}]
    with pytest.raises(InvalidRequestError, match=kind) as caught:
        template().render(messages)
    assert caught.value.param == "messages[1].content[1]"


@pytest.mark.parametrize("content", ["So far", "So far  ", "  So far"])
def test_final_message_can_be_continued(content: str) -> None:
    messages = [USER, {"role": "assistant", "content": content}]
    text = template().render(messages, add_generation_prompt=False, continue_final_message=True)
    assert text == "[user] Hi</s>\n[assistant] So far"


def test_white_space_that_the_template_keeps_is_continued() -> None:
    text = template("{{ messages[-1].content }}|").render(
        [{"role": "assistant", "content": "a "}], add_generation_prompt=False, continue_final_message=True
    )
    assert text == "a "


def test_continuing_and_prompting_exclude_each_other() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        template().render([USER], continue_final_message=True)
    assert caught.value.param == "continue_final_message"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ raise_exception('roles must alternate') }}", "roles must alternate"),
        ("{{ messages[0].missing.thing }}", "UndefinedError"),
        ("{{ 1 // 0 }}", "ZeroDivisionError"),
        ("{{ ''.__class__.__mro__ }}", "SecurityError"),
        ("{% for i in range(10000000) %}{% endfor %}", "OverflowError"),
    ],
)
def test_template_that_fails_names_messages(text: str, said: str) -> None:
    with pytest.raises(InvalidRequestError, match=said) as caught:
        template(text).render([USER])
    assert caught.value.param == "messages"


def test_templates_find_the_helpers_of_transformers() -> None:
    text = "{% generation %}{{ tools | tojson }}{% endgeneration %}{{ strftime_now('%Y')[:2] }}{{ flag }}"
    rendered = template(text).render([USER], tools=[{"é": 1}], kwargs={"flag": True})
    assert rendered == '[{"é": 1}]20True'


def test_tools_choose_the_tool_template() -> None:
    chat = ChatTemplate({"default": "plain", "tool_use": "tools"}, {})
    assert (chat.render([USER]), chat.render([USER], tools=[{}])) == ("plain", "tools")


def test_model_without_template_says_so() -> None:
    chat = ChatTemplate({}, {})
    assert not chat.exists
    with pytest.raises(InvalidRequestError, match="no chat template"):
        chat.render([USER])


def test_broken_template_cannot_start() -> None:
    with pytest.raises(StartError, match="line 1") as caught:
        template("{% if %}")
    assert caught.value.cause is StartCause.INVALID_SETTINGS


def test_override_is_a_file_or_the_template_itself(embedded: ModelSource, tokenizer: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.jinja"
    file.write_text("from file")
    assert ChatTemplate.load(embedded, tokenizer, str(file)).render([USER]) == "from file"
    assert ChatTemplate.load(embedded, tokenizer, "{{ messages[0].role }}").render([USER]) == "user"
    with pytest.raises(StartError, match="--chat-template"):
        ChatTemplate.load(embedded, tokenizer, str(tmp_path / "none.jinja"))


def test_folder_file_goes_before_the_tokenizer_config(embedded: ModelSource, tokenizer: Any, tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("from folder")
    source = dataclasses.replace(embedded, path=tmp_path, kind=ModelKind.SAFETENSORS)
    assert ChatTemplate.load(source, tokenizer).render([USER]) == "from folder"
