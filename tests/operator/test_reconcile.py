"""One LLMDeployment from nothing to serving, on an API server in memory."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import aiohttp
import pytest

from octavo_operator.cache import Cache
from octavo_operator.effective import OperatorIdentity, RenderDefaults
from octavo_operator.events import EventRecorder
from octavo_operator.kube_client import Forbidden
from octavo_operator.model.hub import Hub
from octavo_operator.observe import Observer
from octavo_operator.observed import RuntimeView
from octavo_operator.reconcile import Doors, Reconciler, Surroundings
from octavo_operator.testing import FakeKube, llm_deployment, node
from octavo_operator.timestamp import format_time

Raw = dict[str, Any]
KEY = ("default", "smollm")
LOCAL = {"uri": "file:///weights"}


class Pods:
    """Stands for the scraper: knows the pods' answers."""

    def __init__(self) -> None:
        self.views: dict[str, RuntimeView] = {}
        self.watched: dict[tuple[str, str], tuple[Any, ...]] = {}

    def view(self, uid: str) -> RuntimeView | None:
        return self.views.get(uid)

    def sample(self, _uid: str) -> None:
        return None

    def watch(self, key: tuple[str, str], targets: Iterable[Any]) -> None:
        self.watched[key] = tuple(targets)

    def forget(self, key: tuple[str, str]) -> None:
        self.watched.pop(key, None)


class World:
    """API server, cache and reconciler; `settle` plays the controllers that make pods of Deployments."""

    def __init__(self, *objects: Raw, version: str = "1.0") -> None:
        self.now = 1_800_000_000.0
        self.cache = Cache()
        self.kube = FakeKube(witness=self.cache)
        self.pods = Pods()
        for raw in objects:
            self.put(raw)
        self.reconciler = self.reconciler_of(version)

    def reconciler_of(self, version: str) -> Reconciler:
        clock: Callable[[], float] = lambda: self.now  # noqa: E731
        doors = Doors(
            kube=self.kube,
            cache=self.cache,
            observer=Observer(self.kube, self.cache, self.pods, clock),
            scraper=self.pods,  # type: ignore[arg-type]
            hub=Hub(None),  # type: ignore[arg-type]
            events=EventRecorder(self.kube, "octavo-0", clock),
            wake=lambda _key: None,
            clock=clock,
        )
        defaults = RenderDefaults(image=f"octavo/runtime:{version}", operator_version=version)
        return Reconciler(doors, Surroundings(defaults, OperatorIdentity("octavo-system"), "octavo-admin"))

    def put(self, raw: Raw) -> Raw:
        stored = self.kube.put(raw)
        self.cache.see(stored)
        return stored

    def change(self, **spec: Any) -> None:
        raw = self.kube.find("LLMDeployment", *KEY)
        assert raw is not None
        raw["spec"] = {**raw["spec"], **spec}
        raw["metadata"]["generation"] += 1
        self.put(raw)

    async def reconcile(self) -> float | None:
        self.now += 1
        pause = await self.reconciler.reconcile(KEY)
        await asyncio.sleep(0.001)  # what goes on in the background
        return pause

    @property
    def status(self) -> Raw:
        raw = self.kube.find("LLMDeployment", *KEY)
        assert raw is not None
        return raw.get("status") or {}

    def condition(self, name: str) -> str:
        return next((c["status"] for c in self.status["conditions"] if c["type"] == name), "")

    def deployments(self) -> dict[str, int]:
        return {raw["metadata"]["name"]: raw["spec"]["replicas"] for raw in self.kube.all("Deployment")}

    def live_pods(self) -> list[Raw]:
        return self.kube.all("Pod")

    def keys(self) -> dict[str, str]:
        """Files of the Secret that pods mount."""
        raw = self.kube.find("Secret", KEY[0], f"{KEY[1]}-keys")
        assert raw is not None
        return dict(raw["data"])

    def settle(self, *, ready: bool = True) -> None:
        """What the ReplicaSets and kubelets would do."""
        for deployment in self.kube.all("Deployment"):
            template = deployment["spec"]["template"]
            revision = template["metadata"]["labels"]["octavo.dev/revision"]
            mine = [pod for pod in self.live_pods() if pod["metadata"]["labels"]["octavo.dev/revision"] == revision]
            mine.sort(key=lambda pod: "deletion-cost" not in str(pod["metadata"].get("annotations")))
            wanted = deployment["spec"]["replicas"]
            for pod in mine[: max(0, len(mine) - wanted)]:
                self.kube.remove("Pod", pod["metadata"]["namespace"], pod["metadata"]["name"])
                self.cache.forget("Pod", pod["metadata"]["namespace"], pod["metadata"]["name"], 10**9)
            for number in range(len(mine), wanted):
                self.put(self._pod(template, f"{deployment['metadata']['name']}-{number}-{int(self.now)}", ready))
        for pod in self.live_pods():
            uid = pod["metadata"]["uid"]
            self.pods.views[uid] = RuntimeView(at=self.now, phase="Ready", in_flight=0)

    def _pod(self, template: Raw, name: str, ready: bool) -> Raw:
        owner = self.kube.find("LLMDeployment", *KEY)
        assert owner is not None
        at = format_time(self.now)
        status = {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "conditions": [
                {"type": "PodScheduled", "status": "True", "lastTransitionTime": at},
                {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": at},
            ],
            "containerStatuses": [
                {"name": "octavo", "ready": ready, "restartCount": 0, "state": {"running": {"startedAt": at}}}
            ],
        }
        owned = {"kind": "LLMDeployment", "name": KEY[1], "uid": owner["metadata"]["uid"], "controller": True}
        metadata = {
            **template["metadata"],
            "name": name,
            "namespace": KEY[0],
            "creationTimestamp": at,
            "ownerReferences": [{**owned, "apiVersion": "octavo.dev/v1alpha1"}],
        }
        spec = {**template["spec"], "nodeName": "node-1"}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}

    async def run(self, passes: int = 6) -> None:
        for _ in range(passes):
            await self.reconcile()
            self.settle()
        await self.reconcile()


