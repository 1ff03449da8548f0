"""`octavo serve`: settings from flags, then the server until it is told to stop."""

from octavo_runtime.cli.flags import Parser, add_settings, settings_of
from octavo_runtime.cli.verb import Arguments
from octavo_runtime.errors import StartError
from octavo_runtime.process_state import write_termination_log
from octavo_runtime.settings_groups import LogSettings


def add_arguments(parser: Parser) -> None:
    """All settings."""
    add_settings(parser)


def run(arguments: Arguments) -> int:
    """Serve; the exit status. Wrong settings leave their cause in the termination log too, like any failed start."""
    try:
        settings = settings_of(arguments.parsed)
    except StartError as error:
        write_termination_log(LogSettings().termination_log, error.cause, str(error))
        raise
    arguments.begin_logging(settings)
    from octavo_runtime.main import serve

    return serve(settings)
