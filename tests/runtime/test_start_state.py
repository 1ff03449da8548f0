"""Phases, their times and bytes, and the sentence of a start that took too long."""

from octavo_runtime.engine.messages import LoadProgress
from octavo_runtime.errors import StartCause
from octavo_runtime.start_state import ModelFacts, Phase, Problem, StartState


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_every_phase_has_its_time_and_its_own_bytes() -> None:
    clock = Clock()
    state = StartState("m", clock)
    clock.now = 1.0
    state.enter(Phase.DOWNLOADING)
    state.done_bytes, state.total_bytes = 5, 9
    state.problem = Problem(StartCause.MODEL_RATE_LIMITED, "why")
    clock.now = 4.0
    state.found(ModelFacts("m", "abc", "llama", None, 9))
    assert (state.phase, state.done_bytes, state.total_bytes, state.problem) == (Phase.LOADING, 0, None, None)
    state.loading(LoadProgress(phase="weights", done_bytes=3, total_bytes=9))
    assert (state.done_bytes, state.total_bytes) == (3, 9)
    clock.now = 9.0
    state.loading(LoadProgress(phase="cache"))
    clock.now = 9.5
    state.loading(LoadProgress(phase="warm-up"))
    assert state.phase is Phase.WARMING_UP
    state.ready({"cache": 0.5, "warm-up": 0.25}, "LlamaForCausalLM")
    assert state.timings == {
        "resolve_seconds": 1.0,
        "download_seconds": 3.0,
        "load_seconds": 5.0,
        "compile_seconds": 0.5,
        "warmup_seconds": 0.25,
    }
    assert state.model == ModelFacts("m", "abc", "LlamaForCausalLM", None, 9)


def test_a_model_that_was_here_took_no_time_to_download() -> None:
    state = StartState("m", Clock())
    state.found(ModelFacts("m"))
    assert state.timings["download_seconds"] == 0.0


def test_where_it_is_can_be_said() -> None:
    state = StartState("m", Clock())
    assert state.describe() == "Resolving"
    state.enter(Phase.DOWNLOADING)
    state.done_bytes = 2048
    assert state.describe() == "Downloading, 2.0 KiB done"
    state.total_bytes = 3 << 20
    assert state.describe() == "Downloading, 2.0 KiB of 3.0 MiB done"


def test_too_late_tells_what_was_in_the_way_or_where_it_was() -> None:
    state = StartState("org/tiny", Clock())
    state.enter(Phase.DOWNLOADING)
    state.done_bytes, state.total_bytes = 1024, 2048
    error = state.too_late(600)
    assert error.cause is StartCause.STARTUP_DEADLINE_EXCEEDED
    assert "within 600 s (--startup-timeout); it was at: Downloading, 1.0 KiB of 2.0 KiB done." in str(error)
    state.problem = Problem(StartCause.MODEL_RATE_LIMITED, "The hub limits the rate.")
    error = state.too_late(600)
    assert (error.cause, str(error)) == (StartCause.MODEL_RATE_LIMITED, "The hub limits the rate.")
