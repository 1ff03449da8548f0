"""The native library's threads: they start, stop, sleep, and survive a fork; and what is missing is said."""

import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
import torch

from octavo_kernels.backend import SamplingBatch
from octavo_kernels.cpu.backend import CpuBackend
from octavo_kernels.cpu.native import LIBRARY_PATH, MAX_VOCAB, Engine, Isa, NativeLibraryError, available_isas

pytestmark = pytest.mark.skipif(not available_isas(), reason="the native CPU kernels are not built")


MAKE_ENGINES = """
import ctypes, resource, sys
path, isa, num_threads, megabytes = sys.argv[1], *map(int, sys.argv[2:])
library = ctypes.CDLL(path)
library.octavo_engine_create.restype = ctypes.c_void_p
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (megabytes << 20), resource.RLIM_INFINITY))
print(library.octavo_engine_create(num_threads, isa), library.octavo_engine_create(2, isa) is not None)
"""


def greedy(backend: CpuBackend) -> int:
    """One draw through the threads."""
    off, rows = torch.zeros(1), torch.zeros(1, dtype=torch.int32)
    logits = torch.tensor([[0.0, 1.0, 3.0, 2.0]])
    return int(backend.sample(logits, SamplingBatch(rows, off, rows, torch.ones(1), off, off))[0])


def num_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def test_an_engine_ends_its_threads_when_it_goes() -> None:
    before = num_threads()
    backend = CpuBackend(4, torch.float32)
    assert greedy(backend) == 2
    assert num_threads() == before + 3
    del backend
    assert num_threads() == before


def test_threads_sleep_between_steps() -> None:
    backend = CpuBackend(4, torch.float32)
    greedy(backend)
    time.sleep(0.05)
    start = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - start < 0.1
    assert greedy(backend) == 2


def test_callers_on_several_python_threads_take_turns() -> None:
    backend = CpuBackend(2, torch.float32)
    results: list[int] = []
    callers = [threading.Thread(target=lambda: results.extend(greedy(backend) for _ in range(50))) for _ in range(3)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == [2] * 150


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_computes_alone() -> None:
    backend = CpuBackend(2, torch.float32)
    assert greedy(backend) == 2
    child = os.fork()
    if child == 0:
        os._exit(0 if greedy(backend) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_can_let_go_of_an_engine_whose_threads_it_lacks() -> None:
    backend = CpuBackend(3, torch.float32)
    assert greedy(backend) == 2
    time.sleep(0.05)  # its threads sleep, on what the child gets a copy of
    child = os.fork()
    if child == 0:
        signal.alarm(5)  # ends a child that hangs
        del backend
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert greedy(backend) == 2


def test_an_engine_whose_threads_the_system_refuses_is_no_engine_and_leaves_none() -> None:
    num_threads, scratch, beyond = 32, 4, 24  # MiB: all scratch fits, two or three of the stacks do
    arguments = [
        str(LIBRARY_PATH),
        str(int(available_isas()[0])),
        str(num_threads),
        str(num_threads * scratch + beyond),
    ]
    command = [sys.executable, "-c", MAKE_ENGINES, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout.split()) == (0, ["None", "True"]), done.stderr


def test_the_largest_vocabulary_is_that_of_the_library() -> None:
    header = (LIBRARY_PATH.parent / "src" / "kernels.h").read_text()
    found = re.search(r"kMaxVocab = ([\d']+);", header)
    assert found is not None
    assert int(found[1].replace("'", "")) == MAX_VOCAB


def test_an_instruction_set_that_is_not_there_is_refused() -> None:
    missing = [isa for isa in Isa if isa not in available_isas()]
    if not missing:
        pytest.skip("this machine has every instruction set")
    with pytest.raises(NativeLibraryError, match=missing[0].name):
        Engine(1, missing[0])


def test_no_threads_are_refused() -> None:
    with pytest.raises(NativeLibraryError, match="0 threads"):
        Engine(0, available_isas()[0])
