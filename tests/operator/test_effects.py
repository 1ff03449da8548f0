"""A pass's decisions, carried out: order, marks, and what is left when the server says no."""

from dataclasses import replace
from typing import Any

import pytest

from octavo_operator import names
from octavo_operator.api import parse
from octavo_operator.cache import Cache
from octavo_operator.effective import OperatorIdentity, RenderDefaults
from octavo_operator.effects import Effects
from octavo_operator.kube_client import Forbidden, Unavailable
from octavo_operator.model.resolved import ResolvedModel
from octavo_operator.observed import ClaimView, ClusterView, Observed, PodView
from octavo_operator.preparing import Prepared, prepare
from octavo_operator.reasons import Reason
from octavo_operator.rolling import Rolling, roll
from octavo_operator.rollout.planner import RolloutPlan
from octavo_operator.testing import FakeKube, llm_deployment

KEY = ("default", "smollm")
DEFAULTS = RenderDefaults(image="octavo/runtime:1", operator_version="1.0")
OPERATOR = OperatorIdentity("octavo-system")


class Server:
    """An API server, the cache of it, and one resource."""

    def __init__(self, **spec: Any) -> None:
        self.cache = Cache()
        self.kube = FakeKube(witness=self.cache)
        raw = llm_deployment(model={"uri": "file:///weights"}, **spec)
        self.cache.see(self.kube.put(raw))
        self.observed = Observed(now=1000.0, deployment=parse(raw), cluster=ClusterView())
        self.effects = Effects(self.kube, self.cache)

    def passed(self) -> tuple[Rolling, Prepared]:
        prepared = prepare(self.observed, ResolvedModel(kind="file", name="/weights"), DEFAULTS)
        return roll(self.observed, prepared, 1), prepared

    async def carry_out(self, rolling: Rolling, prepared: Prepared) -> None:
        await self.effects.carry_out(rolling, prepared, 1, OPERATOR, "sha256:" + "0" * 64)

    def pod(self, name: str, revision: str) -> PodView:
        labels = names.server_labels("smollm", revision)
        raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "default", "name": name, "labels": labels}}
        uid = self.kube.put(raw)["metadata"]["uid"]
        return PodView(name, uid, revision, 900.0, "Running", True, True, None, False)


@pytest.fixture
def server() -> Server:
    return Server()


async def test_what_is_remembered_is_written_before_pods(server: Server) -> None:
    await server.carry_out(*server.passed())
    kinds = [kind for _, kind, _, _ in server.kube.writes]
    assert kinds[0] == "ControllerRevision"
    assert kinds[-1] == "Deployment"
    assert {"Service", "ServiceAccount", "Secret"} <= set(kinds)


async def test_a_second_time_writes_nothing(server: Server) -> None:
    await server.carry_out(*server.passed())
    server.kube.writes.clear()
    await server.carry_out(*server.passed())
    assert server.kube.writes == []


async def test_a_refusal_is_kept_and_the_rest_is_done(server: Server) -> None:
    message = 'deployments.apps "smollm" is forbidden: exceeded quota: gpus, requested: 1, used: 4, limited: 4'
    rolling, prepared = server.passed()
    server.kube.fail_next(Forbidden(403, message), "patch")
    await server.carry_out(rolling, prepared)
    assert [finding.reason for finding in server.effects.refusals(KEY)] == [Reason.WAITING_FOR_QUOTA]
    assert server.kube.all("Service")
    await server.carry_out(rolling, prepared)
    assert server.effects.refusals(KEY) == ()


async def test_a_failure_stops_the_pass_before_pods_but_not_the_children_beside_it(server: Server) -> None:
    server.kube.fail_next(Unavailable(503, "later"), "patch")
    with pytest.raises(Unavailable):
        await server.carry_out(*server.passed())
    kinds = {kind for _, kind, _, _ in server.kube.writes}
    assert {"ServiceAccount", "Secret", "Service"} <= kinds
    assert "Deployment" not in kinds


async def test_a_drained_pod_is_unrouted_and_first_to_go_and_comes_back(server: Server) -> None:
    rolling, prepared = server.passed()
    view = replace(rolling.observed.revisions[0], pods=(server.pod("one", prepared.wanted),))
    observed = replace(rolling.observed, revisions=(view,))
    assert rolling.plan is not None
    await server.carry_out(_with_plan(rolling, observed, replace(rolling.plan, drain=("one",))), prepared)
    pod = server.kube.find("Pod", "default", "one")
    assert pod is not None
    assert pod["metadata"]["labels"][names.ROUTED] == "false"
    assert pod["metadata"]["annotations"][names.DELETION_COST] == "-1000"
    await server.carry_out(_with_plan(rolling, observed, replace(rolling.plan, undrain=("one",))), prepared)
    pod = server.kube.find("Pod", "default", "one")
    assert pod is not None
    assert pod["metadata"]["labels"][names.ROUTED] == "true"
    assert not pod["metadata"].get("annotations")


