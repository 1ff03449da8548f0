"""Why a container ended, whether that will heal, and how long it is worth telling."""

import json
from typing import Any

import pytest

from octavo_operator.observed import ContainerView
from octavo_operator.reasons import FROM_CAUSE, Reason
from octavo_operator.status.crash import crashed, exit_text, is_recent


def told(cause: str, message: str = "What happened.") -> str:
    return json.dumps({"cause": cause, "message": message})


@pytest.mark.parametrize("cause", FROM_CAUSE)
def test_the_runtimes_own_cause_and_words_are_kept(build: Any, cause: str) -> None:
    finding = crashed(build.crashed(told(cause), loops=False), build.now)
    assert finding is not None
    assert finding.reason is FROM_CAUSE[cause]
    assert finding.message == "What happened."
    assert finding.crashed


def test_cause_stands_in_the_last_line_after_other_output(build: Any) -> None:
    finding = crashed(build.crashed("warning: something\n" + told("KVCacheTooSmall") + "\n"), build.now)
    assert finding is not None
    assert finding.reason is Reason.KV_CACHE_TOO_SMALL


def test_a_cause_of_a_newer_runtime_is_not_lost(build: Any) -> None:
    finding = crashed(build.crashed(told("SunSpots", "Bits flipped."), loops=False), build.now)
    assert finding is not None
    assert (finding.reason, finding.message) == (Reason.ENGINE_FAILED, "Bits flipped.")


def test_the_kernels_kill_wins_over_what_the_survivor_wrote(build: Any) -> None:
    pod = build.crashed(told("EngineDied"), terminated_reason="OOMKilled", exit_code=137)
    finding = crashed(pod, build.now)
    assert finding is not None
    assert finding.reason is Reason.OUT_OF_MEMORY
    assert finding.exit_code == 137


@pytest.mark.parametrize("cause", ["OutOfMemory", "EngineHung"])
def test_one_accident_heals_and_a_series_does_not(build: Any, cause: str) -> None:
    once, again = (
        crashed(build.crashed(told(cause), loops=False), build.now),
        crashed(build.crashed(told(cause)), build.now),
    )
    assert once is not None
    assert again is not None
    assert not once.blocks
    assert again.blocks


def test_what_cannot_heal_blocks_the_first_time(build: Any) -> None:
    finding = crashed(build.crashed(told("ModelCorrupt"), loops=False), build.now)
    assert finding is not None
    assert finding.blocks


def test_an_engine_that_ends_again_and_again_is_a_crash_loop(build: Any) -> None:
    finding = crashed(build.crashed(told("EngineDied", "Killed by signal 11.")), build.now)
    assert finding is not None
    assert finding.reason is Reason.CRASH_LOOP
    assert finding.message == "Killed by signal 11. It was restarted 3 times."


def test_a_rate_limited_pod_is_no_crash_loop(build: Any) -> None:
    finding = crashed(build.crashed(told("ModelRateLimited")), build.now)
    assert finding is not None
    assert not finding.blocks


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("Liveness probe failed: HTTP probe failed with statuscode: 503", Reason.ENGINE_STALLED),
        ("Startup probe failed: HTTP probe failed with statuscode: 503", Reason.STARTUP_DEADLINE_EXCEEDED),
        ("Readiness probe failed: HTTP probe failed with statuscode: 503", Reason.CRASH_LOOP),
    ],
)
@pytest.mark.parametrize("code", [0, 137, 143])
def test_a_probes_kill_is_read_from_the_events_before_it(build: Any, event: str, reason: Reason, code: int) -> None:
    finding = crashed(build.crashed(exit_code=code, events=(build.event("Unhealthy", event, age=30),)), build.now)
    assert finding is not None
    assert finding.reason is reason


def test_an_old_probe_failure_explains_nothing(build: Any) -> None:
    events = (build.event("Unhealthy", "Liveness probe failed: timeout", age=3600),)
    finding = crashed(build.crashed(exit_code=137, events=events), build.now)
    assert finding is not None
    assert finding.reason is Reason.CRASH_LOOP


def test_a_crash_of_its_own_is_not_blamed_on_a_probe(build: Any) -> None:
    events = (build.event("Unhealthy", "Startup probe failed: connection refused", age=3),)
    finding = crashed(build.crashed(exit_code=139, events=events), build.now)
    assert finding is not None
    assert "SIGSEGV" in finding.message


def test_words_without_a_cause_are_kept(build: Any) -> None:
    full = crashed(build.crashed("OSError: [Errno 28] No space left on device"), build.now)
    absent = crashed(
        build.crashed('exec: "octavo": executable file not found', terminated_reason="StartError"), build.now
    )
    assert full is not None
    assert absent is not None
    assert full.reason is Reason.DISK_FULL
    assert absent.reason is Reason.CONTAINER_REFUSED


def test_after_one_crash_the_new_start_is_the_news(build: Any) -> None:
    container = ContainerView(running_since=build.now - 5, exit_code=1, finished_at=build.now - 6, restarts=1)
    silent = build.pod(ready=False, container=container, runtime=None)
    loading = build.pod(ready=False, container=container, runtime=build.runtime("Loading"))
    assert crashed(silent, build.now) is not None
    assert crashed(loading, build.now) is None


def test_after_several_crashes_the_crash_stays_the_news_until_it_serves(build: Any) -> None:
    container = ContainerView(running_since=build.now - 90, exit_code=1, finished_at=build.now - 91, restarts=4)
    loading = build.pod(ready=False, container=container, runtime=build.runtime("Loading"))
    unready = build.pod(ready=False, container=container, runtime=build.runtime("Ready"))
    assert crashed(loading, build.now) is not None
    assert crashed(unready, build.now) is None


def test_a_pod_that_is_ready_again_has_crashed_for_one_more_minute(build: Any) -> None:
    container = ContainerView(running_since=build.now - 20, exit_code=1, finished_at=build.now - 21, restarts=1)
    pod = build.pod(container=container)
    finding = crashed(pod, build.now)
    assert finding is not None
    assert not finding.blocks
    assert is_recent(pod, build.now)
    assert crashed(pod, build.now + 40) is None


def test_a_downloader_that_is_done_has_not_crashed(build: Any) -> None:
    assert (
        crashed(
            build.starting(phase="Succeeded", container=ContainerView(exit_code=0, finished_at=build.now)), build.now
        )
        is None
    )


@pytest.mark.parametrize(
    ("code", "text"),
    [(1, "exit code 1"), (139, "exit code 139 (SIGSEGV)"), (255, "exit code 255"), (None, "an unknown exit code")],
)
def test_exit_codes_name_their_signal(code: int | None, text: str) -> None:
    assert exit_text(code) == text
