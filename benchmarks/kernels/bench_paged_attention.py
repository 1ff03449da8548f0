"""Speed of the native paged attention next to torch's scaled_dot_product_attention in the same run.

Decode in GB/s of K and V, over more layers than the last-level cache holds; prefill in GFLOP/s of the scores that are
seen. torch gets contiguous K and V, which a paged cache would first have to be gathered into: for decode bfloat16 with
the query heads of a group as rows, its fastest form; for prefill float32 with the heads already repeated, and causal.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch.nn.functional import scaled_dot_product_attention

from octavo_kernels.cpu.native import Engine, Isa, available_isas
from octavo_kernels.cpu.single_op import attention_arena, run_attention
from octavo_kernels.ops import AttentionShape, Batch, CacheShape, KVCache

ROTATED_BYTES = 128 << 20


@dataclass(frozen=True, slots=True)
class Workload:
    """`rows` sequences of `context` tokens, each with `queries` queries."""

    rows: int
    queries: int
    context: int
    kv_heads: int
    group: int
    head_dim: int

    @property
    def cache_bytes(self) -> int:
        """Of K and V of one layer in bfloat16."""
        return 4 * self.rows * self.context * self.kv_heads * self.head_dim

    @property
    def flops(self) -> int:
        """Of the visible scores and the weighted sums."""
        visible = self.queries * self.context - self.queries * (self.queries - 1) // 2
        return 4 * self.rows * visible * self.kv_heads * self.group * self.head_dim

    @property
    def num_layers(self) -> int:
        return max(1, -(-ROTATED_BYTES // self.cache_bytes)) if self.queries == 1 else 1


WORKLOADS = {
    "decode b32 s192 smollm2": Workload(32, 1, 192, 3, 3, 64),
    "decode b1 s3000 smollm2": Workload(1, 1, 3000, 3, 3, 64),
    "decode b1 s192 smollm2": Workload(1, 1, 192, 3, 3, 64),
    "decode b32 s512 8b": Workload(32, 1, 512, 8, 4, 128),
    "prefill s128 smollm2": Workload(1, 128, 128, 3, 3, 64),
    "prefill s1024 smollm2": Workload(1, 1024, 1024, 3, 3, 64),
    "prefill s3000 smollm2": Workload(1, 3000, 3000, 3, 3, 64),
    "prefill s1024 8b": Workload(1, 1024, 1024, 8, 4, 128),
}


@dataclass(frozen=True, slots=True)
class Line:
    """One measurement: seconds of one layer's attention."""

    workload: str
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


def native_seconds(work: Workload, engine: Engine, block_size: int, repeats: int) -> float:
    blocks = -(-work.context // block_size)
    shape = CacheShape(work.num_layers, work.rows * blocks, block_size, work.kv_heads, work.head_dim, torch.bfloat16)
    layout = (shape.num_layers, shape.num_blocks, work.kv_heads)
    cache = KVCache(
        shape,
        torch.randn(*layout, work.head_dim, block_size, dtype=torch.bfloat16),
        torch.randn(*layout, block_size, work.head_dim, dtype=torch.bfloat16),
    )
    tables = torch.randperm(shape.num_blocks).int().view(work.rows, blocks).contiguous()
    starts = torch.arange(work.rows + 1).int() * work.queries
    nothing = torch.zeros(int(starts[-1]), dtype=torch.int32)
    contexts = torch.full((work.rows,), work.context, dtype=torch.int32)
    batch = Batch(nothing, nothing, nothing, starts, contexts, tables, nothing[:0])
    heads = work.kv_heads * work.group
    attention = AttentionShape(heads, work.kv_heads, work.head_dim, work.head_dim**-0.5, None)
    arena = attention_arena(torch.randn(work.rows * work.queries, heads * work.head_dim))
    layers = list(range(shape.num_layers))
    seconds = best_seconds(lambda: run_attention(engine, arena, layers, attention, batch, cache), repeats)
    return seconds / shape.num_layers


def torch_seconds(work: Workload, repeats: int) -> float:
    heads, dtype = (work.kv_heads, torch.bfloat16) if work.queries == 1 else (work.kv_heads * work.group, torch.float32)
    queries = work.group if work.queries == 1 else work.queries
    q = torch.randn(work.rows, heads, queries, work.head_dim, dtype=dtype)
    keys = torch.randn(work.num_layers, work.rows, heads, work.context, work.head_dim, dtype=dtype)
    values = torch.randn_like(keys)

    def all_layers() -> None:
        for k, v in zip(keys, values, strict=True):
            scaled_dot_product_attention(q, k, v, is_causal=work.queries > 1)

    return best_seconds(all_layers, repeats) / work.num_layers


def measure(isas: list[Isa], settings: argparse.Namespace) -> Iterator[Line]:
    """The workloads asked for, on each instruction set and on torch, all with the same number of threads."""

    def line(name: str, work: Workload, kernel: str, seconds: float) -> Line:
        return Line(name, kernel, seconds, work.cache_bytes / seconds / 1e9, work.flops / seconds / 1e9)

    torch.set_num_threads(settings.threads)
    for name, work in WORKLOADS.items():
        if settings.only not in name:
            continue
        yield line(name, work, "torch sdpa", torch_seconds(work, settings.repeats))
        for isa in isas:
            seconds = native_seconds(work, Engine(settings.threads, isa), settings.block_size, settings.repeats)
            yield line(name, work, f"native {isa.name.lower()}", seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--block-size", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default="", help="workloads whose name has this in it")
    parser.add_argument("--json", help="also write the lines to this file")
    settings = parser.parse_args()
    isas = [isa for isa in available_isas() if isa <= Isa.AVX512]
    lines = []
    for line in measure(isas, settings):
        lines.append(line)
        rates = f"{line.gigabytes_per_second:7.1f} GB/s {line.gigaflops:8.1f} GFLOP/s"
        print(f"{line.workload:24} {line.kernel:14} {line.seconds * 1e6:10.1f} us {rates}", flush=True)
    if settings.json:
        with open(settings.json, "w", encoding="utf-8") as file:
            json.dump([{name: getattr(line, name) for name in Line.__slots__} for line in lines], file, indent=1)


if __name__ == "__main__":
    main()
