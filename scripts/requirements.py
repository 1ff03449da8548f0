"""Prints what the extras and the build need, one requirement a line: the input of `setup.sh`."""

import sys
import tomllib
from pathlib import Path

EXTRAS = ("operator", "plugin", "runtime", "dev")


def main() -> None:
    """Read pyproject.toml beside the working directory."""
    project = tomllib.loads(Path("pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = [requirement for extra in EXTRAS for requirement in extras[extra]]
    lines = [*project["build-system"]["requires"], *dict.fromkeys(wanted), "editables>=0.5,<1", "pip"]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
