"""Drive one OpenAI-compatible server with one workload and print one JSON line of figures.

    python -m benchmarks.serving.load --url http://127.0.0.1:8000 --model NAME --workload mixed32

Every call streams /v1/completions with ignore_eos at temperature 0, so every server generates the same number of
tokens. It knows nothing of how the server was started; `compare` runs it in a process of its own, once per workload.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp
from benchmarks.serving.workloads import WORKLOADS, Call, Workload, make_workload

WARM_UP = 20, 4  # tokens in and out of the one call that is not measured
CALL_TIMEOUT_S = 1200
SILENCE_TIMEOUT_S = 300  # a server that died with its connections open is not waited for


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call came to: its times in seconds, or the error that ended it."""

    wanted: int
    tokens: int = 0
    ttft: float = 0.0
    e2e: float = 0.0
    error: str | None = None

    @property
    def tpot(self) -> float:
        """Seconds between two tokens, the first one excluded."""
        return (self.e2e - self.ttft) / max(1, self.tokens - 1)


@dataclass(frozen=True, slots=True)
class Target:
    url: str
    model: str


async def run_workload(target: Target, workload: Workload) -> tuple[list[Outcome], float]:
    """Outcomes of all calls, and the seconds from the first call's start to the last one's end."""
    gate = asyncio.Semaphore(workload.concurrency)
    timeout = aiohttp.ClientTimeout(total=CALL_TIMEOUT_S, sock_read=SILENCE_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout, connector=aiohttp.TCPConnector(limit=0)) as session:
        prompt_length, output_tokens = WARM_UP
        await complete(session, target, Call(workload.calls[0].prompt[:prompt_length], output_tokens), gate)
        started = time.perf_counter()
        outcomes = await asyncio.gather(*(complete(session, target, call, gate) for call in workload.calls))
        return list(outcomes), time.perf_counter() - started


async def complete(session: aiohttp.ClientSession, target: Target, call: Call, gate: asyncio.Semaphore) -> Outcome:
    body = {
        "model": target.model,
        "prompt": call.prompt,
        "max_tokens": call.output_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    async with gate:
        started = time.perf_counter()
        try:
            async with session.post(f"{target.url}/v1/completions", json=body) as response:
                if response.status != 200:
                    reason = (await response.text())[:200]
                    return Outcome(call.output_tokens, error=f"{response.status} {reason}")
                return await _read_stream(response, call, started)
        except (aiohttp.ClientError, TimeoutError, json.JSONDecodeError) as failure:
            return Outcome(call.output_tokens, error=f"{type(failure).__name__}: {failure}")


async def _read_stream(response: aiohttp.ClientResponse, call: Call, started: float) -> Outcome:
    """Follow server-sent events to [DONE]: when text first and last came, and the token count that `usage` gives."""
    first = last = None
    tokens = 0
    async for line in response.content:
        if not line.startswith(b"data:"):
            continue
        data = line.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            break
        event = json.loads(data)
        if "error" in event:
            return Outcome(call.output_tokens, error=str(event["error"])[:200])
        if usage := event.get("usage"):
            tokens = usage["completion_tokens"]
        if event.get("choices"):
            last = time.perf_counter()
            first = first or last
    if first is None or last is None:
        return Outcome(call.output_tokens, error="the stream ended without a token")
    return Outcome(call.output_tokens, tokens, first - started, last - started)


def summarize(workload: str, label: str, outcomes: Sequence[Outcome], seconds: float) -> dict[str, object]:
    done = [outcome for outcome in outcomes if outcome.error is None]
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    ttft = [outcome.ttft for outcome in done]
    return {
        "workload": workload,
        "label": label,
        "n": len(outcomes),
        "errors": len(errors),
        "short": sum(outcome.tokens != outcome.wanted for outcome in done),
        "sec": round(seconds, 2),
        "out_tok_s": round(sum(outcome.tokens for outcome in done) / seconds, 1),
        "ttft_p50": quantile(ttft, 0.5),
        "ttft_p90": quantile(ttft, 0.9),
        "tpot_p50": quantile([outcome.tpot for outcome in done], 0.5),
        "e2e_p50": quantile([outcome.e2e for outcome in done], 0.5),
        "err": errors[:1],
    }


def quantile(values: Sequence[float], part: float) -> float | None:
    """The value at that part of the sorted list; None of an empty one."""
    if not values:
        return None
    return round(sorted(values)[min(len(values) - 1, int(part * len(values)))], 4)


def main() -> None:
    parser = argparse.ArgumentParser(description="Drive one OpenAI-compatible server with one fixed workload.")
    parser.add_argument("--url", default="http://127.0.0.1:8000", help="server, without /v1 (default: %(default)s)")
    parser.add_argument("--model", required=True, help="model name to send, as /v1/models lists it")
    parser.add_argument("--workload", default="mixed32", choices=WORKLOADS)
    parser.add_argument("--label", default="", help="kept in the line: server, round, what was changed")
    arguments = parser.parse_args()
    target = Target(arguments.url.rstrip("/"), arguments.model)
    outcomes, seconds = asyncio.run(run_workload(target, make_workload(arguments.workload)))
    print(json.dumps(summarize(arguments.workload, arguments.label, outcomes, seconds)))


if __name__ == "__main__":
    main()
