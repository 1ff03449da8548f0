"""From a resolved model to a revision that may have pods, or the finding why not."""

from dataclasses import replace
from typing import Any

from octavo_operator.api import parse
from octavo_operator.effective import RenderDefaults
from octavo_operator.model.problem import ModelProblem
from octavo_operator.model.resolved import ModelFile, ResolvedModel, WeightFacts
from octavo_operator.model.shape import ModelShape
from octavo_operator.observed import ClaimView, ClusterView, JobView, NodeView, Observed, RevisionView
from octavo_operator.preparing import Prepared, prepare
from octavo_operator.reasons import Reason
from octavo_operator.testing import llm_deployment

GIB = 1 << 30
DEFAULTS = RenderDefaults(image="octavo/runtime:1", operator_version="1.0")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def shape(layers: int, heads: int, kv_heads: int, head_dim: int, intermediate: int, vocabulary: int) -> ModelShape:
    return ModelShape(
        architecture="LlamaForCausalLM",
        vocab_size=vocabulary,
        hidden_size=heads * head_dim,
        intermediate_size=intermediate,
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        max_positions=8192,
        tie_word_embeddings=True,
        qkv_bias=False,
        o_bias=False,
        mlp_bias=False,
        qk_norm=False,
    )


def model(name: str, numbers: int, sizes: ModelShape) -> ResolvedModel:
    """Weights in bfloat16."""
    num_bytes = 2 * numbers
    return ResolvedModel(
        kind="hf",
        name=name,
        commit=COMMIT,
        files=(ModelFile("config.json", 700), ModelFile("model.safetensors", num_bytes + 30_000)),
        weights=WeightFacts(
            format="safetensors",
            num_bytes=num_bytes,
            stored_numbers={"BF16": numbers},
            stored_bytes={"BF16": num_bytes},
            parameters=numbers,
            shape=sizes,
        ),
    )


MODEL = model("HuggingFaceTB/SmolLM2-135M-Instruct", 134_500_000, shape(30, 9, 3, 64, 1536, 49152))
BIG = model("org/big", 70_000_000_000, shape(80, 64, 8, 128, 28672, 128256))


def observed(cluster: ClusterView = ClusterView(), **spec: Any) -> Observed:  # noqa: B008
    return Observed(now=1000.0, deployment=parse(llm_deployment(**spec)), cluster=cluster)


def stored(before: Observed, prepared: Prepared, **changes: Any) -> Observed:
    assert prepared.record is not None
    record = prepared.record
    view = RevisionView(record.hash, record.number, record.data, replicas=1, started_at=record.started_at)
    return replace(before, revisions=(replace(view, **changes),))


def gpu_node(memory_mib: int) -> NodeView:
    labels = {
        "nvidia.com/gpu.product": "Test",
        "nvidia.com/gpu.memory": str(memory_mib),
        "nvidia.com/gpu.compute.major": "9",
    }
    return NodeView("gpu", True, labels, (), {"nvidia.com/gpu": 8, "cpu": 64000, "memory": 512 * GIB, "pods": 110}, {})


def test_while_the_model_is_looked_up_nothing_is_rendered() -> None:
    prepared = prepare(observed(), None, DEFAULTS)
    assert prepared.record is None
    assert prepared.held
    assert [finding.reason for finding in prepared.findings] == [Reason.RESOLVING_MODEL]


def test_a_model_problem_is_the_finding() -> None:
    prepared = prepare(observed(), ModelProblem(Reason.REVISION_NOT_FOUND, "no branch of this name"), DEFAULTS)
    assert prepared.record is None
    assert [(finding.reason, finding.message) for finding in prepared.findings] == [
        (Reason.REVISION_NOT_FOUND, "no branch of this name")
    ]


def test_a_resolved_model_becomes_a_revision_with_its_commit() -> None:
    prepared = prepare(observed(), MODEL, DEFAULTS)
    assert prepared.record is not None
    assert not prepared.held
    assert prepared.record.number == 1
    assert COMMIT in str(prepared.record.template)
    assert prepared.model["resolvedRevision"] == COMMIT
    assert prepared.memory_plan["weights"] > 0


def test_the_plan_refuses_before_a_gpu_is_asked_for() -> None:
    prepared = prepare(observed(ClusterView(nodes=(gpu_node(24_000),))), BIG, DEFAULTS)
    assert prepared.record is None
    [finding] = prepared.findings
    assert finding.reason is Reason.WEIGHTS_TOO_LARGE
    assert finding.remedy == "Raise engine.tensorParallelSize to 8."  # the plan's own, and the only one
    assert "engine.tensorParallelSize" not in finding.message


def test_too_little_memory_on_a_cpu_is_mended_by_memory() -> None:
    prepared = prepare(observed(engine={"device": "cpu"}, resources={"memory": "4Gi"}), BIG, DEFAULTS)
    [finding] = prepared.findings
    assert finding.reason is Reason.WEIGHTS_TOO_LARGE
    assert finding.remedy.startswith("Raise resources.memory to ")
    assert "GPU" not in f"{finding.message} {finding.remedy}"


def test_heads_that_do_not_divide_are_refused() -> None:
    spec = {"engine": {"tensorParallelSize": 2, "device": "cuda"}}
    prepared = prepare(observed(ClusterView(nodes=(gpu_node(80_000),)), **spec), MODEL, DEFAULTS)
    assert [finding.reason for finding in prepared.findings] == [Reason.PARALLELISM_MISMATCH]


def test_what_cannot_be_rendered_is_a_finding_and_ends_nothing() -> None:
    patch = {"metadata": {"labels": {"octavo.dev/revision": "mine"}}}
    prepared = prepare(observed(pod={"patch": patch}), MODEL, DEFAULTS)
    assert prepared.record is None
    assert [finding.reason for finding in prepared.findings] == [Reason.SPEC_INVALID]


def test_a_stored_revision_stands_as_it_is() -> None:
    before = observed()
    first = prepare(before, MODEL, DEFAULTS)
    newer = replace(DEFAULTS, image="octavo/runtime:2", operator_version="2.0")
    again = prepare(stored(before, first), None, newer)
    assert first.record is not None
    assert again.record is not None
    assert again.record.data == first.record.data
    assert "2.0" in again.upgrade or "runtime:2" in again.upgrade


def test_a_shared_cache_holds_the_pods_back_until_it_is_filled() -> None:
    before = observed(cache={"mode": "SharedPVC", "sharedPVC": {"claimName": "models"}})
    claim = ClaimView("models", "Bound", ("ReadWriteMany",), "")
    before = replace(before, claim=claim)
    first = prepare(before, MODEL, DEFAULTS)
    assert first.held
    assert first.downloader is not None
    name = first.downloader["metadata"]["name"]
    done = JobView(name, active=0, succeeded=1, failed=0, complete=True, gave_up=False)
    then = prepare(replace(stored(before, first), downloads=(done,)), None, DEFAULTS)
    assert not then.held
    assert then.cached_on == "models"


def test_a_claim_for_one_node_and_two_replicas_is_refused_before_pods() -> None:
    before = observed(replicas=2, cache={"mode": "SharedPVC", "sharedPVC": {"claimName": "models"}})
    claim = ClaimView("models", "Bound", ("ReadWriteOnce",), "")
    prepared = prepare(replace(before, claim=claim), MODEL, DEFAULTS)
    assert prepared.held
    assert prepared.downloader is None
    assert [finding.reason for finding in prepared.findings] == [Reason.VOLUME_MULTI_ATTACH]
