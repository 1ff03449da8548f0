import pytest

from octavo_operator.model.devices import (
    GIB,
    MIB,
    Device,
    DeviceKind,
    choose_gpu,
    cpu_device,
    device_of_labels,
    device_of_product,
    missing_feature,
)


def labels(product: str, memory: str = "", capability: str = "") -> dict[str, str]:
    found = {"nvidia.com/gpu.product": product}
    if memory:
        found["nvidia.com/gpu.memory"] = memory
    if capability:
        major, _, minor = capability.partition(".")
        found |= {"nvidia.com/gpu.compute.major": major, "nvidia.com/gpu.compute.minor": minor}
    return found


def test_labels_of_a_node_describe_its_gpus() -> None:
    device = device_of_labels(labels("NVIDIA-H100-80GB-HBM3", "81559", "9.0"))
    assert device == Device(DeviceKind.CUDA, "NVIDIA-H100-80GB-HBM3", 81559 * MIB, (9, 0))


def test_a_node_without_gpu_labels_has_none() -> None:
    assert device_of_labels({"kubernetes.io/hostname": "n"}) is None


def test_labels_that_are_missing_or_no_numbers_come_from_the_table() -> None:
    device = device_of_labels(labels("Tesla-T4", "many"))
    assert device == Device(DeviceKind.CUDA, "Tesla-T4", 14 * GIB, (7, 5))


@pytest.mark.parametrize(
    ("product", "gib", "capability"),
    [
        ("NVIDIA-A100-SXM4-80GB", 79, (8, 0)),
        ("NVIDIA-A100-SXM4-40GB", 39, (8, 0)),
        ("NVIDIA A100 80GB PCIe", 79, (8, 0)),
        ("NVIDIA-L4", 22, (8, 9)),
        ("NVIDIA-L40S-SHARED", 44, (8, 9)),
        ("NVIDIA-A10G", 22, (8, 6)),
        ("NVIDIA-H100-NVL", 93, (9, 0)),
        ("NVIDIA-B200", 178, (10, 0)),
    ],
)
def test_known_products_are_found_by_their_words(product: str, gib: int, capability: tuple[int, int]) -> None:
    device = device_of_product(product)
    assert (device.memory_bytes, device.capability) == (gib * GIB, capability)


@pytest.mark.parametrize("product", ["NVIDIA-RTX-A4000", "AMD-Instinct-MI300X", "NVIDIA-GH200-480GB"])
def test_unknown_products_stay_unknown(product: str) -> None:
    assert device_of_product(product) == Device(DeviceKind.CUDA, product)


def test_a_slice_of_a_gpu_has_no_memory_from_the_table() -> None:
    device = device_of_product("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb")
    assert (device.memory_bytes, device.capability) == (None, (8, 0))


def test_the_smallest_gpu_counts_that_a_pod_may_land_on() -> None:
    nodes = [labels("NVIDIA-H100-80GB-HBM3", "81559"), labels("Tesla-T4", "15360"), {}]
    assert choose_gpu(nodes, ()).name == "Tesla-T4"
    assert choose_gpu(nodes, ("NVIDIA-H100-80GB-HBM3",)).memory_bytes == 81559 * MIB


def test_a_product_that_no_node_has_yet_comes_from_the_table() -> None:
    assert choose_gpu([labels("Tesla-T4")], ("NVIDIA-L4",)) == device_of_product("NVIDIA-L4")


def test_without_any_label_the_gpu_is_unknown() -> None:
    assert choose_gpu([{}], ()) == Device(DeviceKind.CUDA, "GPU")


@pytest.mark.parametrize(
    ("number_format", "capability", "works"),
    [
        ("fp8", (8, 6), False),
        ("fp8", (8, 9), True),
        ("fp8", (10, 0), True),
        ("bfloat16", (7, 5), False),
        ("bfloat16", (8, 0), True),
        ("awq", (7, 0), False),
        ("gptq", (7, 5), True),
        ("float16", (3, 5), True),
        ("fp8", None, True),
    ],
)
def test_formats_need_their_generation_of_gpu(
    number_format: str, capability: tuple[int, int] | None, works: bool
) -> None:
    lack = missing_feature(Device(DeviceKind.CUDA, "GPU", None, capability), number_format)
    assert (lack is None) is works


def test_a_missing_format_is_explained_with_both_capabilities() -> None:
    lack = missing_feature(Device(DeviceKind.CUDA, "GPU", None, (8, 0)), "fp8")
    assert lack is not None
    assert "8.0" in lack
    assert "8.9" in lack


def test_the_cpu_has_the_memory_of_its_pod() -> None:
    assert cpu_device(5 * GIB).memory_bytes == 5 * GIB
