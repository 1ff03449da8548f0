"""`python -m octavo_runtime` is the command line."""

import subprocess
import sys


def test_module_runs_the_command_line() -> None:
    command = [sys.executable, "-m", "octavo_runtime", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("octavo ")
