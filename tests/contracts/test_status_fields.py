"""The status that the operator writes and the status that the kind describes are the same fields.

The API server prunes a field that the schema lacks, and the operator would write it again for ever; a field that nobody
writes would be a promise. So a status in which everything is said is compared with the schema in both directions.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from octavo_operator.api import parse
from octavo_operator.autoscaling.decisions import Change, to_status
from octavo_operator.effective import Device
from octavo_operator.model.memory_plan import MemoryPlan, PlanSource
from octavo_operator.model.memory_status import measured
from octavo_operator.model.memory_status import to_status as plan_to_status
from octavo_operator.observed import ClusterView, ContainerView, JobView, Observed, PodView, RevisionView, RuntimeView
from octavo_operator.reasons import Reason
from octavo_operator.status.conditions import ConditionType
from octavo_operator.status.finding import Finding
from octavo_operator.status.judge import judge
from octavo_operator.status.phases import Phase
from octavo_operator.status.report import report
from octavo_operator.status.situation import RolloutFacts, ScalingFacts, Situation

NOW = 1_800_000_000.0
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOLD = {
    "phase": "Ready",
    "memory": {"weights_bytes": 1, "kv_cache_bytes": 2, "activation_bytes": 3},
    "capacity": {
        "kv_blocks": 1,
        "block_size": 16,
        "max_model_len": 2048,
        "max_tokens_in_cache": 4096,
        "max_concurrency_at_max_len": 2.5,
        "tokens_per_second": 70.5,
    },
    "timings": dict.fromkeys(
        ("resolve_seconds", "download_seconds", "load_seconds", "compile_seconds", "warmup_seconds"), 1.5
    ),
}
MODEL = {
    "resolvedRevision": COMMIT,
    "bytes": 270_000_000,
    "parameters": 135_000_000,
    "architecture": "LlamaForCausalLM",
    "quantization": "fp8",
}
EFFECTIVE = {
    "device": Device.CPU.value,
    "engineArgs": ["serve"],
    "gpuMemoryUtilization": 0.9,
    "gpusPerReplica": 0,
    "image": "octavo-runtime:0.1.0",
    "maxModelLen": "auto",
    "strategy": "Auto",
}
PLAN = MemoryPlan(
    per_gpu_bytes=7,
    weights=1,
    kv_cache=1,
    activations=1,
    overhead=1,
    headroom=1,
    max_model_len_that_fits=2048,
    source=PlanSource.ESTIMATED,
)

Schema = dict[str, Any]


def pod(name: str, told: dict[str, Any], **changes: Any) -> PodView:
    base = PodView(
        name=name,
        uid=name,
        revision="aaaaaaaaaa",
        created_at=NOW - 310,
        phase="Running",
        ready=True,
        routed=True,
        drain_started_at=None,
        terminating=False,
        node="node1",
        scheduled_at=NOW - 308,
        ready_at=NOW - 200,
        container=ContainerView(running_since=NOW - 300),
        runtime=RuntimeView(at=NOW - 1, phase=told["phase"], status=told),
    )
    return replace(base, **changes)


def everything() -> Situation:
    """One pod serves, one has crashed, a downloader is under way, the metrics are lost, a rollback happened."""
    crashed = ContainerView(
        waiting_reason="CrashLoopBackOff",
        terminated_reason="Error",
        terminated_message='{"cause": "Internal", "message": "Something broke."}',
        exit_code=1,
        finished_at=NOW - 10,
        restarts=3,
    )
    downloading = {"phase": "Downloading", "progress": {"done_bytes": 5, "total_bytes": 10}}
    pods = (pod("a", TOLD), pod("b", TOLD, ready=False, ready_at=None, container=crashed, runtime=None))
    template = {"spec": {"containers": [{"name": "octavo", "image": "octavo-runtime:0.1.0"}]}}
    data = {"template": template, "model": MODEL}
    revision = RevisionView(hash="aaaaaaaaaa", number=1, data=data, replicas=2, pods=pods, started_at=NOW - 400)
    loader = pod("dl", downloading, ready=False, ready_at=None, revision="")
    job = JobView(name="dl", active=1, succeeded=0, failed=0, complete=False, gave_up=False, pods=(loader,))
    raw = {
        "metadata": {"namespace": "team", "name": "smollm", "uid": "u", "generation": 3},
        "spec": {
            "model": {"uri": "hf://org/smollm"},
            "cache": {"mode": "SharedPVC", "sharedPVC": {"size": "1Gi"}},
            "scaling": {"mode": "Auto", "auto": {"maxReplicas": 3}},
        },
    }
    return Situation(
        observed=Observed(
            now=NOW, deployment=parse(raw), cluster=ClusterView(), revisions=(revision,), downloads=(job,)
        ),
        desired=2,
        wanted="aaaaaaaaaa",
        target="aaaaaaaaaa",
        stable="aaaaaaaaaa",
        findings=(Finding(Reason.DOWNLOADING, "Half of it."),),
        model=MODEL,
        memory_plan=plan_to_status(PLAN),
        effective=EFFECTIVE,
        url="http://smollm.team.svc",
        selector="octavo.dev/deployment=smollm",
        cached_on="smollm-cache",
        download=job,
        rollout=RolloutFacts(
            strategy="Surge",
            reason="One more pod fits.",
            text="Starting.",
            done=False,
            started_at=NOW - 400,
            last_rollback={
                "from": "bbbbbbbbbb",
                "to": "aaaaaaaaaa",
                "reason": "CrashLoop",
                "at": "2026-01-31T12:00:00Z",
            },
        ),
        scaling=ScalingFacts(
            desired=2,
            decisions=tuple(to_status([Change(NOW, 1, 2, "Requests wait.")])),
            fresh=False,
            metrics_at=NOW - 300,
        ),
        unmet=("This cluster has no kind PodMonitor.",),
        upgrade="A newer operator would render the pods differently.",
    )


def paths(value: Any, path: str = "") -> Iterator[str]:
    """Every field that a status has."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield f"{path}.{name}"
            yield from paths(below, f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from paths(item, f"{path}[]")


def described(schema: Schema, path: str = "") -> Iterator[str]:
    """Every field that the kind has."""
    for name, below in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from described(below, f"{path}.{name}")
    if "items" in schema:
        yield from described(schema["items"], f"{path}[]")


@pytest.fixture(scope="module")
def said() -> dict[str, Any]:
    situation = everything()
    return report(situation, judge(situation))


def test_the_operator_writes_only_fields_that_the_server_keeps(said: dict[str, Any], schema: Schema) -> None:
    assert set(paths(said)) <= set(described(schema["properties"]["status"]))


def test_every_field_of_the_status_is_written_by_the_operator(said: dict[str, Any], schema: Schema) -> None:
    assert set(described(schema["properties"]["status"])) == set(paths(said))


def test_a_measured_memory_plan_has_fields_of_the_estimated_one() -> None:
    plan = measured(TOLD)
    assert plan is not None
    assert set(plan) <= set(plan_to_status(PLAN))


def test_what_the_operator_writes_has_the_types_of_the_schema(said: dict[str, Any], problems: Any) -> None:
    spec = {"model": {"uri": "hf://org/smollm"}}
    assert not problems({"apiVersion": "octavo.dev/v1alpha1", "kind": "LLMDeployment", "spec": spec, "status": said})


def test_phases_and_conditions_are_named_in_their_descriptions(schema: Schema) -> None:
    status = schema["properties"]["status"]["properties"]
    assert [phase.value for phase in Phase if phase.value not in status["phase"]["description"]] == []
    assert [kind.value for kind in ConditionType if kind.value not in status["conditions"]["description"]] == []
