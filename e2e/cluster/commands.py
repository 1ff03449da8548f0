"""Running other programs: the command in the error, output kept, nothing through a shell."""

import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from e2e.cluster.settings import child_environment


class CommandError(RuntimeError):
    """A program ended with another code than 0; the message has its command and the end of its output."""


def run(
    command: Sequence[str | Path],
    *,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
    environment: dict[str, str] | None = None,
) -> str:
    """Run to the end and return what it wrote on its standard output.

    :raises CommandError: when it fails or takes longer than `timeout` seconds
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words,
            input=stdin,
            cwd=cwd,
            timeout=timeout,
            env=environment if environment is not None else child_environment(),
            capture_output=True,
            check=False,
        )
    except FileNotFoundError as error:
        raise CommandError(f"{words[0]}: not found") from error
    except subprocess.TimeoutExpired as error:
        raise CommandError(f"{shlex.join(words)}: no end after {timeout} s") from error
    if done.returncode:
        said = (done.stderr + b"\n" + done.stdout).decode(errors="replace").strip()
        raise CommandError(f"{shlex.join(words)}: exit code {done.returncode}\n{said[-4000:]}")
    return done.stdout.decode(errors="replace")


def succeeds(command: Sequence[str | Path]) -> bool:
    """Whether it ends with 0; its output is of no interest."""
    words = [str(word) for word in command]
    done = subprocess.run(words, env=child_environment(), capture_output=True, check=False)
    return done.returncode == 0
