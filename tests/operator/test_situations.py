"""What a pass saw and decided, gathered for the status."""

from collections.abc import Mapping
from typing import Any

import pytest

from octavo_operator.api import parse
from octavo_operator.effective import RenderDefaults
from octavo_operator.model.resolved import ResolvedModel
from octavo_operator.observed import ClusterView, Observed
from octavo_operator.preparing import prepare
from octavo_operator.reasons import Reason
from octavo_operator.replica_count import Wanted
from octavo_operator.rolling import roll
from octavo_operator.situations import situation_of
from octavo_operator.status.conditions import ConditionType
from octavo_operator.status.finding import Finding
from octavo_operator.status.judge import judge
from octavo_operator.status.situation import Situation
from octavo_operator.testing import llm_deployment


def situation_with(api_key_hashes: Mapping[str, str], **spec: Any) -> Situation:
    deployment = parse(llm_deployment(model={"uri": "file:///weights"}, **spec))
    observed = Observed(now=1000.0, deployment=deployment, cluster=ClusterView(), api_key_hashes=api_key_hashes)
    defaults = RenderDefaults(image="octavo/runtime:1", operator_version="1.0")
    prepared = prepare(observed, ResolvedModel(kind="file", name="/weights"), defaults)
    return situation_of(roll(observed, prepared, 1), prepared, Wanted(1), ())


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


def test_a_selector_of_keys_that_matches_no_secret_is_told_with_what_to_do() -> None:
    selector = {"octavo-keys": "chat", "team": "a"}
    situation = situation_with({}, access={"apiKeys": {"secretSelector": selector}})
    [told] = situation.unmet
    assert told.startswith(
        "No Secret of type Opaque with a key in it carries the labels octavo-keys=chat,team=a, so every request is refused; "
    )
    assert told.endswith("kubectl label secret NAME octavo-keys=chat team=a.")
    condition = next(each for each in judge(situation).conditions if each.type is ConditionType.FEATURE_UNAVAILABLE)
    assert condition.message == told


@pytest.mark.parametrize(
    ("hashes", "access"),
    [
        ({"keys/alice": "sha256:0"}, {"apiKeys": {"secretSelector": {"octavo-keys": "chat"}}}),
        ({}, {"apiKeys": {"secretSelector": {"octavo-keys": "chat"}, "required": False}}),
        ({}, {}),
    ],
)
def test_nobody_is_shut_out_where_a_key_is_known_or_none_is_needed(
    hashes: Mapping[str, str], access: dict[str, Any]
) -> None:
    assert situation_with(hashes, access=access).unmet == ()