@pytest.fixture
async def world() -> World:
    return World(node(), llm_deployment(model=LOCAL, engine={"device": "cpu"}))


async def test_it_comes_from_nothing_to_ready(world: World) -> None:
    await world.run()
    assert world.condition("Ready") == "True"
    assert list(world.deployments().values()) == [1]
    kinds = {
        raw["kind"] for kind in ("Service", "ServiceAccount", "Secret", "NetworkPolicy") for raw in world.kube.all(kind)
    }
    assert kinds == {"Service", "ServiceAccount", "Secret", "NetworkPolicy"}


async def test_a_second_pass_writes_nothing(world: World) -> None:
    await world.run()
    world.kube.writes.clear()
    for _ in range(3):
        await world.reconcile()
    assert world.kube.writes == []


async def test_nothing_is_written_on_the_resource_but_its_status(world: World) -> None:
    before = world.kube.find("LLMDeployment", *KEY)
    await world.run()
    after = world.kube.find("LLMDeployment", *KEY)
    assert before is not None
    assert after is not None
    assert after["spec"] == before["spec"]
    assert "finalizers" not in after["metadata"]
    assert "annotations" not in after["metadata"]


async def test_an_upgrade_ends_with_the_new_revision_alone(world: World) -> None:
    await world.run()
    old = set(world.deployments())
    world.change(engine={"device": "cpu", "maxNumSeqs": 16})
    await world.reconcile()
    assert world.condition("Ready") == "False"
    await world.run(40)
    assert world.condition("Ready") == "True"
    serving = {name for name, replicas in world.deployments().items() if replicas}
    assert len(serving) == 1
    assert not serving & old
    assert len(world.live_pods()) == 1


async def test_changing_back_uses_the_stored_revision_again(world: World) -> None:
    await world.run()
    [first] = world.deployments()
    world.change(engine={"device": "cpu", "maxNumSeqs": 16})
    await world.reconcile()
    world.change(engine={"device": "cpu"})
    await world.run(40)
    assert {name for name, replicas in world.deployments().items() if replicas} == {first}
    assert world.condition("Ready") == "True"


