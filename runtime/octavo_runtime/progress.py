"""A progress bar on standard error: prompts done and tokens a second. Silent where there is no terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


@contextmanager
def generation_progress(total: int, shown: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Gives the function that takes (requests finished, tokens generated) of each step, None when nothing is shown."""
    if not shown:
        yield None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[rate]}"),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("prompts", total=total, rate="")
        tokens = 0

        def on_step(finished: int, generated: int) -> None:
            nonlocal tokens
            tokens += generated
            seconds = progress.tasks[0].elapsed or 0.0
            rate = f"{tokens / seconds:,.0f} tok/s" if seconds > 0 else ""
            progress.update(task, advance=finished, rate=rate)

        yield on_step
