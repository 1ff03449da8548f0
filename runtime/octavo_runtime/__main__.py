"""`python -m octavo_runtime` and the `octavo` script.

Listens for SIGTERM before all else: in a container this is process 1, for which the kernel drops every signal without a
handler, so a pod deleted while Python still imports would live on to the end of its grace period, and hold its GPU.
"""

import os
import signal
import sys


def main() -> int:
    """Run the command line; the exit status."""
    signal.signal(signal.SIGTERM, _leave)  # verbs that have something to finish put their own in its place
    from octavo_runtime.cli.main import run  # takes seconds on a busy machine

    return run(sys.argv[1:])


def _leave(number: int, _: object) -> None:
    """What the signal does to any other process: nothing has begun that would have to be ended."""
    os._exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
