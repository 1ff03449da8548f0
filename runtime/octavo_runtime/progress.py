"""Progress bars on standard error, for fetching, loading and generating. Silent where there is no terminal."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from octavo_runtime.engine.messages import LoadProgress
from octavo_runtime.start_state import Phase, StartState

_FOLLOW_SECONDS = 0.2


@contextmanager
def generation_progress(total: int, shown: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Gives the function that takes (requests finished, tokens generated) of each step, None when nothing is shown."""
    if not shown:
        yield None
        return
    with _bar(
        MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[rate]}")
    ) as progress:
        task = progress.add_task("prompts", total=total, rate="")
        tokens = 0

        def on_step(finished: int, generated: int) -> None:
            nonlocal tokens
            tokens += generated
            seconds = progress.tasks[0].elapsed or 0.0
            rate = f"{tokens / seconds:,.0f} tok/s" if seconds > 0 else ""
            progress.update(task, advance=finished, rate=rate)

        yield on_step


@contextmanager
def load_progress() -> Iterator[Callable[[LoadProgress], None]]:
    """Gives the function that takes the worker's `LoadProgress`; the bar goes when loading is done."""
    with _bar(DownloadColumn(binary_units=True), transient=True) as progress:
        task = progress.add_task("weights", total=None)

        def on_progress(loaded: LoadProgress) -> None:
            total = loaded.total_bytes or None
            progress.update(task, description=loaded.phase, completed=loaded.done_bytes, total=total)

        yield on_progress


async def follow_download(state: StartState, show: Callable[[LoadProgress], None]) -> None:
    """For ever: shows the bytes of a download while there is one."""
    while True:
        await asyncio.sleep(_FOLLOW_SECONDS)
        if state.phase is Phase.DOWNLOADING:
            show(LoadProgress(phase="download", done_bytes=state.done_bytes, total_bytes=state.total_bytes or 0))


def _bar(*columns: ProgressColumn, transient: bool = False) -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        *columns,
        console=console,
        transient=transient,
        disable=not console.is_terminal,
    )
