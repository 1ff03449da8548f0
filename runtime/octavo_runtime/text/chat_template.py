"""Messages -> prompt text, by the model's own Jinja template in a sandbox.

Gives templates what they expect from `transformers`: special tokens, `raise_exception`, `strftime_now`, `tojson`,
`{% generation %}` blocks. Given messages as the API has them; knows no tokens and no HTTP.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from octavo_runtime.errors import InvalidRequestError, StartCause, StartError
from octavo_runtime.hub import ModelKind, ModelSource
from octavo_runtime.text.tokenizer import Tokenizer

Message = Mapping[str, Any]


class ChatTemplate:
    """The templates of a model, compiled once: `default`, and `tool_use` where there is one."""

    def __init__(self, templates: Mapping[str, str], special_tokens: Mapping[str, str]) -> None:
        """Raises StartError(INVALID_SETTINGS) for a template that is not Jinja. No templates: `render` refuses."""
        environment = _environment()
        self._special_tokens = dict(special_tokens)
        try:
            self._templates = {name: environment.from_string(text) for name, text in templates.items()}
        except jinja2.TemplateSyntaxError as error:
            where = f"line {error.lineno} ({error.message})"
            message = f"The chat template is broken at {where}; give another by --chat-template."
            raise StartError(StartCause.INVALID_SETTINGS, message) from error

    @classmethod
    def load(cls, source: ModelSource, tokenizer: Tokenizer, override: str | None = None) -> "ChatTemplate":
        """`override` (--chat-template) is a file or the template itself; else the model's chat_template.jinja, else the
        tokenizer's own. StartError(INVALID_SETTINGS) when `override` is neither."""
        return cls(_find_templates(source, tokenizer, override), tokenizer.special_tokens)

    @property
    def exists(self) -> bool:
        """Whether the model can chat at all."""
        return bool(self._templates)

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        continue_final_message: bool = False,
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt. `continue_final_message` leaves the last message open, for the model to go on with.

        Raises InvalidRequestError naming `messages` (or a part of it) when the template refuses or fails.
        """
        if add_generation_prompt and continue_final_message:
            message = "continue_final_message and add_generation_prompt cannot both be true."
            raise InvalidRequestError(message, "continue_final_message")
        plain = [_plain_message(message, index) for index, message in enumerate(messages)]
        variables = {
            **self._special_tokens,
            **(kwargs or {}),
            "messages": plain,
            "tools": tools,
            "documents": documents,
            "add_generation_prompt": add_generation_prompt,
        }
        text = self._run(self._choose(bool(tools)), variables)
        return _left_open(text, plain) if continue_final_message else text

    def _choose(self, with_tools: bool) -> jinja2.Template:
        template = self._templates.get("tool_use") if with_tools else None
        template = template or self._templates.get("default")
        if template is None:
            message = "This model has no chat template; use /v1/completions, or start the server with --chat-template."
            raise InvalidRequestError(message, "messages")
        return template

    def _run(self, template: jinja2.Template, variables: Mapping[str, Any]) -> str:
        try:
            return template.render(variables)
        except _RefusedError as error:
            raise InvalidRequestError(f"The chat template refuses these messages: {error}", "messages") from error
        except Exception as error:  # a template can fail in any way that Python can
            message = f"The chat template cannot render these messages: {type(error).__name__}: {str(error)[:200]}"
            raise InvalidRequestError(message, "messages") from error


def _find_templates(source: ModelSource, tokenizer: Tokenizer, override: str | None) -> dict[str, str]:
    if override is not None:
        return {"default": _read_override(override)}
    file = source.path / "chat_template.jinja"
    if source.kind is ModelKind.SAFETENSORS and file.is_file():
        return {"default": file.read_text(encoding="utf-8")}
    own = tokenizer.chat_template
    if isinstance(own, str):
        return {"default": own}
    return {entry["name"]: entry["template"] for entry in own or ()}


def _read_override(override: str) -> str:
    if "{" in override:
        return override
    try:
        return Path(override).expanduser().read_text(encoding="utf-8")
    except OSError as error:
        message = f"--chat-template {override} is neither a readable file nor a Jinja template ({error.strerror})."
        raise StartError(StartCause.INVALID_SETTINGS, message) from error


def _plain_message(message: Message, index: int) -> dict[str, Any]:
    """Text parts become one string, as templates expect."""
    content = message.get("content")
    if content is None:
        return {**message, "content": ""}
    if isinstance(content, str):
        return dict(message)
    texts = [_text_of(part, f"messages[{index}].content[{number}]") for number, part in enumerate(content)]
    return {**message, "content": "\n".join(texts)}


def _text_of(part: Any, where: str) -> str:
    if isinstance(part, str):
        return part
    kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    text = part.get("text") if kind in ("text", "input_text") else None
    if not isinstance(text, str):
        raise InvalidRequestError(f"{where} must be a text part, got type {str(kind)[:50]!r}.", where)
    return text


def _left_open(text: str, messages: Sequence[Message]) -> str:
    """`text` up to the end of the last message's content, without what the template closes it with."""
    last = messages[-1]["content"] if messages else ""
    at = text.rfind(last.strip())
    if not last.strip() or at < 0:
        message = "continue_final_message needs a last message whose content the chat template keeps as it is."
        raise InvalidRequestError(message, "continue_final_message")
    whole = last.lstrip()  # templates often trim content: keep the end's white space only where it was rendered
    return text[: at + len(whole)] if text.startswith(whole, at) else text[: at + len(last.strip())]


class _RefusedError(Exception):
    """The template called raise_exception."""


class _GenerationBlock(jinja2.ext.Extension):
    """`{% generation %}...{% endgeneration %}` marks the assistant's tokens for training; here its content counts."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it a plain set

    def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
        next(parser.stream)
        return list(parser.parse_statements(("name:endgeneration",), drop_needle=True))


def _environment() -> jinja2.sandbox.ImmutableSandboxedEnvironment:
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> NoReturn:
    raise _RefusedError(message)


def _strftime_now(layout: str) -> str:
    return datetime.now().strftime(layout)
