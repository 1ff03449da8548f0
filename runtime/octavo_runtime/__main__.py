"""`python -m octavo_runtime` and the `octavo` script."""

import sys

from octavo_runtime.cli.main import run


def main() -> int:
    """Run the command line; the exit status."""
    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
