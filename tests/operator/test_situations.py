"""What a pass saw and decided, gathered for the status."""

from octavo_operator.api import parse
from octavo_operator.effective import RenderDefaults
from octavo_operator.model.resolved import ResolvedModel
from octavo_operator.observed import ClusterView, Observed
from octavo_operator.preparing import prepare
from octavo_operator.reasons import Reason
from octavo_operator.replica_count import Wanted
from octavo_operator.rolling import roll
from octavo_operator.situations import situation_of
from octavo_operator.status.finding import Finding
from octavo_operator.testing import llm_deployment


def test_every_finding_reaches_the_status() -> None:
    deployment = parse(llm_deployment(model={"uri": "file:///weights"}))
    observed = Observed(now=1000.0, deployment=deployment, cluster=ClusterView())
    defaults = RenderDefaults(image="octavo/runtime:1", operator_version="1.0")
    prepared = prepare(observed, ResolvedModel(kind="file", name="/weights"), defaults)
    rolling = roll(observed, prepared, 1)
    refused = Finding(Reason.ADMISSION_DENIED, "Service smollm: no")
    situation = situation_of(rolling, prepared, Wanted(1), (refused,))
    assert refused in situation.findings
    assert set(rolling.findings) <= set(situation.findings)
    assert situation.wanted == situation.target == prepared.wanted
    assert situation.url == "http://smollm.default.svc"
    assert situation.desired == 1
