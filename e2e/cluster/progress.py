"""What the cluster's commands tell a person: one line each, on the standard error, with the time of day."""

import sys
import time


def say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} cluster: {text}\n")
    sys.stderr.flush()
