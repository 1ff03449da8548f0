"""`octavo generate MODEL [PROMPT]`: completes one prompt, or standard input, and writes the text as it comes."""

import sys
from contextlib import closing

from octavo_runtime.cli.flags import Parser, add_settings, settings_of
from octavo_runtime.cli.sampling_flags import add_sampling, sampling_params
from octavo_runtime.cli.verb import Arguments
from octavo_runtime.errors import InvalidRequestError

_GROUPS = ("model", "device", "cache", "scheduler", "log")


def add_arguments(parser: Parser) -> None:
    """The prompt, sampling, and the engine's settings."""
    parser.usage = "octavo generate MODEL [PROMPT] [flags]"
    add_settings(parser, _GROUPS)
    parser.add_argument("prompt", nargs="?", metavar="PROMPT", help="text to complete; standard input when left out")
    add_sampling(parser)


def run(arguments: Arguments) -> int:
    """Generate; the exit status."""
    settings = settings_of(arguments.parsed)
    arguments.begin_logging(settings, quiet=True)
    prompt = sys.stdin.read() if arguments.parsed.prompt is None else arguments.parsed.prompt
    if not prompt:
        raise InvalidRequestError("The prompt is empty.", "prompt")
    from octavo_runtime.llm import LLM

    llm = LLM.from_settings(settings)
    params = sampling_params(arguments.parsed, llm.get_default_sampling_params())
    with closing(llm.stream(prompt, params)) as pieces:
        for piece in pieces:
            sys.stdout.write(piece)
            sys.stdout.flush()
    sys.stdout.write("\n")
    return 0
