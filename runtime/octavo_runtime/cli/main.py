"""The verbs of `octavo`, and what they have in common: one sentence for an error, an exit status, a clean Ctrl-C.

Exit status: 0 done, 1 the model or the server could not start or go on, 2 the arguments are wrong, 130 interrupted.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from octavo_runtime.cli import bench, chat, generate, plan, serve
from octavo_runtime.cli.flags import Parser, parse
from octavo_runtime.cli.verb import Arguments
from octavo_runtime.engine.sampling_params import SamplingParamsError
from octavo_runtime.errors import OctavoError, StartCause, StartError

_EPILOG = "Every setting is also an environment variable (OCTAVO_MAX_MODEL_LEN) and a key of the --config file."
USAGE_STATUS, FAILURE_STATUS, INTERRUPTED_STATUS = 2, 1, 130


@dataclass(frozen=True, slots=True)
class Verb:
    """One word after `octavo`."""

    help: str
    add_arguments: Callable[[Parser], None]
    run: Callable[[Arguments], int]


VERBS = {
    "serve": Verb("serve a model over OpenAI's HTTP API", serve.add_arguments, serve.run),
    "generate": Verb("complete one prompt, or standard input", generate.add_arguments, generate.run),
    "chat": Verb("talk to a model in the terminal", chat.add_arguments, chat.run),
    "bench": Verb("measure throughput and latency", bench.add_arguments, bench.run),
    "plan": Verb("print what a model needs in memory, without loading it", plan.add_arguments, plan.run),
}


def run(arguments: Sequence[str]) -> int:
    """Run `octavo` with these arguments; the exit status."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(_overview())
        return 0 if arguments else USAGE_STATUS
    if arguments[0] in ("-V", "--version", "version"):
        sys.stdout.write(f"octavo {installed_version()}\n")
        return 0
    verb = VERBS.get(arguments[0])
    if verb is None:
        return _fail(f"There is no verb {arguments[0]!r}; use one of {', '.join(VERBS)}.", USAGE_STATUS)
    description = verb.help.capitalize() + "."
    parser = Parser(prog=f"octavo {arguments[0]}", description=description, epilog=_EPILOG, allow_abbrev=False)
    parser.usage = f"octavo {arguments[0]} MODEL [flags]"
    verb.add_arguments(parser)
    try:
        return verb.run(Arguments(*parse(parser, arguments[1:])))
    except StartError as error:
        wrong = error.cause is StartCause.INVALID_SETTINGS
        return _fail(str(error), USAGE_STATUS if wrong else FAILURE_STATUS)
    except SamplingParamsError as error:
        return _fail(str(error), USAGE_STATUS)
    except OctavoError as error:
        return _fail(str(error), FAILURE_STATUS)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone: nobody to tell
        return FAILURE_STATUS
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return INTERRUPTED_STATUS


def installed_version() -> str:
    """The distribution's version; `unknown` when it runs from a source tree that is not installed."""
    try:
        return version("octavo")
    except PackageNotFoundError:
        return "unknown"


def _overview() -> str:
    lines = ["usage: octavo VERB MODEL [flags]", ""]
    lines += [f"  {name:<10}{verb.help}" for name, verb in VERBS.items()]
    lines += [
        "",
        "MODEL is a Hugging Face id, a folder, a .gguf file, or `embedded`. octavo VERB --help lists the flags.",
    ]
    return "\n".join(lines) + "\n"


def _fail(message: str, status: int) -> int:
    sys.stderr.write(f"octavo: {message}\n")
    return status
