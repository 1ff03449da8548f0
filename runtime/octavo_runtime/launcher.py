"""Starts the engine process and gives the parent its end of everything: channel, pulse, exit code.

The child is a fresh interpreter (its allocator and thread settings must stand before torch loads), told its settings on
standard input. It dies with this process: by prctl, and by the end of the channel.
"""

import asyncio
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from octavo_runtime.engine.heartbeat import Heartbeat

_STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class EngineProcess:
    """A started engine process."""

    popen: subprocess.Popen[bytes]
    channel: socket.socket  # the parent's end

    @classmethod
    def start(cls, settings_json: str, environment: Mapping[str, str], heartbeat: Heartbeat) -> "EngineProcess":
        """Start it; it sends `LoadProgress`, then `EngineReady` or `EngineFailed`, and beats on `heartbeat`."""
        ours, theirs = socket.socketpair()
        command = [
            sys.executable, "-m", "octavo_runtime.engine_process",
            "--channel-fd", str(theirs.fileno()), "--heartbeat-fd", str(heartbeat.descriptor),
        ]  # fmt: skip
        popen = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            env=dict(environment),
            pass_fds=(theirs.fileno(), heartbeat.descriptor),
            process_group=0,  # Ctrl-C reaches the parent only, which then drains
        )
        theirs.close()
        if popen.stdin is not None:
            popen.stdin.write(settings_json.encode())
            popen.stdin.close()
        return cls(popen, ours)

    def ended_by(self) -> str | None:
        """The signal that killed it, by name; None while it lives or when it left by itself."""
        code = self.popen.poll()
        return signal.Signals(-code).name if code is not None and code < 0 else None

    async def stop(self) -> None:
        """Wait for it to leave after `Shutdown`, then kill it."""
        for _ in range(int(_STOP_SECONDS / 0.02)):
            if self.popen.poll() is not None:
                return
            await asyncio.sleep(0.02)
        self.kill()

    def kill(self) -> None:
        """End it at once; safe when it is gone already."""
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()

    def dump_stacks(self) -> None:
        """Ask it to write the stack of every thread to standard error (it registered faulthandler for SIGUSR1).

        A process that was stopped has to go on for that."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGUSR1)
            self.popen.send_signal(signal.SIGCONT)
