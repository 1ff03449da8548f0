"""The real neighbours have what the server asks of them."""

import inspect

import pytest

from octavo_runtime.engine.async_llm_engine import AsyncLLMEngine
from octavo_runtime.server import interfaces
from octavo_runtime.server.testing import ByteTokenizer, FakeEngine, PlainTemplate
from octavo_runtime.text.chat_template import ChatTemplate
from octavo_runtime.text.tokenizer import Tokenizer


def members(protocol):
    return {name for name in vars(protocol) if not name.startswith("_")}


@pytest.mark.parametrize(
    ("protocol", "real"),
    [
        (interfaces.Tokenizer, Tokenizer),
        (interfaces.Tokenizer, ByteTokenizer),
        (interfaces.ChatTemplate, ChatTemplate),
        (interfaces.ChatTemplate, PlainTemplate),
        (interfaces.Engine, AsyncLLMEngine),
        (interfaces.Engine, FakeEngine),
    ],
)
def test_real_class_has_every_member(protocol, real):
    text = inspect.getsource(real)
    missing = {name for name in members(protocol) if not hasattr(real, name) and f"self.{name}" not in text}
    assert not missing
