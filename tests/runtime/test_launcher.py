"""The parent's side of the engine process, over a stand-in for the child that tells what it was given."""

import json
import os
import signal
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo_runtime import launcher
from octavo_runtime.engine.heartbeat import Heartbeat
from octavo_runtime.launcher import EngineProcess

CHILD = """#!{python}
import json, mmap, os, signal, socket, struct, sys, time
given = dict(zip(sys.argv[3::2], sys.argv[4::2]))
channel = socket.socket(fileno=int(given["--channel-fd"]))
pulse = mmap.mmap(int(given["--heartbeat-fd"]), mmap.PAGESIZE)
struct.pack_into("<QdQ", pulse, 0, 7, time.monotonic(), 1)
signal.signal(signal.SIGUSR1, lambda *_: channel.sendall(b"stacks\\n"))
facts = {{"argv": sys.argv[1:3], "settings": sys.stdin.read(), "environment": dict(os.environ), "group": os.getpgrp()}}
channel.sendall(json.dumps(facts).encode() + b"\\n")
while True:
    told = channel.recv(100)
    if told in (b"", b"leave"):
        sys.exit(3)
"""


@pytest.fixture
def heartbeat() -> Iterator[Heartbeat]:
    made = Heartbeat.create()
    yield made
    made.close()


@pytest.fixture
def process(heartbeat: Heartbeat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineProcess]:
    child = tmp_path / "python"
    child.write_text(CHILD.format(python=sys.executable))
    child.chmod(child.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(child))
    started = EngineProcess.start('{"model": "é"}', {"ONLY": "this"}, heartbeat)
    started.channel.settimeout(20)
    yield started
    started.kill()
    started.channel.close()


def line(process: EngineProcess) -> str:
    data = b""
    while not data.endswith(b"\n"):
        data += process.channel.recv(1 << 16)
    return data.decode()


def test_the_child_gets_settings_environment_channel_and_pulse(process: EngineProcess, heartbeat: Heartbeat) -> None:
    facts = json.loads(line(process))
    assert facts["argv"] == ["-m", "octavo_runtime.engine_process"]
    assert facts["settings"] == '{"model": "é"}'
    assert facts["environment"].items() >= {"ONLY": "this"}.items()
    assert "HOME" not in facts["environment"]
    assert heartbeat.steps == 7
    assert heartbeat.has_work


def test_the_child_is_in_a_group_of_its_own_so_that_ctrl_c_does_not_reach_it(process: EngineProcess) -> None:
    assert json.loads(line(process))["group"] == process.popen.pid != os.getpgrp()


async def test_a_child_that_leaves_by_itself_is_not_killed(process: EngineProcess) -> None:
    line(process)
    process.channel.sendall(b"leave")
    await process.stop()
    assert process.popen.returncode == 3


async def test_a_child_that_stays_is_killed(process: EngineProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launcher, "_STOP_SECONDS", 0.1)
    line(process)
    await process.stop()
    assert process.popen.returncode == -signal.SIGKILL


def test_the_channel_ends_with_the_child_and_killing_it_again_is_harmless(process: EngineProcess) -> None:
    line(process)
    process.kill()
    process.kill()
    process.dump_stacks()
    assert process.channel.recv(10) == b""


def test_stacks_are_asked_for_by_the_signal_that_the_engine_registers(process: EngineProcess) -> None:
    line(process)
    process.dump_stacks()
    assert line(process) == "stacks\n"


def test_the_pulse_is_inherited_by_name_only(process: EngineProcess, heartbeat: Heartbeat) -> None:
    line(process)
    assert not os.get_inheritable(heartbeat.descriptor)


def test_a_stopped_child_shows_its_stacks_too(process: EngineProcess) -> None:
    line(process)
    process.popen.send_signal(signal.SIGSTOP)
    process.dump_stacks()
    assert line(process) == "stacks\n"


def test_it_is_known_which_signal_killed_it(process: EngineProcess) -> None:
    line(process)
    assert process.ended_by() is None
    process.kill()
    assert process.ended_by() == "SIGKILL"