async def test_a_newer_operator_restarts_nothing_and_says_so(world: World) -> None:
    await world.run()
    before = {raw["metadata"]["name"]: raw["spec"]["template"] for raw in world.kube.all("Deployment")}
    world.reconciler = world.reconciler_of("2.0")
    await world.run()
    assert {raw["metadata"]["name"]: raw["spec"]["template"] for raw in world.kube.all("Deployment")} == before
    assert world.condition("UpgradeAvailable") == "True"
    assert world.condition("Ready") == "True"


async def test_a_wish_that_the_cluster_cannot_meet_is_told_until_it_can(world: World) -> None:
    world.change(observability={"podMonitor": "Enabled"})
    await world.run()
    assert (world.condition("FeatureUnavailable"), world.condition("Ready")) == ("True", "True")
    assert await world.reconcile() is not None, "nothing else tells that the kind has come"
    world.change(observability={"podMonitor": "Auto"})
    await world.run()
    assert world.condition("FeatureUnavailable") == ""


async def test_a_corrected_token_is_used_at_once_and_not_after_a_pause(world: World) -> None:
    world.change(model={**LOCAL, "credentials": {"secretRef": {"name": "hub"}}})
    secret = {"kind": "Secret", "metadata": {"namespace": "default", "name": "hub"}, "type": "Opaque"}
    world.put({**secret, "data": {"other": "aGY="}})
    await world.reconcile()
    await world.reconcile()
    assert world.status["reason"] == "ReferenceMissing"
    world.put({**secret, "data": {"HF_TOKEN": "aGY="}})
    for _ in range(3):  # three seconds
        await world.reconcile()
    assert world.deployments()


async def test_keys_stay_while_pods_that_ask_for_them_may_start(world: World) -> None:
    secret = {"kind": "Secret", "metadata": {"namespace": "default", "name": "users", "labels": {"for": "x"}}}
    world.put({**secret, "type": "Opaque", "data": {"alice": "c2stMQ=="}})
    world.change(access={"apiKeys": {"secretSelector": {"for": "x"}}})
    await world.run()
    before = world.keys()
    world.change(access={})
    await world.run(2)
    assert "api-keys" in before
    assert len(world.deployments()) == 2
    assert world.keys() == before
    await world.run(40)
    assert len(world.deployments()) == 1
    await world.reconcile()
    assert set(world.keys()) == {"admin-keys"}


async def test_suspended_means_no_pods_and_not_stalled(world: World) -> None:
    await world.run()
    world.change(suspend=True)
    await world.run(30)
    assert world.live_pods() == []
    assert world.condition("Suspended") == "True"
    assert world.condition("Stalled") != "True"
    world.change(suspend=False)
    await world.run()
    assert world.condition("Ready") == "True"


async def test_what_the_server_refuses_is_in_the_status(world: World) -> None:
    await world.reconcile()
    world.kube.fail_next(Forbidden(403, 'pods "x" is forbidden: violates PodSecurity "restricted:latest"'), "patch")
    await world.reconcile()
    assert world.status["reason"] == "PodSecurityDenied"
    await world.run()
    assert world.condition("Ready") == "True"


async def test_a_spec_that_cannot_be_read_stalls_and_touches_nothing(world: World) -> None:
    await world.run()
    before = world.deployments()
    world.change(engine={"device": "cpu", "maxNumSeqs": "many"})
    await world.reconcile()
    assert world.condition("Stalled") == "True"
    assert "maxNumSeqs" in str(world.status["conditions"])
    assert world.deployments() == before


async def test_a_resource_that_is_gone_is_forgotten(world: World) -> None:
    await world.run()
    world.kube.remove("LLMDeployment", *KEY)
    world.cache.forget("LLMDeployment", *KEY, 10**9)
    assert await world.reconcile() is None
    assert world.pods.watched == {}


async def test_the_hub_is_asked_in_the_background() -> None:
    async with aiohttp.ClientSession():
        world = World(node(), llm_deployment(engine={"device": "cpu"}))
        await world.reconcile()
        assert "ResolvingModel" in str(world.status["conditions"])
        assert world.deployments() == {}
