"""How each server under test is started, known to be ready, and stopped.

`launch_octavo`, `launch_vllm` and `launch_llama_cpp` only say what to run; `running` runs it in a process group of its
own, measures the seconds until it answers 200, and ends the whole group whatever happens inside the block. One server
at a time: every core belongs to it.
"""

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.serving.environment import child_environment, describe_machine, repository
from benchmarks.serving.peers import Products
from benchmarks.serving.workloads import make_workload

MODEL = "smollm2"  # the name every server lists the model under
START_TIMEOUT_S = 600
STOP_TIMEOUT_S = 20
POLL_S = 0.1


class ServerFailedError(RuntimeError):
    """The server ended or stayed silent before it was ready; the message names its log."""


@dataclass(frozen=True, slots=True)
class Launch:
    """What to run: a command that still lacks its port, and where readiness is asked."""

    command: Sequence[str]
    ready_path: str
    environment: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Running:
    url: str
    start_s: float


def launch_octavo(products: Products, workloads: Sequence[str]) -> Launch:
    del workloads  # Octavo serves any of them as it starts by default
    binary = repository() / ".venv" / "bin" / "octavo"
    return Launch([str(binary), "serve", str(products.model_folder), "--served-model-name", MODEL], "/health/ready")


def launch_vllm(products: Products, workloads: Sequence[str]) -> Launch:
    del workloads
    server = [str(products.vllm_python), "-m", "vllm.entrypoints.openai.api_server"]
    model = ["--model", str(products.model_folder), "--served-model-name", MODEL]
    environment = {
        "VLLM_CPU_NUM_OF_RESERVED_CPU": "0",
        "VLLM_CPU_OMP_THREADS_BIND": f"0-{describe_machine().cores - 1}",
        "VLLM_CPU_KVCACHE_SPACE": "4",
        "VLLM_NO_USAGE_STATS": "1",
    }
    return Launch([*server, *model], "/health", environment | _vllm_preloads(products))


def launch_vllm_fp32(products: Products, workloads: Sequence[str]) -> Launch:
    """The same weights computed in float32: faster in batches where the processor has no bf16 instructions."""
    launch = launch_vllm(products, workloads)
    return replace(launch, command=[*launch.command, "--dtype", "float32"])


def launch_llama_cpp(products: Products, workloads: Sequence[str]) -> Launch:
    """One slot for each concurrent call, each with the context of the longest one."""
    drawn = [make_workload(name) for name in workloads]
    slots = max(workload.concurrency for workload in drawn)
    slot_context = (max(workload.longest for workload in drawn) // 256 + 1) * 256
    cores = str(describe_machine().cores)
    model = ["--model", str(products.model_gguf), "--alias", MODEL]
    threads = ["--threads", cores, "--threads-batch", cores]
    context = ["--parallel", str(slots), "--ctx-size", str(slots * slot_context)]
    return Launch([str(products.llama_binary("llama-server")), *model, *threads, *context], "/health")


SERVERS: dict[str, Callable[[Products, Sequence[str]], Launch]] = {
    "octavo": launch_octavo,
    "vllm": launch_vllm,
    "llama.cpp": launch_llama_cpp,
    "vllm-fp32": launch_vllm_fp32,
}


@contextmanager
def running(launch: Launch, log: Path) -> Iterator[Running]:
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    command = [*launch.command, "--host", "127.0.0.1", "--port", str(port)]
    environment = child_environment({"HF_HUB_OFFLINE": "1"} | launch.environment)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        print("+", *command, file=output, flush=True)
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            _wait_ready(process, url + launch.ready_path, log)
            yield Running(url, round(time.perf_counter() - started, 1))
        finally:
            _stop(process)


def _wait_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise ServerFailedError(f"the server ended with {process.returncode} before it was ready; see {log}")
        try:
            with urllib.request.urlopen(url, timeout=5) as response:
                if response.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            pass  # not listening yet, or 503 while it loads
        time.sleep(POLL_S)
    raise ServerFailedError(f"the server was not ready after {START_TIMEOUT_S} s; see {log}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the group to end, once, then make it: a worker that outlived its parent would slow the next server."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_TIMEOUT_S)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _vllm_preloads(products: Products) -> dict[str, str]:
    """vLLM asks for tcmalloc and Intel's OpenMP by LD_PRELOAD; it gets the system's tcmalloc where there is one."""
    allocators = sorted(Path("/usr/lib").glob("*/libtcmalloc_minimal.so.4"))[:1]
    return {"LD_PRELOAD": ":".join(map(str, [*allocators, products.vllm / "lib" / "libiomp5.so"]))}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
