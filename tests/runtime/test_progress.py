"""Bars show on a terminal only, and count."""

import asyncio

import pytest

from octavo_runtime import progress
from octavo_runtime.engine.messages import LoadProgress
from octavo_runtime.progress import generation_progress, load_progress
from octavo_runtime.start_state import Phase, StartState


def test_nothing_is_written_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with generation_progress(2, shown=True) as on_step:
        assert on_step is not None
        on_step(1, 10)
    with load_progress() as on_load:
        on_load(LoadProgress(phase="weights", done_bytes=1, total_bytes=2))
    assert capfd.readouterr().err.strip() == ""


def test_hidden_bar_has_no_function() -> None:
    with generation_progress(2, shown=False) as on_step:
        assert on_step is None


def test_bar_on_a_terminal_counts(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with generation_progress(2, shown=True) as on_step:
        assert on_step is not None
        on_step(2, 10)
    assert "2/2" in capfd.readouterr().err


async def test_a_download_is_followed_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_FOLLOW_SECONDS", 0.01)
    state, shown = StartState("m"), []
    task = asyncio.create_task(progress.follow_download(state, shown.append))
    await asyncio.sleep(0.03)
    assert shown == []
    state.enter(Phase.DOWNLOADING)
    state.done_bytes, state.total_bytes = 1, 4
    while not shown:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    task.cancel()
    assert shown[0] == LoadProgress(phase="download", done_bytes=1, total_bytes=4)
