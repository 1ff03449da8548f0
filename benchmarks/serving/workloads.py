"""The five fixed workloads: token-id prompts and output lengths, the same for every server and every run.

A workload is drawn from one seeded generator, so two runs of the same name do the same work token for token; prompts
are random ids and every answer has a fixed length, so a server wins by speed alone and never by stopping early. The
draws, their order and the seed are a contract: figures of different dates compare only while they stay.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

SEED = 7
TOKEN_IDS = range(100, 40_000)  # ordinary tokens of any vocabulary over 40,000; below 100 sit the special ones


@dataclass(frozen=True, slots=True)
class Call:
    """One request: its prompt, and how many tokens it must answer with."""

    prompt: list[int]
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Workload:
    concurrency: int
    calls: list[Call]

    @property
    def longest(self) -> int:
        """Tokens of context that the longest call ends with."""
        return max(len(call.prompt) + call.output_tokens for call in self.calls)


def make_workload(name: str) -> Workload:
    return WORKLOADS[name](Random(SEED))


def _tokens(random: Random, length: int) -> list[int]:
    return [random.randrange(TOKEN_IDS.start, TOKEN_IDS.stop) for _ in range(length)]


def _single(random: Random) -> Workload:
    """One caller at a time: how fast one answer streams."""
    return Workload(1, [Call(_tokens(random, 128), 128) for _ in range(3)])


def _batch32(random: Random) -> Workload:
    """Thirty-two equal callers, two waves: how well decoding batches."""
    return Workload(32, [Call(_tokens(random, 128), 128) for _ in range(64)])


def _mixed32(random: Random) -> Workload:
    """Log-normal lengths, as chats have them: how well unequal sequences share a step."""
    calls = []
    for _ in range(96):
        prompt_length = _log_normal(random, 4.6, 16, 768)
        output_tokens = _log_normal(random, 4.2, 8, 384)
        calls.append(Call(_tokens(random, prompt_length), output_tokens))
    return Workload(32, calls)


def _prefix(random: Random) -> Workload:
    """One 1,024-token beginning under every prompt: what the prefix cache saves."""
    shared = _tokens(random, 1024)
    return Workload(16, [Call(shared + _tokens(random, 32), 32) for _ in range(48)])


def _long(random: Random) -> Workload:
    """Prompts of 3,000 tokens: prefill, and decoding over a long context."""
    return Workload(4, [Call(_tokens(random, 3000), 64) for _ in range(8)])


def _log_normal(random: Random, mu: float, low: int, high: int) -> int:
    return min(high, max(low, int(random.lognormvariate(mu, 0.9))))


WORKLOADS: dict[str, Callable[[Random], Workload]] = {
    "single": _single,
    "batch32": _batch32,
    "mixed32": _mixed32,
    "prefix": _prefix,
    "long": _long,
}
