"""`octavo-operator` and `python -m octavo_operator`: runs one replica of the operator until it is told to stop."""

import asyncio
import sys

from octavo_operator.kube_client import ApiError
from octavo_operator.logs import configure_logging
from octavo_operator.main import run
from octavo_operator.settings import SettingsError, load_settings


def main() -> int:
    """The exit status: 0 after SIGTERM, 1 when something ended it, 2 for settings that cannot be."""
    try:
        settings = load_settings()
    except SettingsError as error:
        sys.stderr.write(f"octavo-operator: {error}\n")
        return 2
    configure_logging(settings.log_level, as_json=settings.log_format == "json")
    try:
        asyncio.run(run(settings))
    except ApiError as error:
        sys.stderr.write(f"octavo-operator: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
