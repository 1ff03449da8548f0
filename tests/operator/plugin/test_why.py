"""`why` leads from the resource to the root cause in a few lines, and ends with what to do."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from octavo_operator import names
from octavo_operator.api import parse
from octavo_operator.observed import ClusterView, Observed
from octavo_operator.plugin.cluster import Cluster
from octavo_operator.plugin.why import why
from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding
from octavo_operator.status.judge import judge
from octavo_operator.status.report import report
from octavo_operator.status.situation import Situation


async def test_a_crash_is_traced_to_the_runtimes_own_words(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    status = {"phase": "Failed", "Stalled": "True", "Reconciling": "False"}
    told = samples.deployment(reason="KVCacheTooSmall", message="Pod x: Too small. Lower it.", **status)
    pod = samples.serving_pod(
        status=samples.crashing("KVCacheTooSmall", "The largest --max-model-len that fits is 2048.")
    )
    put_all(told, pod)
    assert await why(cluster, "smollm", terminal.console) == 1
    assert terminal.text.splitlines() == [
        "LLMDeployment team/smollm: Failed, 0/1 ready",
        "└── revision 1a2b3c4d5e",
        "    └── pod smollm-1a2b3c4d5e-x7k2p on node octavo-1",
        "        └── container octavo: exit code 1, restarted 3 times",
        "            └── KVCacheTooSmall: The largest --max-model-len that fits is 2048.",
        "                It was restarted 3 times.",
        "What to do: Lower engine.maxModelLen to the number in the message (or set it to",
        "auto), or give more memory.",
    ]


async def test_a_cause_above_the_pods_stands_by_itself(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    message = "org/smollm has no revision v9. Set model.revision to one that exists, such as main."
    told = samples.deployment(reason="RevisionNotFound", message=message, phase="Degraded", ready="1/1")
    put_all(told, samples.serving_pod(status=samples.running()))
    assert await why(cluster, "smollm", terminal.console) == 1
    assert terminal.text.splitlines() == [
        "LLMDeployment team/smollm: Degraded, 1/1 ready",
        "├── RevisionNotFound: org/smollm has no revision v9.",
    ] or terminal.text.splitlines() == [
        "LLMDeployment team/smollm: Degraded, 1/1 ready",
        "├── RevisionNotFound: org/smollm has no revision v9.",
        "└── revision 1a2b3c4d5e",
        "    └── 1 pod ready",
        "What to do: Set model.revision to one that exists, such as main.",
    ]


POD = "smollm-1a2b3c4d5e-x7k2p"


async def test_a_loading_pod_has_one_statement_the_furthest(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    told = samples.deployment(message=f"Pod {POD}: Loading the weights: 42 % of 270.0 MiB. (1 pod more like it.)")
    other = samples.serving_pod("smollm-1a2b3c4d5e-zzzzz", samples.running("False"))
    put_all(told, samples.serving_pod(POD, samples.running("False")), other)
    assert await why(cluster, "smollm", terminal.console) == 1
    assert terminal.text.splitlines() == [
        "LLMDeployment team/smollm: Loading, 0/1 ready",
        "└── revision 1a2b3c4d5e",
        f"    ├── pod {POD} on node octavo-1",
        "    │   └── Loading: Loading the weights: 42 % of 270.0 MiB.",
        "    └── pod smollm-1a2b3c4d5e-zzzzz on node octavo-1",
        "        └── Starting: Its container runs and is not ready yet.",
        "What to do: Nothing: it goes on by itself.",
    ]


@pytest.mark.parametrize("reason", ["Starting", "ImagePulling", "WaitingForGPU", "Downloading", "Loading", "WarmingUp"])
@pytest.mark.parametrize("state", ["running", "crashing", "ready", "unmade"])
async def test_whatever_was_reported_before_a_pod_is_told_of_once(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None], reason: str, state: str
) -> None:
    statuses = {
        "running": samples.running("False"),
        "crashing": samples.crashing("ModelCorrupt", "The weights are cut off."),
        "ready": samples.running("True"),
        "unmade": {"phase": "Pending"},
    }
    pod = samples.serving_pod(POD, statuses[state])
    put_all(samples.deployment(reason=reason, message=f"Pod {POD}: It is so."), pod)
    await why(cluster, "smollm", terminal.console)
    statements = re.findall(r"── (\w+): ", terminal.text)
    assert len(statements) == (0 if state == "ready" else 1), terminal.text


async def test_the_remedy_is_that_of_what_is_told(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    """The pod has crashed since the operator last reported."""
    crashed = samples.serving_pod(POD, samples.crashing("ModelCorrupt", "The weights are cut off."))
    put_all(samples.deployment(message=f"Pod {POD}: Loading the weights."), crashed)
    await why(cluster, "smollm", terminal.console)
    assert "ModelCorrupt: The weights are cut off." in terminal.text
    assert "What to do: Upload it again" in terminal.text


async def test_advice_of_the_plan_is_the_only_advice(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    advice = "Raise resources.memory to 5Gi."
    failure = {"reason": "WeightsTooLarge", "message": "They need 4 GiB.", "remedy": advice}
    told = samples.deployment(
        reason="WeightsTooLarge", message=f"They need 4 GiB. {advice}", phase="Failed", lastFailure=failure
    )
    put_all(told)
    await why(cluster, "smollm", terminal.console)
    assert terminal.text.splitlines()[1:] == [
        "└── WeightsTooLarge: They need 4 GiB.",
        f"What to do: {advice}",
    ]


async def test_that_a_revision_was_given_up_is_told_beside_the_pod_that_it_was_given_up_for(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    unscheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "No node suits."}
    waiting = samples.serving_pod(POD, {"phase": "Pending", "conditions": [unscheduled]})
    del waiting["spec"]["nodeName"]
    told = "Revision 1a2b3c4d5e was given up. No further pod became ready within 900 seconds: No node suits."
    put_all(samples.deployment(reason="WaitingForNode", message=told, phase="Failed"), waiting)
    await why(cluster, "smollm", terminal.console)
    text = " ".join(terminal.text.replace("│", " ").split())
    assert "WaitingForNode: Revision 1a2b3c4d5e was given up." in text
    assert text.count("WaitingForNode: ") == 2
    assert text.count("No node suits.") == 1


def leaving(samples: Any, name: str, how: str) -> Any:
    """A pod that is ready and takes no new requests."""
    pod = samples.serving_pod(name, samples.running())
    if how == "deleted":
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    else:
        pod["metadata"]["annotations"] = {names.DRAIN_STARTED_AT: "2026-01-01T00:00:00Z"}
    return pod


@pytest.mark.parametrize("how", ["deleted", "drained"])
@pytest.mark.parametrize(
    "state",
    [
        {"reason": "Scaling", "phase": "Scheduling"},
        {"reason": "Suspended", "phase": "Suspended", "ready": "0/0"},
        {"reason": "Serving", "phase": "Ready", "ready": "1/1", "Ready": "True"},
    ],
)
async def test_a_pod_that_goes_is_told_as_such_and_not_as_ready(
    cluster: Cluster, pipe: Any, samples: Any, put_all: Callable[..., None], how: str, state: dict[str, str]
) -> None:
    put_all(samples.deployment(message="It is so.", **state), leaving(samples, POD, how))
    await why(cluster, "smollm", pipe.console)
    assert f"1 pod goes once its streams are finished: {POD}" in pipe.text
    assert "pod ready" not in pipe.text


async def test_of_many_pods_that_go_some_are_named_beside_those_that_serve(
    cluster: Cluster, pipe: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    going = [leaving(samples, f"smollm-{number}", "drained") for number in range(5)]
    put_all(*going, samples.serving_pod(POD, samples.running()))
    await why(cluster, "smollm", pipe.console)
    assert "5 pods go once their streams are finished: smollm-0, smollm-1, smollm-2 and 2 more" in pipe.text
    assert "1 pod ready" in pipe.text


@pytest.mark.parametrize(
    ("revisions", "older"), [({}, False), ({"target": {}}, False), ({"target": {"hash": "other"}}, True)]
)
async def test_a_revision_is_older_than_a_target_only(
    cluster: Cluster, pipe: Any, samples: Any, put_all: Callable[..., None], revisions: Any, older: bool
) -> None:
    put_all(samples.deployment(revisions=revisions), samples.serving_pod(POD, {"phase": "Pending"}))
    await why(cluster, "smollm", pipe.console)
    assert ("older, being replaced" in pipe.text) is older


async def test_in_a_pipe_each_statement_is_one_line(
    cluster: Cluster, pipe: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    words = "A very long sentence about what happened.\n" * 20
    put_all(
        samples.deployment(reason="CrashLoop", message="x"),
        samples.serving_pod(POD, samples.crashing("Internal", words)),
    )
    await why(cluster, "smollm", pipe.console)
    lines = pipe.text.splitlines()
    assert [line for line in lines if POD in line] == [f"    └── pod {POD} on node octavo-1"]
    assert all("──" in line or not line.startswith(" ") for line in lines)


@pytest.mark.parametrize("length", [10, 850, 930, 990, 1010, 3000])
@pytest.mark.parametrize("advice", ["Raise resources.memory to 5Gi.", "Raise  resources.memory\nto 5Gi."])
async def test_however_long_a_message_is_there_is_one_advice(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None], length: int, advice: str
) -> None:
    """As the operator writes it."""
    raw = samples.deployment()
    refused = Finding(Reason.WEIGHTS_TOO_LARGE, ("They need 4 GiB. " * 300)[:length], advice=advice)
    situation = Situation(observed=Observed(0.0, parse(raw), ClusterView()), desired=1, findings=(refused,))
    put_all({**raw, "status": report(situation, judge(situation))})
    await why(cluster, "smollm", terminal.console)
    assert terminal.text.count("Raise resources.memory") == 1
    assert terminal.text.splitlines()[-1] == "What to do: Raise resources.memory to 5Gi."


async def test_progress_needs_nothing(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    put_all(samples.serving_pod(status=samples.running("False")))
    assert await why(cluster, "smollm", terminal.console) == 1
    assert terminal.text.splitlines()[-1] == "What to do: Nothing: it goes on by itself."


async def test_a_serving_model_is_a_short_answer(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    message = "1 of 1 replicas serve revision 1a2b3c4d5e."
    put_all(samples.deployment(reason="Serving", message=message, phase="Ready", ready="1/1", Ready="True"))
    assert await why(cluster, "smollm", terminal.console) == 0
    assert terminal.text.splitlines() == ["LLMDeployment team/smollm: Ready, 1/1 ready", f"└── {message}"]


async def test_a_serving_model_tells_what_it_lacks(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    raw = samples.deployment(reason="Serving", message="1 of 1.", phase="Ready", ready="1/1", Ready="True")
    lack = {"type": "FeatureUnavailable", "status": "True", "reason": "FeatureUnavailable", "message": "No PodMonitor."}
    raw["status"]["conditions"].append(lack)
    put_all(raw)
    assert await why(cluster, "smollm", terminal.console) == 0
    assert "FeatureUnavailable: No PodMonitor." in terminal.text


async def test_a_suspended_model_is_no_fault(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    put_all(samples.deployment(reason="Suspended", message="spec.suspend is true.", phase="Suspended", ready="0/0"))
    assert await why(cluster, "smollm", terminal.console) == 0


async def test_an_operator_that_does_not_look_is_the_cause(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    put_all(samples.deployment(observedGeneration=0))
    assert await why(cluster, "smollm", terminal.console) == 1
    assert "has not seen generation 1 yet" in terminal.text
    assert "app.kubernetes.io/name=octavo-operator" in terminal.text


async def test_a_downloader_has_its_own_branch(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    failing = samples.crashing("DiskFull", "The claim has 1 GiB, the model needs 2.")
    put_all(samples.deployment(reason="DiskFull", message="Full."), samples.serving_pod("dl-1", failing, revision=""))
    await why(cluster, "smollm", terminal.console)
    assert "downloader" in terminal.text
    assert "The claim has 1 GiB" in terminal.text


async def test_many_pods_and_long_words_still_fit_the_terminal(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    words = "A very long sentence about what happened to this one container. " * 8
    pods = [samples.serving_pod(f"smollm-{n}", samples.crashing("Internal", words)) for n in range(4)]
    put_all(samples.deployment(reason="CrashLoop", message="x"), *pods, samples.serving_pod("ok", samples.running()))
    await why(cluster, "smollm", terminal.console)
    assert terminal.reads_well()
    assert "1 pod ready" in terminal.text


async def test_no_secret_is_printed(
    cluster: Cluster, terminal: Any, samples: Any, put_all: Callable[..., None]
) -> None:
    put_all(samples.serving_pod(status=samples.crashing("ModelAccessDenied", "401 for hf_AbCdEfGhIjKl")))
    await why(cluster, "smollm", terminal.console)
    assert "AbCdEfGhIjKl" not in terminal.text
