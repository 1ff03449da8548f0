"""`situation_of`: gathers what one pass saw and decided into the one input of the status."""

from collections.abc import Iterator, Mapping
from typing import Any

from octavo_operator import names
from octavo_operator.desired.arguments import needs_api_key
from octavo_operator.desired.service import service_scheme
from octavo_operator.model.memory_status import measured
from octavo_operator.observed import Observed
from octavo_operator.preparing import Prepared
from octavo_operator.replica_count import Wanted
from octavo_operator.rolling import Rolling
from octavo_operator.status.finding import Finding
from octavo_operator.status.measurements import measuring_pod
from octavo_operator.status.situation import RolloutFacts, Situation


def situation_of(rolling: Rolling, prepared: Prepared, wanted: Wanted, refused: tuple[Finding, ...]) -> Situation:
    """`refused`: what the API server said no to while the plan was carried out."""
    deployment = rolling.observed.deployment
    view = next((view for view in rolling.observed.revisions if view.hash == prepared.wanted), None)
    strategy, plan = rolling.strategy, rolling.plan
    return Situation(
        observed=rolling.observed,
        desired=wanted.replicas,
        wanted=prepared.wanted,
        target=rolling.target,
        stable=rolling.stable,
        findings=(*prepared.findings, *rolling.findings, *refused),
        model=prepared.model,
        memory_plan=_memory_plan(rolling, prepared),
        effective=prepared.echo,
        url=names.url(deployment, service_scheme(deployment, rolling.observed.revisions)),
        selector=names.selector_text(names.server_selector(deployment.name)),
        cached_on=prepared.cached_on,
        download=prepared.download,
        rollout=RolloutFacts(
            strategy=strategy.strategy.value if strategy else "",
            reason=strategy.reason if strategy else "",
            text=plan.text if plan else "",
            done=plan.done if plan else False,
            paused=rolling.paused,
            started_at=view.started_at if view else None,
            last_rollback=rolling.last_rollback,
        ),
        scaling=wanted.facts,
        unmet=(*prepared.effective.unmet, *_no_api_key(rolling.observed)),
        upgrade=prepared.upgrade,
    )


def _no_api_key(observed: Observed) -> Iterator[str]:
    """A selector that matches nothing shuts everybody out, as it should; nothing else would tell."""
    api_keys = observed.deployment.spec.access.api_keys
    if api_keys is None or not needs_api_key(observed.deployment) or observed.api_key_hashes:
        return
    labels = [f"{name}={value}" for name, value in api_keys.secret_selector.items()]
    yield (
        f"No Secret of type Opaque with a key in it carries the labels {','.join(labels)}, so every request is refused; "
        f"put keys into one and label it: kubectl label secret NAME {' '.join(labels)}."
    )


def _memory_plan(rolling: Rolling, prepared: Prepared) -> Mapping[str, Any]:
    """The estimate, until a pod of the revision has measured."""
    view = next((view for view in rolling.observed.revisions if view.hash == prepared.wanted), None)
    pod = measuring_pod(view.pods) if view is not None else None
    if pod is None or pod.runtime is None:
        return prepared.memory_plan
    return measured(pod.runtime.status, prepared.longest_context) or prepared.memory_plan
