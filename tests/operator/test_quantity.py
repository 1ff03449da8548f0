"""Quantities as Kubernetes reads them, and what a pod asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo_operator.quantity import (
    QuantityError,
    format_bytes,
    format_quantity,
    parse_quantity,
    parse_resources,
    round_up,
    sum_requests,
)


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        ("cpu", "500m", 500),
        ("cpu", "4", 4000),
        ("cpu", 4, 4000),
        ("cpu", 0.5, 500),
        ("cpu", "1.5", 1500),
        ("cpu", "100u", 1),
        ("requests.cpu", "2", 2000),
        ("limits.cpu", "100m", 100),
        ("memory", "1Gi", 1 << 30),
        ("memory", "0.5Gi", 1 << 29),
        ("memory", "1e3", 1000),
        ("memory", "1E3", 1000),
        ("memory", "1E", 10**18),
        ("memory", "12k", 12000),
        ("memory", "1500m", 2),
        ("memory", ".5", 1),
        ("memory", "5.", 5),
        ("memory", " 1Mi ", 1 << 20),
        ("memory", "9Ei", 2**63 - 1),
        ("nvidia.com/gpu", "8", 8),
        ("ephemeral-storage", "123", 123),
        ("memory", "0", 0),
        ("memory", "-1", -1),
    ],
)
def test_quantity_is_read(resource: str, text: str | int | float, amount: int) -> None:
    assert parse_quantity(resource, text) == amount


@pytest.mark.parametrize("text", ["", "1GB", "one", "1 Gi", "1Gi2", "--1", "1e", "1e999", "0x10", "1,5Gi", "Gi"])
def test_what_is_none_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(QuantityError, match="write one such as 16Gi or 500Mi"):
        parse_quantity("memory", text)


def test_refusal_does_not_repeat_a_novel() -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity("cpu", "x" * 10_000)
    assert len(str(caught.value)) < 200
    assert "4 or 500m" in str(caught.value)


@given(st.integers(min_value=0, max_value=2**62), st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "requests.cpu"]))
def test_what_is_written_is_read_back(amount: int, resource: str) -> None:
    assert parse_quantity(resource, format_quantity(resource, amount)) == amount


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 4000, "4"),
        ("cpu", 1500, "1500m"),
        ("memory", 1 << 30, "1Gi"),
        ("memory", 3 << 29, "1536Mi"),
        ("memory", 0, "0"),
        ("nvidia.com/gpu", 2, "2"),
    ],
)
def test_form_is_the_one_that_the_api_server_gives_back(resource: str, amount: int, text: str) -> None:
    assert format_quantity(resource, amount) == text


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (7 << 29, "3.5 GiB"), (5 << 40, "5.0 TiB")],
)
def test_bytes_for_people(num_bytes: int, text: str) -> None:
    assert format_bytes(num_bytes) == text


@given(st.integers(min_value=0, max_value=2**40), st.integers(min_value=1, max_value=2**30))
def test_rounding_up_reaches_the_next_multiple(amount: int, step: int) -> None:
    rounded = round_up(amount, step)
    assert rounded % step == 0
    assert 0 <= rounded - amount < step


def test_maps_of_quantities_may_be_absent() -> None:
    assert parse_resources(None) == {}
    assert parse_resources({"cpu": "2", "pods": "110"}) == {"cpu": 2000, "pods": 110}


def container(restart: str | None = None, **requests: str) -> dict[str, object]:
    return {"resources": {"requests": requests}} | ({"restartPolicy": restart} if restart else {})


def test_containers_add_up_and_a_pod_is_one_pod() -> None:
    pod = {"containers": [container(cpu="1", memory="1Gi"), container(cpu="500m")]}
    assert sum_requests(pod) == {"cpu": 1500, "memory": 1 << 30, "pods": 1}


def test_a_large_init_container_counts_alone() -> None:
    pod = {"initContainers": [container(cpu="4")], "containers": [container(cpu="1", memory="1Gi")]}
    assert sum_requests(pod) == {"cpu": 4000, "memory": 1 << 30, "pods": 1}


def test_sidecars_stand_beside_containers_and_beside_later_init_containers() -> None:
    sidecar = container("Always", cpu="1")
    pod = {"initContainers": [sidecar, container(cpu="4")], "containers": [container(cpu="2")]}
    assert sum_requests(pod)["cpu"] == 5000
    pod = {"initContainers": [container(cpu="4"), sidecar], "containers": [container(cpu="2")]}
    assert sum_requests(pod)["cpu"] == 4000
    pod = {"initContainers": [sidecar], "containers": [container(cpu="2")]}
    assert sum_requests(pod)["cpu"] == 3000


def test_a_limit_without_a_request_is_a_request() -> None:
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "nvidia.com/gpu": "4"}}
    assert sum_requests({"containers": [{"resources": resources}]}) == {"cpu": 1000, "nvidia.com/gpu": 4, "pods": 1}


def test_overhead_comes_on_top() -> None:
    pod = {"containers": [container(memory="1Gi")], "overhead": {"memory": "100Mi"}}
    assert sum_requests(pod)["memory"] == (1 << 30) + (100 << 20)


def test_resources_of_the_whole_pod_stand_for_its_containers() -> None:
    pod = {"containers": [container(cpu="1", memory="1Gi")], "resources": {"requests": {"cpu": "3"}}}
    assert sum_requests(pod) == {"cpu": 3000, "memory": 1 << 30, "pods": 1}


def test_a_pod_that_asks_for_nothing_is_still_a_pod() -> None:
    assert sum_requests({"containers": [{}]}) == {"pods": 1}


amounts = st.fixed_dictionaries({}, optional={"cpu": st.integers(0, 9).map(str), "memory": st.integers(0, 9).map(str)})
containers = st.lists(st.builds(lambda requests: {"resources": {"requests": requests}}, amounts), max_size=4)


@given(containers, containers)
def test_a_pod_never_asks_for_less_than_any_part_of_it(inits: list[dict], mains: list[dict]) -> None:
    total = sum_requests({"initContainers": inits, "containers": mains})
    for part in (*inits, *mains, {"resources": {"requests": {}}}):
        for name, amount in parse_resources(part["resources"]["requests"]).items():
            assert total.get(name, 0) >= amount


@given(containers, containers)
def test_one_more_container_never_makes_a_pod_smaller(some: list[dict], more: list[dict]) -> None:
    small, large = sum_requests({"containers": some}), sum_requests({"containers": [*some, *more]})
    assert all(large.get(name, 0) >= amount for name, amount in small.items())


def test_an_amount_is_one_thing_for_cpu_and_another_for_memory_however_often_it_is_read() -> None:
    for _ in range(2):
        assert (parse_quantity("cpu", "100m"), parse_quantity("memory", "100m")) == (100, 1)
    for _ in range(2):
        with pytest.raises(QuantityError):
            parse_quantity("cpu", {"a": 1})  # type: ignore[arg-type]
