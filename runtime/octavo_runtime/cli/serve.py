"""`octavo serve`: settings from flags, then the server until it is told to stop."""

from octavo_runtime.cli.flags import Parser, add_settings, settings_of
from octavo_runtime.cli.verb import Arguments


def add_arguments(parser: Parser) -> None:
    """All settings."""
    add_settings(parser)


def run(arguments: Arguments) -> int:
    """Serve; the exit status."""
    settings = settings_of(arguments.parsed)
    arguments.begin_logging(settings)
    from octavo_runtime.main import serve

    return serve(settings)
