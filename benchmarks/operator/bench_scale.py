"""What the operator costs with 100, 300 and 1,000 LLMDeployments, on an API server of the benchmark's own.

    PYTHONPATH=. python -m benchmarks.operator.bench_scale

One operator process with its default settings all along. At each size: the missing LLMDeployments are created at once and
become ready (etcd, API server, Deployment and ReplicaSet controllers are real, nodes and pods are played); then nothing
happens for a while; then pods change one by one, and a watching client notes when the status says so. Writes
`benchmarks/results/operator_scale.{json,md}`.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.operator.client import Client
from benchmarks.operator.control_plane import ControlPlane, start_control_plane
from benchmarks.operator.figures import Reading, Spent, cpu_seconds, spent
from benchmarks.operator.kubelet import Kubelet
from benchmarks.operator.operator_process import OperatorProcess, start_operator
from benchmarks.operator.report import COMMAND, record_of, table, written
from benchmarks.operator.world import Statuses, create_deployments, key_of, prepare, start_hub
from benchmarks.serving.environment import describe_machine, load_average, repository

SETTLE_SECONDS = 10.0  # without news, before idleness is measured
CHANGE_SECONDS = 60.0  # the longest that a change may take to be seen
DEPTH = "octavo_operator_queue_depth"


@dataclass(frozen=True, slots=True)
class Options:
    """Of one run."""

    sizes: tuple[int, ...]
    idle_seconds: tuple[float, ...]  # at each size
    changes: int
    rate: float  # changes a second
    profile: Path | None


@dataclass(frozen=True, slots=True)
class Bench:
    """All that runs."""

    options: Options
    plane: ControlPlane
    client: Client
    kubelet: Kubelet
    statuses: Statuses
    operator: OperatorProcess

    async def read(self) -> Reading:
        """The operator's state; not in this loop, which has watches to follow."""
        return await asyncio.to_thread(self.operator.read)

    async def grow(self, before: int, size: int) -> dict[str, Any]:
        """Create what is missing and wait until everything is ready."""
        first, servers = await self.read(), self._server_cpu()
        await create_deployments(self.client, before, size)
        await self.statuses.wait_until_ready(size)
        seconds = time.monotonic() - first.at
        done = spent(first, await self._settled())
        return {
            "seconds": seconds,
            "api_server_cpu_seconds": self._server_cpu() - servers,
            **record_of(done, size - before),
        }

    async def idle(self, size: int) -> dict[str, Any]:
        """Do nothing."""
        first = await self.read()
        await asyncio.sleep(self.options.idle_seconds[self.options.sizes.index(size)])
        return record_of(spent(first, await self.read()), size)

    async def churn(self, size: int) -> dict[str, Any]:
        """Each chosen pod becomes unready and, when the status has it, ready again: seconds until the status has it."""
        keys = random.Random(1).sample([key_of(number) for number in range(size)], min(self.options.changes // 2, size))
        first = await self.read()
        async with asyncio.TaskGroup() as tasks:
            changes = []
            for key in keys:
                changes.append(tasks.create_task(self._change(key)))
                await asyncio.sleep(random.expovariate(self.options.rate / 2))
        latencies = [seconds for change in changes for seconds in change.result()]
        done: Spent = spent(first, await self.read())
        return {"latencies": sorted(latencies), **record_of(done, len(latencies))}

    async def _change(self, key: tuple[str, str]) -> list[float]:
        latencies = []
        for ready in (False, True):
            told = self.statuses.expect(key, int(ready))
            started = time.monotonic()
            await self.kubelet.set_ready(self.kubelet.paths[key], ready)
            async with asyncio.timeout(CHANGE_SECONDS):
                latencies.append(await told - started)
        return latencies

    async def _settled(self) -> Reading:
        """When no status was written for some seconds and no key waits."""
        before = await self.read()
        while True:
            await asyncio.sleep(SETTLE_SECONDS)
            after = await self.read()
            if not after.samples[DEPTH] and written(spent(before, after)) == 0:
                return after
            before = after

    def _server_cpu(self) -> float:
        return sum(cpu_seconds(self.plane.pids[name]) for name in ("etcd", "kube-apiserver"))


async def measure(options: Options, folder: Path) -> list[dict[str, Any]]:
    """One entry per size, and a first one of the operator without anything to do."""
    with start_control_plane(folder) as plane:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(plane))
            kubelet, statuses = Kubelet(client), Statuses(client)
            await prepare(client)
            await kubelet.start()
            stack.push_async_callback(kubelet.close)
            hub, url = await start_hub(folder)
            stack.push_async_callback(hub.cleanup)
            operator = stack.enter_context(start_operator(folder, plane, url, options.profile))
            tasks = [asyncio.create_task(kubelet.run()), asyncio.create_task(statuses.run())]
            stack.callback(lambda: [task.cancel() for task in tasks])
            work = asyncio.create_task(_run(Bench(options, plane, client, kubelet, statuses, operator)))
            ended, _ = await asyncio.wait({work, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            for task in ended - {work}:
                task.result()  # raises what broke a watch
            return await work


async def _run(bench: Bench) -> list[dict[str, Any]]:
    await asyncio.sleep(SETTLE_SECONDS)
    empty, before = await bench.read(), 0
    entries: list[dict[str, Any]] = [{"objects": 0, "rss_bytes": empty.rss, "load": load_average()}]
    for size in bench.options.sizes:
        entry: dict[str, Any] = {"objects": size, "creating": await bench.grow(before, size)}
        entry |= {"idle": await bench.idle(size), "changing": await bench.churn(size)}
        entry |= {"rss_bytes": (await bench.read()).rss, "load": load_average()}
        entries.append(entry)
        before = size
        print(json.dumps({name: value for name, value in entry.items() if name != "changing"}), flush=True)
    return entries


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="100,300,1000", help="how many LLMDeployments, rising")
    parser.add_argument(
        "--idle",
        default="60,60,300",
        help="seconds without a change at each size; everything is listed anew and looked at once in 300",
    )
    parser.add_argument("--changes", type=int, default=200, help="pod changes at each size")
    parser.add_argument("--rate", type=float, default=5.0, help="pod changes a second")
    parser.add_argument("--profile", type=Path, help="write samples of the operator's stacks there")
    parser.add_argument("--out", type=Path, default=repository() / "benchmarks" / "results")
    parser.add_argument("--folder", type=Path, help="an empty folder for logs and data, which stay there")
    arguments = parser.parse_args()
    sizes = tuple(int(size) for size in arguments.sizes.split(","))
    idle = tuple(float(seconds) for seconds in arguments.idle.split(","))[-len(sizes) :]
    if len(idle) < len(sizes):
        raise SystemExit("--idle wants as many values as --sizes")
    options = Options(sizes, idle, arguments.changes, arguments.rate, arguments.profile)
    asked = {name: getattr(arguments, name) for name in ("sizes", "idle", "changes", "rate")}
    measured = " ".join(f"--{name} {value}" for name, value in asked.items() if value != parser.get_default(name))
    with tempfile.TemporaryDirectory(prefix="octavo-scale-") as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        entries = asyncio.run(measure(options, folder))
    result = {"machine": str(describe_machine()), "command": f"{COMMAND} {measured}".strip(), "entries": entries}
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "operator_scale.json").write_text(json.dumps(result, indent=1) + "\n")
    text = table(result)
    (arguments.out / "operator_scale.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
