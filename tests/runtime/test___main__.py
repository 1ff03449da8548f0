"""`python -m octavo_runtime` is the command line."""

import signal
import subprocess
import sys

SLOW_IMPORT = """
import sys, time
from octavo_runtime.__main__ import main

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "octavo_runtime.cli.main":
            print("importing", flush=True)
            time.sleep(60)

sys.meta_path.insert(0, Slow())
main()
"""


def test_module_runs_the_command_line() -> None:
    command = [sys.executable, "-m", "octavo_runtime", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("octavo ")


def test_sigterm_ends_it_while_it_still_imports_also_as_process_1_which_has_no_default_action() -> None:
    with subprocess.Popen([sys.executable, "-c", SLOW_IMPORT], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGTERM)
        status = process.wait(timeout=20)
    assert status == 143, "by its own handler; the default action would give -15"
