"""Prints what the `runtime` and `dev` extras and the build need, one requirement a line: the input of `setup.sh`."""

import sys
import tomllib
from pathlib import Path


def main() -> None:
    """Read pyproject.toml beside the working directory."""
    project = tomllib.loads(Path("pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    lines = [*project["build-system"]["requires"], *extras["runtime"], *extras["dev"], "editables>=0.5,<1", "pip"]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
