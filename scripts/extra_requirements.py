"""Prints the requirements of one extra of pyproject.toml, one a line; the images are made from them.

    extra_requirements.py EXTRA [--without NAME]

Needs nothing but Python 3.11.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extra", help="runtime, operator or dev")
    parser.add_argument("--without", action="append", default=[], metavar="NAME", help="a package to leave out")
    parser.add_argument("--project", type=Path, default=Path("pyproject.toml"))
    options = parser.parse_args()
    project = tomllib.loads(options.project.read_text())["project"]
    requirements = [*project["dependencies"], *project["optional-dependencies"][options.extra]]
    kept = [line for line in requirements if re.split(r"[^\w.-]", line)[0].lower() not in options.without]
    sys.stdout.write("".join(f"{line}\n" for line in kept))


if __name__ == "__main__":
    main()
