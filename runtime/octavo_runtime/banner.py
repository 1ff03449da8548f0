"""What `octavo serve` shows a person: a progress bar while loading, then the URL and a command to try.

Writes to standard error; a terminal gets the bar, anything else a log line per phase. Knows the settings and the engine's
messages, nothing else.
"""

import json
import logging
import shlex
import sys

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from octavo_runtime.engine.messages import EngineReady, LoadProgress
from octavo_runtime.settings import Settings

logger = logging.getLogger(__name__)

GIB = 1 << 30


class Banner:
    """One per server start."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._console = Console(stderr=True)
        self._url = ""
        self._phase = ""
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def listening(self, port: int, *, tls: bool) -> None:
        """Requests are refused until the engine is ready, probes are answered."""
        host = self._settings.server.host
        shown = "localhost" if host in ("0.0.0.0", "::", "") else f"[{host}]" if ":" in host else host
        self._url = f"{'https' if tls else 'http'}://{shown}:{port}"
        logger.info("listening on %s, loading the model", self._url)

    def progress(self, progress: LoadProgress) -> None:
        """One step of the engine's start."""
        if not self._console.is_terminal:
            if progress.phase != self._phase:
                self._phase = progress.phase
                logger.info("loading: %s", progress.phase)
            return
        if self._bar is None:
            columns = (TextColumn("{task.description:<8}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("weights", total=None)
            self._bar.start()
        if self._task is not None:
            total = progress.total_bytes or None
            self._bar.update(self._task, description=progress.phase, completed=progress.done_bytes, total=total)

    def ready(self, ready: EngineReady, model_name: str, *, with_key: bool) -> None:
        """The server answers now; `with_key`: it asks for an API key."""
        if self._bar is not None:
            self._bar.stop()
        tokens = ready.num_blocks * ready.block_size
        logger.info(
            "ready in %.1f s: %s, %s on the %s backend, weights %.2f GiB, cache %.2f GiB (%d tokens), context %d tokens",
            sum(ready.timings.values()), model_name, ready.dtype, ready.backend,
            ready.weight_bytes / GIB, ready.cache_bytes / GIB, tokens, ready.max_model_len,
        )  # fmt: skip
        if not self._settings.log.as_json:
            self._invite(model_name, with_key)

    def _invite(self, model_name: str, with_key: bool) -> None:
        """The URL and a command that can be pasted."""
        question = {"role": "user", "content": "What is the capital of France?"}
        body = {"model": model_name, "messages": [question], "temperature": 0}
        key = ' -H "Authorization: Bearer $KEY"' if with_key else ""
        sys.stderr.write(
            f"\nOctavo serves {model_name} at {self._url}\n\n"
            f"  curl {self._url}/v1/chat/completions -H 'Content-Type: application/json'{key} \\\n"
            f"    -d {shlex.quote(json.dumps(body))}\n\n"
        )
        sys.stderr.flush()
