"""Run the workloads on Octavo and its peers in one run and keep the figures.

    python -m benchmarks.serving.compare
    python -m benchmarks.serving.compare --servers octavo,vllm --workloads single,mixed32 --rounds 3

A round starts each server once, runs every workload on it in order, and stops it; the order of the servers turns
around from round to round. A workload never meets the same start twice, since a second time its prompts would sit in
the prefix cache. `report` turns the lines into benchmarks/results/serving.{json,md,png}.
"""

import argparse
import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.serving.environment import (
    cache_folder,
    child_environment,
    describe_machine,
    load_average,
    repository,
)
from benchmarks.serving.peers import LLAMA_CPP, TORCH, VLLM, Products, ensure_model, ensure_model_gguf
from benchmarks.serving.report import Line, summarize, write_report
from benchmarks.serving.servers import MODEL, SERVERS, ServerFailedError, running
from benchmarks.serving.workloads import WORKLOADS

DEFAULT_SERVERS = "octavo,vllm,llama.cpp"
ONLY_BY_DEFAULT = {"llama.cpp": ["single"]}  # it shares no batch worth comparing; the bar it sets is a lone stream


@dataclass(frozen=True, slots=True)
class Job:
    """One server start within one round."""

    server: str
    round: int
    workloads: Sequence[str]


def plan_jobs(servers: Sequence[str], workloads: Sequence[str] | None, rounds: int) -> Iterator[Job]:
    """Servers side by side in every round, first to last and then last to first."""
    for number in range(rounds):
        for server in servers if number % 2 == 0 else reversed(servers):
            yield Job(server, number + 1, workloads or ONLY_BY_DEFAULT.get(server, list(WORKLOADS)))


def run_job(job: Job, products: Products, logs: Path) -> Iterator[Line]:
    launch = SERVERS[job.server](products, job.workloads)
    say(f"round {job.round}: starting {job.server} (load average {load_average()})")
    with running(launch, logs / f"{job.server}-{job.round}.log") as server:
        say(f"  ready after {server.start_s} s")
        for workload in job.workloads:
            figures = drive(server.url, workload, f"{job.server}-{job.round}")
            line = figures | {"server": job.server, "round": job.round, "start_s": server.start_s}
            say("  " + json.dumps(line))
            yield line


def drive(url: str, workload: str, label: str) -> Line:
    """The load generator in its own process: its lock and its garbage are nobody's but its own."""
    module = [sys.executable, "-m", "benchmarks.serving.load"]
    options = ["--url", url, "--model", MODEL, "--workload", workload, "--label", label]
    environment = child_environment() | {"PYTHONPATH": str(repository())}
    done = subprocess.run(
        [*module, *options], env=environment, cwd=repository(), check=True, stdout=subprocess.PIPE, text=True
    )
    line: Line = json.loads(done.stdout)
    return line


def prepare(servers: Sequence[str], products: Products) -> None:
    ensure_model(products)
    if "llama.cpp" in servers:
        ensure_model_gguf(products)


def say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Octavo against its peers on fixed workloads, in one run.")
    known = ", ".join(SERVERS)
    parser.add_argument("--servers", default=DEFAULT_SERVERS, help=f"some of {known} (default: %(default)s)")
    every = ",".join(WORKLOADS)
    parser.add_argument("--workloads", help=f"comma-separated (default: {every}, and for llama.cpp only single)")
    parser.add_argument("--rounds", type=int, default=3, help="starts of each server (default: %(default)s)")
    results = repository() / "benchmarks" / "results"
    parser.add_argument("--out", type=Path, default=results, help="folder of the results (default: %(default)s)")
    arguments = parser.parse_args()
    for option, choices in (("servers", SERVERS), ("workloads", WORKLOADS)):
        if getattr(arguments, option) is None:
            continue
        names = getattr(arguments, option).split(",")
        if unknown := [name for name in names if name not in choices]:
            parser.error(f"--{option}: no {unknown[0]!r}; choose from {', '.join(choices)}")
        setattr(arguments, option, names)
    if arguments.rounds < 1:
        parser.error("--rounds: at least 1")
    return arguments


def main() -> int:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the running server is stopped too
    products = Products(cache_folder())
    prepare(arguments.servers, products)
    lines: list[Line] = []
    failures: list[str] = []
    for job in plan_jobs(arguments.servers, arguments.workloads, arguments.rounds):
        try:
            lines.extend(run_job(job, products, products.cache / "benchmarks" / "logs"))
        except (ServerFailedError, OSError, subprocess.CalledProcessError) as failure:
            failures.append(f"{job.server}, round {job.round}: {failure}")
            say(failures[-1])
    record = {
        "command": shlex.join(["python", "-m", "benchmarks.serving.compare", *sys.argv[1:]]),
        "machine": str(describe_machine()),
        "peers": [VLLM, TORCH, LLAMA_CPP],
        "failures": failures,
        "summary": summarize(lines),
        "runs": lines,
    }
    write_report(record, arguments.out)
    say(f"wrote {arguments.out}/serving.json, .md and .png")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
