"""Figures of one pod stand for all, and the pod does not change from pass to pass."""

from typing import Any

import pytest

from octavo_operator.observed import JobView
from octavo_operator.status.judge import judge
from octavo_operator.status.measurements import capacity, download, effective, measuring_pod, timings
from octavo_operator.status.report import report

CAPACITY = {
    "kv_blocks": 4096,
    "block_size": 16,
    "max_model_len": 8192,
    "max_tokens_in_cache": 65536,
    "max_concurrency_at_max_len": 8.0,
    "tokens_per_second": 311.44,
}
TIMINGS = {
    "resolve_seconds": 0.1,
    "download_seconds": None,
    "load_seconds": 1.26,
    "compile_seconds": 0.0,
    "warmup_seconds": 2,
}


def measured(build: Any, **changes: Any) -> Any:
    return build.pod(runtime=build.runtime(capacity=CAPACITY, timings=TIMINGS), **changes)


def test_the_pod_that_is_ready_for_longest_speaks(build: Any) -> None:
    young, old = build.pod("young", ready_at=build.now - 5), build.pod("old", ready_at=build.now - 500)
    silent = build.pod("silent", ready_at=build.now - 900, runtime=None)
    assert measuring_pod([young, old, silent]) is old
    assert measuring_pod([silent]) is None


def test_capacity_has_the_names_of_the_crd(build: Any) -> None:
    assert capacity(build.situation(build.revision(build.new, measured(build)))) == {
        "kvBlocks": 4096,
        "blockSize": 16,
        "maxModelLen": 8192,
        "maxTokensInCache": 65536,
        "maxConcurrencyAtMaxLen": 8,
        "tokensPerSecond": 311.4,
    }


def test_capacity_is_unknown_before_the_warm_up(build: Any) -> None:
    assert capacity(build.situation(build.revision(build.new, build.pod(runtime=build.runtime(capacity=None))))) == {}


@pytest.mark.parametrize(
    ("asked", "pod", "target", "told"),
    [
        ("auto", "measured", "bbbbbbbbbb", 8192),
        (4096, "measured", "bbbbbbbbbb", 4096),  # what the spec says stays what it says
        ("auto", "starting", "bbbbbbbbbb", "auto"),
        ("auto", "measured", "aaaaaaaaaa", "auto"),  # a pod of another revision knows nothing of this one
    ],
)
def test_a_context_left_open_is_told_in_the_pass_that_tells_the_capacity(
    build: Any, asked: Any, pod: str, target: str, told: Any
) -> None:
    given = measured(build, revision=target) if pod == "measured" else build.starting(revision=target)
    found = build.situation(build.revision(target, given), target=target, effective={"maxModelLen": asked})
    status = report(found, judge(found))
    assert effective(found)["maxModelLen"] == status["effective"]["maxModelLen"] == told
    assert ("capacity" in status) is (pod == "measured")


def test_timings_join_the_pods_times_and_the_runtimes(build: Any) -> None:
    assert timings(build.situation(build.revision(build.new, measured(build)))) == {
        "scheduleSeconds": 2,
        "imagePullSeconds": 8,
        "loadSeconds": 1.3,
        "compileSeconds": 0,
        "warmupSeconds": 2,
    }


def test_a_restarted_container_says_nothing_about_the_image(build: Any) -> None:
    pod = measured(build, container=build.container(restarts=2))
    assert "imagePullSeconds" not in timings(build.situation(build.revision(build.new, pod)))


def test_no_serving_pod_has_no_timings(build: Any) -> None:
    assert timings(build.situation(build.revision(build.new, build.starting()))) == {}


def test_download_moves_in_whole_percent(build: Any) -> None:
    progress = {"done_bytes": 123_456, "total_bytes": 1_000_000}
    pod = build.pod(ready=False, runtime=build.runtime("Downloading", progress=progress))
    assert download(build.situation(build.revision(build.new, pod))) == {"bytesDone": 120_000, "bytesTotal": 1_000_000}


def test_the_downloader_comes_before_the_pods(build: Any) -> None:
    progress = {"done_bytes": 50, "total_bytes": 100}
    pod = build.pod(revision="", ready=False, runtime=build.runtime("Downloading", progress=progress))
    job = JobView("smollm-dl-1", 1, 0, 0, complete=False, gave_up=False, pods=(pod,))
    assert download(build.situation(download=job)) == {"bytesDone": 50, "bytesTotal": 100}


def test_nothing_is_downloaded_while_pods_serve(build: Any) -> None:
    assert download(build.situation()) == {}
