"""What a verb is handed, and the logging that verbs for people at a terminal want."""

import argparse
import logging
from dataclasses import dataclass

from octavo_runtime.process_state import configure_logging
from octavo_runtime.settings import Settings, misspelt_variables


@dataclass(frozen=True, slots=True)
class Arguments:
    """Parsed arguments, and warnings about flags that have no effect any more."""

    parsed: argparse.Namespace
    warnings: list[str]

    def begin_logging(self, settings: Settings, quiet: bool = False) -> None:
        """Set logging up and log the warnings, also those about the environment.

        `quiet` raises the default level, so that only the output is seen."""
        level = settings.log.log_level
        level = "warning" if quiet and level == "info" else level
        configure_logging(level, as_json=settings.log.as_json)
        for warning in (*self.warnings, *misspelt_variables()):
            logging.getLogger(__name__).warning(warning)
