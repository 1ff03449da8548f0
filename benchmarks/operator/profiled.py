"""Runs the operator under a sampling profiler: every 10 ms the stack of each thread that is at work.

    python benchmarks/operator/profiled.py OUT

At the end OUT has, per thread, functions by their own samples and by those with what they call.
"""

import collections
import sys
import threading
import time
from pathlib import Path
from types import CodeType, FrameType

from octavo_operator.__main__ import main

PERIOD_SECONDS = 0.01
IDLE = frozenset({"select", "wait", "_worker"})  # innermost functions of a thread that waits
LINES = 60


class Sampler:
    """Counts until the process ends."""

    def __init__(self) -> None:
        self.own: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.whole: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        self.samples = 0

    def run(self) -> None:
        """In a thread."""
        own = threading.get_ident()
        while True:
            time.sleep(PERIOD_SECONDS)
            self.samples += 1
            names = {thread.ident: thread.name for thread in threading.enumerate()}
            for ident, frame in sys._current_frames().items():
                if ident != own and frame.f_code.co_name not in IDLE:
                    self._count(names.get(ident, "?"), frame)

    def _count(self, thread: str, frame: FrameType) -> None:
        self.own[thread][_name(frame.f_code)] += 1
        seen: set[str] = set()
        at: FrameType | None = frame
        while at is not None:
            seen.add(_name(at.f_code))
            at = at.f_back
        self.whole[thread].update(seen)

    def report(self) -> str:
        """Percent of all samples."""
        lines = [f"{self.samples} samples"]
        for thread in self.own:
            lines += ["", f"{thread}: {sum(self.own[thread].values())} at work"]
            for title, counts in (("own", self.own[thread]), ("whole", self.whole[thread])):
                lines.append(f"  {title}")
                lines += [f"  {100 * count / self.samples:6.2f} %  {name}" for name, count in counts.most_common(LINES)]
        return "\n".join(lines) + "\n"


def _name(code: CodeType) -> str:
    path = "/".join(Path(code.co_filename).parts[-2:])
    return f"{path}:{code.co_firstlineno} {code.co_qualname}"


if __name__ == "__main__":
    sampler = Sampler()
    threading.Thread(target=sampler.run, daemon=True).start()
    status = main()
    Path(sys.argv[1]).write_text(sampler.report())
    sys.exit(status)
