"""`octavo chat MODEL` or `octavo chat --url URL`: a conversation in the terminal, with the answers streamed.

Ctrl-D ends it, `/new` starts over, Ctrl-C stops an answer.
"""

import argparse
import sys
from collections.abc import Callable, Generator
from contextlib import closing, suppress
from typing import Any

from octavo_runtime.cli.flags import Parser, add_settings, settings_of
from octavo_runtime.cli.http_client import Client
from octavo_runtime.cli.sampling_flags import add_sampling, sampling_params, sampling_values
from octavo_runtime.cli.verb import Arguments
from octavo_runtime.errors import RequestError, StartCause, StartError

_GROUPS = ("model", "device", "cache", "scheduler", "log")

Answer = Callable[[list[dict[str, str]]], Generator[str, None, None]]


def add_arguments(parser: Parser) -> None:
    """Where the answers come from, sampling, and the engine's settings."""
    parser.usage = "octavo chat MODEL [flags]\n       octavo chat --url URL [flags]"
    add_settings(parser, _GROUPS)
    parser.add_argument("--url", help="a running server to talk to, instead of a model loaded here")
    parser.add_argument("--api-key", dest="key", help="key for --url")
    parser.add_argument("--system", metavar="TEXT", help="what the model is told first")
    add_sampling(parser)


def run(arguments: Arguments) -> int:
    """Chat until the input ends; the exit status."""
    parsed = arguments.parsed
    answer = _from_server(parsed) if parsed.url else _from_engine(arguments)
    with suppress(ImportError):
        import readline  # noqa: F401 - gives input() its line editing
    if sys.stdin.isatty():
        sys.stderr.write("Ask away. Ctrl-C stops an answer, /new starts over, Ctrl-D ends.\n")
    beginning = [{"role": "system", "content": parsed.system}] if parsed.system else []
    messages = list(beginning)
    while (line := _read_line()) is not None:
        if line == "/new":
            messages = list(beginning)
        if line in ("", "/new"):
            continue
        messages.append({"role": "user", "content": line})
        try:
            messages.append({"role": "assistant", "content": _write(answer(messages))})
        except RequestError as error:
            sys.stderr.write(f"{error}\n")
            messages.pop()
    return 0


def _from_engine(arguments: Arguments) -> Answer:
    settings = settings_of(arguments.parsed)
    arguments.begin_logging(settings, quiet=True)
    from octavo_runtime.llm import LLM

    llm = LLM.from_settings(settings)
    if not llm.has_chat_template:
        message = "This model has no chat template; give one by --chat-template, or use octavo generate."
        raise StartError(StartCause.INVALID_SETTINGS, message)
    params = sampling_params(arguments.parsed, llm.get_default_sampling_params())

    def answer(messages: list[dict[str, str]]) -> Generator[str, None, None]:
        yield from llm.stream(llm.chat_token_ids(messages), params)

    return answer


def _from_server(parsed: argparse.Namespace) -> Answer:
    client = Client(parsed.url, parsed.key)
    body: dict[str, Any] = {"model": getattr(parsed, "model", None) or client.model_name(), **sampling_values(parsed)}

    def answer(messages: list[dict[str, str]]) -> Generator[str, None, None]:
        for event in client.stream("/v1/chat/completions", body | {"messages": messages}):
            for choice in event["choices"]:
                yield choice["delta"].get("content") or ""

    return answer


def _read_line() -> str | None:
    """The next line, edited with the arrow keys where the terminal can; None at the end of input."""
    try:
        return input("> ").strip()
    except EOFError:
        sys.stdout.write("\n")
        return None


def _write(pieces: Generator[str, None, None]) -> str:
    """Write the answer as it comes; all of it, or what had come when Ctrl-C stopped it."""
    written: list[str] = []
    with closing(pieces):
        try:
            for piece in pieces:
                written.append(piece)
                sys.stdout.write(piece)
                sys.stdout.flush()
        except KeyboardInterrupt:
            sys.stdout.write(" [stopped]")
    sys.stdout.write("\n")
    return "".join(written)
