"""Speed of the native linear next to torch's in the same run: GB/s of weights and GFLOP/s, for SmolLM2 and 1B-class shapes.

Weights are rotated over more copies than the last-level cache holds, as a model's layers are. The roofs are measured too:
read bandwidth by summing a large tensor, float32 multiply-adds by a large square product. Best of several repeats.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from octavo_kernels.cpu.backend import CpuBackend
from octavo_kernels.cpu.native import Isa, available_isas
from octavo_kernels.cpu.packed_linear import NativeLinear
from octavo_kernels.cpu.program_builder import SymbolicValue
from octavo_kernels.ops import Batch, CacheShape, Ops

SHAPES = {  # name: (in features, out features)
    "smollm2 qkv": (576, 960),
    "smollm2 o": (576, 576),
    "smollm2 gate_up": (576, 3072),
    "smollm2 down": (1536, 576),
    "smollm2 lm_head": (576, 49152),
    "1b gate_up": (2048, 16384),
}
ROWS = (1, 4, 32, 128, 512)
ROTATED_BYTES = 160 << 20


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement: seconds of one product."""

    shape: str
    rows: int
    kernel: str
    seconds: float
    gigabytes_per_second: float
    gigaflops: float


def best_seconds(call: Callable[[], object], repeats: int) -> float:
    """The fastest of `repeats` calls, after one that warms up."""
    call()
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def roofs() -> dict[str, float]:
    """Read bandwidth in GB/s and float32 GFLOP/s of torch on its threads."""
    memory = torch.ones(128 << 20)
    bandwidth = memory.numel() * 4 / best_seconds(memory.sum, 7) / 1e9
    square = torch.randn(2048, 2048)
    flops = 2 * 2048**3 / best_seconds(lambda: square @ square, 5) / 1e9
    return {"read GB/s": round(bandwidth, 1), "float32 GFLOP/s": round(flops, 1)}


def native_call(backend: CpuBackend, x: torch.Tensor, weights: list[NativeLinear]) -> Callable[[], object]:
    """One program that multiplies the same rows by every weight."""
    rows = x.shape[0]
    table = backend.pack_linear(x, None)
    head = backend.pack_linear(torch.zeros(16, weights[0].out_features), None)

    def forward(ops: Ops[SymbolicValue]) -> SymbolicValue:
        value = ops.embedding(table)
        for weight in weights:
            last = ops.linear(value, weight)
        return ops.linear(ops.logits_rows(last), head)

    cache = backend.allocate_kv_cache(CacheShape(1, 1, 8, 1, 32, torch.float32))
    program = backend.compile(forward, cache, 16)
    numbers = torch.arange(rows, dtype=torch.int32)
    one = torch.zeros(1, dtype=torch.int32)
    batch = Batch(numbers, numbers, numbers, one, one, one.view(1, 1), one)
    return lambda: program(batch)


def torch_calls(x: torch.Tensor, weights: list[torch.Tensor]) -> Iterator[tuple[str, Callable[[], object]]]:
    """F.linear on bfloat16, and oneDNN's prepacked weights."""
    narrow = x.to(torch.bfloat16)
    yield "torch F.linear bf16", lambda: [torch.nn.functional.linear(narrow, weight) for weight in weights]
    packed = [torch.ops.mkldnn._reorder_linear_weight(weight, x.shape[0]) for weight in weights]
    pointwise = torch.ops.mkldnn._linear_pointwise
    yield "torch mkldnn prepacked bf16", lambda: [pointwise(narrow, weight, None, "none", [], "") for weight in packed]


def measure(name: str, rows: int, isas: list[Isa], threads: int, peers: bool) -> Iterator[Line]:
    """Lines of one shape and row count for every kernel."""
    width, features = SHAPES[name]
    size = width * features * 2
    copies = max(1, ROTATED_BYTES // size)
    x = torch.randn(rows, width)
    weights = [torch.randn(features, width).to(torch.bfloat16) for _ in range(copies)]
    repeats = 3 if rows >= 128 else 7
    calls: list[tuple[str, Callable[[], object]]] = []
    for isa in isas:
        backend = CpuBackend(threads, torch.bfloat16, isa)
        packed = [backend.pack_linear(weight, None) for weight in weights]
        calls.append((f"octavo {isa.name.lower()}", native_call(backend, x, packed)))
    if peers:
        calls.extend(torch_calls(x, weights))
    for kernel, call in calls:
        seconds = best_seconds(call, repeats) / copies
        yield Line(name, rows, kernel, seconds, size / seconds / 1e9, 2 * rows * width * features / seconds / 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--shape", choices=SHAPES, nargs="*", default=list(SHAPES))
    parser.add_argument("--rows", type=int, nargs="*", default=list(ROWS))
    parser.add_argument("--isa", choices=[isa.name.lower() for isa in available_isas()], nargs="*")
    parser.add_argument("--no-peers", action="store_true", help="leave torch's kernels out")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    isas = [Isa[name.upper()] for name in options.isa] if options.isa else available_isas()[-1:]
    print(json.dumps({"threads": options.threads, "isas": [isa.name for isa in isas]} | roofs()))
    print(f"{'shape':18}{'rows':>5}  {'kernel':28}{'us':>10}{'GB/s':>8}{'GFLOP/s':>9}")
    for name in options.shape:
        for rows in options.rows:
            for line in measure(name, rows, isas, options.threads, not options.no_peers):
                print(
                    f"{line.shape:18}{line.rows:5}  {line.kernel:28}{line.seconds * 1e6:10.1f}"
                    f"{line.gigabytes_per_second:8.1f}{line.gigaflops:9.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
