"""The whole status: complete, stable, without secrets, and nothing in it that the CRD does not have."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from octavo_operator.reasons import Reason
from octavo_operator.status.finding import Finding
from octavo_operator.status.judge import judge
from octavo_operator.status.report import report, spec_invalid
from octavo_operator.status.situation import RolloutFacts, ScalingFacts, Situation

CRD = Path(__file__).parents[3] / "crds" / "llmdeployments.yaml"
WORDS = json.dumps(
    {"cause": "ModelAccessDenied", "message": "401 with token hf_SecretSecret at https://u:pw@hub.example."}
)


def status_of(situation: Situation) -> dict[str, Any]:
    return report(situation, judge(situation))


def later(situation: Situation, status: Mapping[str, Any], seconds: float) -> Situation:
    """The same world some time after, its status written."""
    observed = situation.observed
    deployment = replace_struct(observed.deployment, status)
    return replace(situation, observed=replace(observed, now=observed.now + seconds, deployment=deployment))


def replace_struct(deployment: Any, status: Mapping[str, Any]) -> Any:
    from msgspec.structs import replace as replaced

    return replaced(deployment, status=status)


def everything(build: Any) -> Situation:
    """Each field of the status has a value."""
    capacity = {"kv_blocks": 1, "block_size": 16, "max_model_len": 8, "max_tokens_in_cache": 16}
    capacity |= {"max_concurrency_at_max_len": 2.5, "tokens_per_second": 300.5}
    timings = dict.fromkeys(("download_seconds", "load_seconds", "compile_seconds", "warmup_seconds"), 1.5)
    progress = {"done_bytes": 5, "total_bytes": 10}
    pods = (
        build.pod("a", runtime=build.runtime(capacity=capacity, timings=timings)),
        build.pod("b", ready=False, runtime=build.runtime("Downloading", progress=progress)),
        build.crashed(name="c"),
        build.pod("d", routed=False, drain_started_at=build.now - 9),
    )
    rollback = {"from": build.new, "to": build.old, "reason": "CrashLoop", "at": "2027-01-15T07:00:00Z"}
    decision = {"at": "2027-01-15T07:00:00Z", "from": 1, "to": 2, "reason": "9 requests wait."}
    return build.situation(
        build.revision(build.old, number=1),
        build.revision(build.new, *pods),
        desired=3,
        stable=build.old,
        cached_on="weights",
        model={
            "resolvedRevision": build.commit,
            "bytes": 1,
            "parameters": 2,
            "architecture": "A",
            "quantization": "awq",
        },
        rollout=RolloutFacts(
            strategy="Surge", reason="One more fits.", started_at=build.now - 9, last_rollback=rollback
        ),
        scaling=ScalingFacts(desired=3, decisions=(decision,), fresh=False, metrics_at=build.now - 200),
        upgrade="Operator 0.2 would change the probes.",
    )


def test_a_serving_deployment_reads_well(build: Any) -> None:
    status = status_of(build.situation())
    assert (status["phase"], status["reason"], status["ready"]) == ("Ready", "Serving", "1/1")
    assert (status["replicas"], status["readyReplicas"], status["updatedReadyReplicas"]) == (1, 1, 1)
    assert status["drainingReplicas"] == 0
    assert status["observedGeneration"] == 3
    assert status["model"]["resolvedRevision"] == build.commit
    assert status["revisions"]["target"] == {
        "hash": build.new,
        "modelRevision": build.commit,
        "image": "octavo-runtime:1",
    }
    assert status["rollout"] == {
        "strategy": "Surge",
        "reason": "One more pod fits.",
        "startedAt": "2027-01-15T07:54:40Z",
    }
    assert "lastFailure" not in status
    assert "scaling" not in status


def test_time_alone_changes_nothing(build: Any) -> None:
    for situation in (
        build.situation(),
        build.situation(build.revision(build.new, build.crashed())),
        everything(build),
    ):
        first = status_of(situation)
        assert status_of(later(situation, first, 1.0)) == first


def test_the_newest_revisions_come_first(build: Any) -> None:
    history = status_of(everything(build))["revisions"]["history"]
    assert [entry["hash"] for entry in history] == [build.new, build.old]


def test_a_failure_is_told_with_pod_code_and_remedy(build: Any) -> None:
    failure = status_of(build.situation(build.revision(build.new, build.crashed("Traceback ..."))))["lastFailure"]
    assert failure["pod"] == "smollm-1"
    assert failure["container"] == "octavo"
    assert failure["reason"] == "CrashLoop"
    assert failure["exitCode"] == 1
    assert failure["at"] == "2027-01-15T07:59:50Z"
    assert "Traceback" in failure["message"]
    assert "kubectl logs" in failure["remedy"]


def test_the_last_failure_stays_to_be_read_after_it_healed(build: Any) -> None:
    failed = status_of(build.situation(build.revision(build.new, build.crashed())))
    healed = status_of(later(build.situation(), failed, 600))
    assert healed["lastFailure"] == failed["lastFailure"]
    assert healed["phase"] == "Ready"


def test_a_failure_without_a_time_keeps_the_time_it_was_first_seen(build: Any) -> None:
    situation = build.situation(
        build.revision(build.new), findings=(Finding(Reason.DIGEST_MISMATCH, "Not the same hf_AbCdEf."),)
    )
    first = status_of(situation)
    second = status_of(later(situation, first, 3600))
    assert first["lastFailure"]["at"] == second["lastFailure"]["at"] == "2027-01-15T08:00:00Z"


def test_a_rollback_stays_until_the_next_one(build: Any) -> None:
    first = status_of(everything(build))
    assert status_of(later(build.situation(), first, 60))["rollout"]["lastRollback"]["reason"] == "CrashLoop"


def test_a_rollback_of_this_pass_gets_its_time_as_text(build: Any) -> None:
    rollback = {"from": build.new, "to": build.old, "reason": "CrashLoop", "at": build.now}
    status = status_of(build.situation(rollout=RolloutFacts(last_rollback=rollback)))
    assert status["rollout"]["lastRollback"]["at"] == "2027-01-15T08:00:00Z"


def test_a_finished_rollout_keeps_the_decision_that_it_was_made_with(build: Any) -> None:
    started = build.now - 320
    first = status_of(
        build.situation(rollout=RolloutFacts(strategy="Surge", reason="One more fits.", started_at=started))
    )
    fuller = RolloutFacts(strategy="InPlace", reason="No GPU is free.", started_at=started)
    again = RolloutFacts(strategy="InPlace", reason="No GPU is free.", started_at=started + 60, done=False)
    assert status_of(later(build.situation(rollout=fuller), first, 1))["rollout"]["reason"] == "One more fits."
    assert status_of(later(build.situation(rollout=again), first, 1))["rollout"]["reason"] == "No GPU is free."


def test_lost_metrics_age_in_whole_minutes(build: Any) -> None:
    assert status_of(everything(build))["scaling"]["metricsAge"] == 180
    fresh = build.situation(scaling=ScalingFacts(desired=1, metrics_at=build.now - 2))
    assert status_of(fresh)["scaling"] == {"desired": 1}


@pytest.mark.parametrize("secret", ["SecretSecret", "u:pw@"])
def test_no_secret_gets_into_a_status(build: Any, secret: str) -> None:
    situation = build.situation(
        build.revision(build.new, build.crashed(WORDS)),
        effective={"engineArgs": ["--token", "hf_SecretSecret"]},
        findings=(Finding(Reason.HUB_UNREACHABLE, "https://u:pw@hub.example does not answer."),),
    )
    assert secret not in json.dumps(status_of(situation))


def test_an_unreadable_spec_keeps_what_is_known(build: Any) -> None:
    before = status_of(build.situation())
    status = spec_invalid(before, 4, "spec.engine.blockSize: Expected `int`, got `str`.", build.now + 60)
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert (conditions["Ready"], conditions["Stalled"], conditions["Available"]) == ("False", "True", "True")
    assert (status["phase"], status["reason"], status["observedGeneration"]) == ("Degraded", "SpecInvalid", 4)
    assert status["model"] == before["model"]
    assert "spec.engine.blockSize" in status["conditions"][0]["message"]


def test_an_unreadable_spec_from_the_start_has_failed(build: Any) -> None:
    assert spec_invalid({}, 1, "spec.model is missing.", build.now)["phase"] == "Failed"


def test_every_field_is_in_the_crd_with_its_type(build: Any) -> None:
    [version] = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]["status"]
    status = status_of(everything(build))
    assert len(status) >= 20
    assert not list(_wrong(status, schema, "status"))


_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def _wrong(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Paths that the API server would prune or refuse."""
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string"):
        return
    if not isinstance(value, _TYPES[schema["type"]]):
        yield f"{path} is not {schema['type']}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{path} may not be {value}"
    elif isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        yield f"{path} is too long"
    elif isinstance(value, dict):
        for key, item in value.items():
            below = schema.get("properties", {}).get(key, schema.get("additionalProperties"))
            if below is None:
                yield f"{path}.{key} is unknown"
            else:
                yield from _wrong(item, below, f"{path}.{key}")
    elif isinstance(value, list):
        for item in value:
            yield from _wrong(item, schema["items"], f"{path}[]")
