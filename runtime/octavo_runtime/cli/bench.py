"""`octavo bench`: throughput and latency, of the engine in this process or of a running server (--url).

Prompts are random tokens of one length, outputs have one length, so that runs can be compared.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from statistics import median, quantiles

from octavo_runtime.cli.flags import Parser, add_settings, settings_of
from octavo_runtime.cli.http_client import Client
from octavo_runtime.cli.verb import Arguments
from octavo_runtime.engine.sampling_params import SamplingParams

_GROUPS = ("model", "device", "cache", "scheduler", "log")
Figures = dict[str, float]


def add_arguments(parser: Parser) -> None:
    """The workload, and the engine's settings."""
    parser.usage = "octavo bench MODEL [flags]\n       octavo bench --url URL [flags]"
    add_settings(parser, _GROUPS)
    group = parser.add_argument_group("Workload")
    group.add_argument("--num-prompts", type=int, default=32, metavar="N", help="requests (default: 32)")
    group.add_argument("--input-len", type=int, default=128, metavar="N", help="tokens in a prompt (default: 128)")
    group.add_argument("--output-len", type=int, default=128, metavar="N", help="tokens generated (default: 128)")
    group.add_argument("--max-concurrency", type=int, default=32, metavar="N", help="with --url (default: 32)")
    group.add_argument("--url", help="a running server to measure, instead of a model loaded here")
    group.add_argument("--api-key", dest="key", help="key for --url")
    group.add_argument("--output-json", type=Path, metavar="FILE", help="write the figures there too")


def run(arguments: Arguments) -> int:
    """Measure and print; the exit status."""
    parsed = arguments.parsed
    figures = _online(parsed) if parsed.url else _offline(arguments)
    for name, value in figures.items():
        sys.stdout.write(f"{name:<24}{value:,.3f}\n")
    if parsed.output_json:
        parsed.output_json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0


def _offline(arguments: Arguments) -> Figures:
    parsed = arguments.parsed
    settings = settings_of(parsed)
    arguments.begin_logging(settings, quiet=True)
    from octavo_runtime.llm import LLM

    llm = LLM.from_settings(settings)
    prompts = _prompts(parsed, llm.get_tokenizer().vocab_size)
    params = SamplingParams(temperature=0.0, max_tokens=parsed.output_len, ignore_eos=True)
    llm.generate(prompts[:1], params, use_tqdm=False)
    started = time.perf_counter()
    outputs = llm.generate(prompts, params)
    seconds = time.perf_counter() - started
    return _rates(parsed, seconds, sum(len(output.outputs[0].token_ids) for output in outputs))


def _online(parsed: argparse.Namespace) -> Figures:
    client = Client(parsed.url, parsed.key)
    model = getattr(parsed, "model", None) or parsed.model_positional or client.model_name()

    def one(prompt: list[int]) -> list[float]:
        """Seconds from sending to each event with text."""
        body = {"model": model, "prompt": prompt, "max_tokens": parsed.output_len, "temperature": 0, "ignore_eos": True}
        started = time.perf_counter()
        events = client.stream("/v1/completions", body)
        return [time.perf_counter() - started for event in events if event["choices"]]

    prompts = _prompts(parsed, vocab_size=10_000)  # every vocabulary has that many
    one(prompts[0])
    started = time.perf_counter()
    with ThreadPoolExecutor(parsed.max_concurrency) as pool:
        times = list(pool.map(one, prompts))
    seconds = time.perf_counter() - started
    return _rates(parsed, seconds, parsed.output_len * len(prompts)) | _latencies(times)


def _prompts(parsed: argparse.Namespace, vocab_size: int) -> list[list[int]]:
    """Token ids above the special ones, the same in every run."""
    source = random.Random(0)
    lowest = min(1000, vocab_size // 2)
    return [[source.randrange(lowest, vocab_size) for _ in range(parsed.input_len)] for _ in range(parsed.num_prompts)]


def _rates(parsed: argparse.Namespace, seconds: float, generated: int) -> Figures:
    requests = parsed.num_prompts
    return {
        "seconds": seconds,
        "requests_per_s": requests / seconds,
        "output_tokens_per_s": generated / seconds,
        "total_tokens_per_s": (generated + requests * parsed.input_len) / seconds,
    }


def _latencies(times: Sequence[Sequence[float]]) -> Figures:
    """Time to the first token, between tokens, and of whole requests, in milliseconds."""
    first = [one[0] for one in times if one]
    between = [later - earlier for one in times for earlier, later in pairwise(one)]
    whole = [one[-1] for one in times if one]
    figures: Figures = {}
    for name, values in (("ttft", first), ("itl", between), ("e2e", whole)):
        if len(values) > 1:
            figures |= {f"{name}_p50_ms": median(values) * 1e3, f"{name}_p99_ms": quantiles(values, n=100)[98] * 1e3}
    return figures
