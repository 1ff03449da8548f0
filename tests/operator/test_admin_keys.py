"""Keys for /drain: derived, stable, and told to nobody."""

import hashlib

from octavo_operator.admin_keys import AdminKeys, load_admin_keys
from octavo_operator.api import parse
from octavo_operator.testing import FakeKube, llm_deployment


def test_each_resource_has_its_own_key_and_keeps_it() -> None:
    keys = AdminKeys(b"seed")
    one, other = parse(llm_deployment("one")), parse(llm_deployment("other"))
    assert keys.key(one) == AdminKeys(b"seed").key(one)
    assert keys.key(one) != keys.key(other)
    assert keys.key(one) != AdminKeys(b"another").key(one)


def test_pods_are_told_only_the_hash() -> None:
    keys = AdminKeys(b"seed")
    one = parse(llm_deployment("one"))
    assert keys.hash(one) == "sha256:" + hashlib.sha256(keys.key(one).encode()).hexdigest()
    assert "seed" not in repr(keys)


async def test_the_seed_is_made_once_and_read_by_the_next() -> None:
    kube = FakeKube()
    first = await load_admin_keys(kube, "octavo-system", "octavo-admin")
    again = await load_admin_keys(kube, "octavo-system", "octavo-admin")
    assert first.seed == again.seed
    assert len(first.seed) == 32


async def test_the_empty_secret_of_the_chart_is_filled() -> None:
    metadata = {"namespace": "octavo-system", "name": "octavo-admin"}
    kube = FakeKube([{"apiVersion": "v1", "kind": "Secret", "metadata": metadata}])
    assert len((await load_admin_keys(kube, "octavo-system", "octavo-admin")).seed) == 32