async def test_another_pod_of_the_same_name_is_left_alone(server: Server) -> None:
    rolling, prepared = server.passed()
    pod = replace(server.pod("one", prepared.wanted), uid="uid-of-an-older-one")
    observed = replace(rolling.observed, revisions=(replace(rolling.observed.revisions[0], pods=(pod,)),))
    assert rolling.plan is not None
    await server.carry_out(_with_plan(rolling, observed, replace(rolling.plan, drain=("one",), delete=())), prepared)
    raw = server.kube.find("Pod", "default", "one")
    assert raw is not None
    assert raw["metadata"]["labels"][names.ROUTED] == "true"


async def test_a_downloader_that_would_be_made_differently_is_made_anew() -> None:
    spec = {"model": {"uri": "hf://org/name"}, "cache": {"mode": "SharedPVC", "sharedPVC": {"claimName": "models"}}}
    server = Server()
    raw = llm_deployment(**spec)
    claim = ClaimView("models", "Bound", ("ReadWriteMany",), "")
    server.observed = replace(server.observed, deployment=parse(raw), claim=claim)
    model = ResolvedModel(kind="hf", name="org/name", commit="a" * 40)

    def passed(image: str) -> tuple[Rolling, Prepared]:
        prepared = prepare(server.observed, model, replace(DEFAULTS, image=image))
        return roll(server.observed, prepared, 1), prepared

    await server.carry_out(*passed("octavo/runtime:wrong"))
    assert len(server.kube.all("Job")) == 1
    await server.carry_out(*passed("octavo/runtime:right"))
    assert server.kube.all("Job") == []
    server.cache.forget("Job", "default", server.kube.writes[-1][3], 10**9)
    await server.carry_out(*passed("octavo/runtime:right"))
    [job] = server.kube.all("Job")
    assert "octavo/runtime:right" in str(job)


async def test_children_that_the_spec_no_longer_asks_for_go(server: Server) -> None:
    await server.carry_out(*server.passed())
    assert server.kube.all("NetworkPolicy")
    raw = llm_deployment(model={"uri": "file:///weights"}, access={"networkPolicy": {"mode": "Disabled"}})
    server.observed = replace(server.observed, deployment=parse(raw))
    await server.carry_out(*server.passed())
    assert not server.kube.all("NetworkPolicy")


async def test_what_is_done_is_logged_once_and_what_is_as_it_should_be_never(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="octavo_operator")

    async def lines(rolling: Rolling, prepared: Prepared) -> list[str]:
        caplog.clear()
        await server.carry_out(rolling, prepared)
        return [record.getMessage() for record in caplog.records]

    rolling, prepared = server.passed()
    first = await lines(rolling, prepared)
    assert len([line for line in first if line == "child created"]) == len(server.kube.writes)
    assert set(first) == {"child created", "rollout began", "replicas changed"}
    assert await lines(*server.passed()) == []
    view = replace(rolling.observed.revisions[0], pods=(server.pod("one", prepared.wanted),))
    observed = replace(rolling.observed, revisions=(view,))
    assert rolling.plan is not None
    still = replace(rolling.plan, drain=(), undrain=(), delete=())
    for changes, told in (
        ({"drain": ("one", "gone")}, ["pod drain begun"]),
        ({"undrain": ("one",)}, ["pod drain cancelled"]),
        ({"delete": ("one",)}, ["pod deleted"]),
        ({"drain": ("one",)}, []),  # it is gone
    ):
        assert await lines(_with_plan(rolling, observed, replace(still, **changes)), prepared) == told
    raw = llm_deployment(model={"uri": "file:///weights"}, access={"networkPolicy": {"mode": "Disabled"}})
    server.observed = replace(server.observed, deployment=parse(raw))
    assert set(await lines(*server.passed())) == {"child deleted"}


async def test_what_is_refused_is_not_logged_as_done(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="octavo_operator")
    server.kube.fail_next(Forbidden(403, "no"), "patch")
    await server.carry_out(*server.passed())
    assert len([record for record in caplog.records if record.getMessage() == "child created"]) == len(
        server.kube.writes
    )


def _with_plan(rolling: Rolling, observed: Observed, plan: RolloutPlan) -> Rolling:
    return replace(rolling, observed=observed, plan=plan)
