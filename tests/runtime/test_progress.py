"""Bars show on a terminal only, and count."""

import pytest

from octavo_runtime.engine.messages import LoadProgress
from octavo_runtime.progress import generation_progress, load_progress


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
