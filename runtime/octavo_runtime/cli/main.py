"""The verbs of `octavo`, and what they have in common: one sentence for an error, an exit status, a clean Ctrl-C.

Exit status: 0 done, 1 the model or the server could not start or go on, 2 the arguments are wrong, 130 interrupted.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from octavo_runtime.cli import bench, chat, download, generate, plan, serve
from octavo_runtime.cli.flags import Parser, parse
from octavo_runtime.cli.verb import Arguments
from octavo_runtime.engine.sampling_params import SamplingParamsError
from octavo_runtime.errors import OctavoError, StartCause, StartError
from octavo_runtime.process_state import installed_version, write_termination_log
from octavo_runtime.settings_groups import LogSettings

_EPILOG = "Every setting is also an environment variable (OCTAVO_MAX_MODEL_LEN) and a key of the --config file."
USAGE_STATUS, FAILURE_STATUS, INTERRUPTED_STATUS = 2, 1, 130


@dataclass(frozen=True, slots=True)
class Verb:
    """One word after `octavo`."""

    help: str
    add_arguments: Callable[[Parser], None]
    run: Callable[[Arguments], int]
    leaves_cause: bool = False  # runs in pods: why it did not start is left in the termination log


VERBS = {
    "serve": Verb("serve a model over OpenAI's HTTP API", serve.add_arguments, serve.run, leaves_cause=True),
    "download": Verb("fetch a model into a folder", download.add_arguments, download.run, leaves_cause=True),
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
    description = f"{verb.help[0].upper()}{verb.help[1:]}."
    parser = Parser(prog=f"octavo {arguments[0]}", description=description, epilog=_EPILOG, allow_abbrev=False)
    parser.usage = f"octavo {arguments[0]} MODEL [flags]"
    verb.add_arguments(parser)
    try:
        return verb.run(Arguments(*parse(parser, arguments[1:])))
    except StartError as error:
        if verb.leaves_cause:
            write_termination_log(termination_log_of(arguments), error.cause, str(error))
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


def termination_log_of(arguments: Sequence[str]) -> Path:
    """Where the cause of a failure goes, also when the other arguments could not be read."""
    for place, argument in enumerate(arguments):
        flag, equals, value = argument.partition("=")
        if flag.replace("_", "-") == "--termination-log":
            rest = arguments[place + 1 :]
            return Path(value if equals else rest[0] if rest else "")
    return LogSettings().termination_log


def _overview() -> str:
    lines = ["usage: octavo VERB MODEL [flags]", ""]
    lines += [f"  {name:<10}{verb.help}" for name, verb in VERBS.items()]
    lines += [
        "",
        "MODEL is a Hugging Face id, a folder, a .gguf file, an https URL of one, or `embedded`.",
        "octavo VERB --help lists the flags.",
    ]
    return "\n".join(lines) + "\n"


def _fail(message: str, status: int) -> int:
    sys.stderr.write(f"octavo: {message}\n")
    return status
