"""One writer at a time."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

import pytest

from octavo_operator.kube_client import Raw, Unavailable
from octavo_operator.leader import Election, Leader
from octavo_operator.testing import FakeKube


def election(identity: str) -> Election:
    """Times a hundred times shorter than real ones."""
    return Election("octavo-system", "octavo-operator", identity, 0.3, 0.15, 0.02)


class Replica:
    """One operator: how often it led, and whether it leads."""

    def __init__(self, kube: FakeKube, identity: str, leading: list[str]) -> None:
        self.leading = leading
        self.identity = identity
        self.changes: list[bool] = []
        self.leader = Leader(kube, election(identity), on_change=self.changes.append)

    async def lead(self) -> None:
        assert not self.leading, "two lead"
        self.leading.append(self.identity)
        try:
            await asyncio.Event().wait()
        finally:
            self.leading.remove(self.identity)


@contextlib.asynccontextmanager
async def running(replica: Replica) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(replica.leader.run(replica.lead))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until_leads(leading: list[str], identity: str) -> None:
    async with asyncio.timeout(5):
        while leading != [identity]:  # noqa: ASYNC110
            await asyncio.sleep(0.002)


def lease(kube: FakeKube) -> Raw:
    found = kube.find("Lease", "octavo-system", "octavo-operator")
    assert found is not None
    return found["spec"]  # type: ignore[no-any-return]


async def test_the_first_leads_and_the_second_waits() -> None:
    kube, leading = FakeKube(), list[str]()
    async with running(Replica(kube, "a", leading)):
        await until_leads(leading, "a")
        async with running(Replica(kube, "b", leading)):
            await asyncio.sleep(0.6)
            assert leading == ["a"]
            assert lease(kube)["holderIdentity"] == "a"


async def test_an_empty_lease_as_the_chart_makes_it_is_free() -> None:
    kube, leading = FakeKube(), list[str]()
    kube.put({"kind": "Lease", "metadata": {"namespace": "octavo-system", "name": "octavo-operator"}})
    async with running(Replica(kube, "a", leading)):
        await until_leads(leading, "a")


async def test_a_leader_that_ends_lets_the_next_in_at_once() -> None:
    kube, leading = FakeKube(), list[str]()
    async with running(Replica(kube, "b", leading)):
        await until_leads(leading, "b")
    assert lease(kube)["holderIdentity"] == ""
    async with running(Replica(kube, "a", leading)), asyncio.timeout(0.1):
        await until_leads(leading, "a")
    assert lease(kube)["leaseTransitions"] == 1


async def test_a_leader_that_died_is_replaced_after_the_term() -> None:
    kube, leading = FakeKube(), list[str]()
    dead = {"holderIdentity": "dead", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 0}
    kube.put({"kind": "Lease", "metadata": {"namespace": "octavo-system", "name": "octavo-operator"}, "spec": dead})
    async with running(Replica(kube, "a", leading)):
        await asyncio.sleep(0.2)
        assert leading == []
        await until_leads(leading, "a")


async def test_the_same_replica_started_again_takes_its_lease_at_once() -> None:
    kube, leading = FakeKube(), list[str]()
    held = {"holderIdentity": "a", "renewTime": "2026-01-01T00:00:00.000000Z", "leaseDurationSeconds": 15}
    kube.put({"kind": "Lease", "metadata": {"namespace": "octavo-system", "name": "octavo-operator"}, "spec": held})
    async with running(Replica(kube, "a", leading)), asyncio.timeout(0.1):
        await until_leads(leading, "a")


async def test_a_leader_that_cannot_renew_stops_before_another_may_begin() -> None:
    kube, leading = FakeKube(), list[str]()
    replica = Replica(kube, "a", leading)
    async with running(replica):
        await until_leads(leading, "a")
        for _ in range(200):
            kube.fail_next(Unavailable(0, "no answer"))
        started = asyncio.get_running_loop().time()
        async with asyncio.timeout(5):
            while leading:  # noqa: ASYNC110
                await asyncio.sleep(0.002)
        assert asyncio.get_running_loop().time() - started < 0.3  # the term
        kube._failures.clear()
        await until_leads(leading, "a")
    assert replica.changes == [True, False, True, False]


async def test_a_short_failure_changes_nothing() -> None:
    kube, leading = FakeKube(), list[str]()
    replica = Replica(kube, "a", leading)
    async with running(replica):
        await until_leads(leading, "a")
        kube.fail_next(Unavailable(503, "no"))
        kube.fail_next(Unavailable(503, "no"))
        await asyncio.sleep(0.2)
        assert replica.changes == [True]


async def test_a_lease_taken_by_another_ends_the_work_at_once() -> None:
    kube, leading = FakeKube(), list[str]()
    replica = Replica(kube, "a", leading)
    async with running(replica):
        await until_leads(leading, "a")
        kube.change("Lease", "octavo-system", "octavo-operator", {"spec": {"holderIdentity": "thief"}})
        async with asyncio.timeout(0.15):
            while leading:  # noqa: ASYNC110
                await asyncio.sleep(0.002)


async def test_work_that_ends_by_itself_ends_the_leading_and_an_error_comes_out() -> None:
    kube = FakeKube()

    async def done() -> None:
        return

    async def broken() -> None:
        raise ValueError("broken")

    await Leader(kube, election("a")).run(done)
    assert lease(kube)["holderIdentity"] == ""
    with pytest.raises(ValueError, match="broken"):
        await Leader(kube, election("a")).run(broken)


async def test_a_lease_that_somebody_deletes_is_not_made_anew_before_its_holder_has_stopped() -> None:
    """As `helm uninstall` does a moment before the replicas are told to end: it must stay deleted."""
    kube, leading = FakeKube(), list[str]()
    kube.put({"kind": "Lease", "metadata": {"namespace": "octavo-system", "name": "octavo-operator"}})
    first = Replica(kube, "a", leading)
    async with running(first):
        await until_leads(leading, "a")
        async with running(Replica(kube, "b", leading)):
            kube.remove("Lease", "octavo-system", "octavo-operator")
            async with asyncio.timeout(5):
                while first.changes[:2] != [True, False]:
                    assert kube.find("Lease", "octavo-system", "octavo-operator") is None
                    await asyncio.sleep(0.002)
            async with asyncio.timeout(5):
                while not leading:  # noqa: ASYNC110
                    await asyncio.sleep(0.002)


async def test_marks_that_others_put_on_the_lease_stay() -> None:
    """Without them `helm uninstall` would leave it, and the next `helm install` refuse it."""
    kube, leading = FakeKube(), list[str]()
    marks = {"labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "octavo"}}
    place = {"namespace": "octavo-system", "name": "octavo-operator"}
    kube.put({"kind": "Lease", "metadata": {**place, **marks}})
    async with running(Replica(kube, "a", leading)):
        await until_leads(leading, "a")
        await asyncio.sleep(0.1)  # renewed some times
    found = kube.find("Lease", "octavo-system", "octavo-operator")
    assert found is not None
    assert {name: found["metadata"].get(name) for name in marks} == marks


async def test_a_leader_that_ends_after_its_lease_was_deleted_leaves_none() -> None:
    kube, leading = FakeKube(), list[str]()
    kube.put({"kind": "Lease", "metadata": {"namespace": "octavo-system", "name": "octavo-operator"}})
    async with running(Replica(kube, "a", leading)):
        await until_leads(leading, "a")
        kube.remove("Lease", "octavo-system", "octavo-operator")
    assert kube.find("Lease", "octavo-system", "octavo-operator") is None


async def test_a_process_that_stood_still_too_long_knows_at_once_that_it_may_not_write() -> None:
    kube, leading, stopped = FakeKube(), list[str](), [0.0]
    kube.put({"kind": "Lease", "metadata": {"namespace": "octavo-system", "name": "octavo-operator"}})
    replica = Replica(kube, "a", leading)
    replica.leader = Leader(kube, election("a"), clock=lambda: time.monotonic() + stopped[0])
    assert not replica.leader.holds()
    async with running(replica):
        await until_leads(leading, "a")
        assert replica.leader.holds()
        stopped[0] = 0.15  # SIGSTOP, and SIGCONT when another may lead
        assert not replica.leader.holds()
    assert not replica.leader.holds()
