"""`Device`: what one GPU of a node (or the CPU, with a pod's memory) offers, and which number formats it can compute.

From the labels that NVIDIA's feature discovery puts on nodes, or from a table of known products where no such node is
there yet. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

PRODUCT_LABEL = "nvidia.com/gpu.product"
MEMORY_LABEL = "nvidia.com/gpu.memory"  # MiB
MAJOR_LABEL = "nvidia.com/gpu.compute.major"
MINOR_LABEL = "nvidia.com/gpu.compute.minor"
GIB = 1 << 30
MIB = 1 << 20

Capability = tuple[int, int]


class DeviceKind(StrEnum):
    """Where a model runs."""

    CUDA = "cuda"
    CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Device:
    """None: not known. The CPU's memory is what its pod may use."""

    kind: DeviceKind
    name: str
    memory_bytes: int | None = None
    capability: Capability | None = None


@dataclass(frozen=True, slots=True)
class Feature:
    """The compute capability that a number format needs, and why."""

    least: Capability
    why: str


FEATURES: Mapping[str, Feature] = {
    "fp8": Feature((8, 9), "its tensor cores multiply no 8-bit floats"),
    "bfloat16": Feature((8, 0), "it has no bfloat16 arithmetic"),
    "awq": Feature((7, 5), "its tensor cores are too old for the 4-bit kernels"),
    "gptq": Feature((7, 5), "its tensor cores are too old for the 4-bit kernels"),
    "squeezellm": Feature((7, 0), "it has no tensor cores"),
}

_KNOWN: tuple[tuple[str, int, Capability], ...] = (
    # words of the product's name, GiB that the driver leaves usable, compute capability; the first match counts
    ("B300", 268, (10, 3)),
    ("B200", 178, (10, 0)),
    ("H200", 140, (9, 0)),
    ("H100-NVL", 93, (9, 0)),
    ("H100", 79, (9, 0)),
    ("H20", 95, (9, 0)),
    ("L40S", 44, (8, 9)),
    ("L40", 44, (8, 9)),
    ("L4", 22, (8, 9)),
    ("RTX-6000-Ada", 47, (8, 9)),
    ("RTX-4090", 23, (8, 9)),
    ("A100-SXM4-80GB", 79, (8, 0)),
    ("A100-80GB", 79, (8, 0)),
    ("A100", 39, (8, 0)),
    ("A10G", 22, (8, 6)),
    ("A10", 22, (8, 6)),
    ("A40", 44, (8, 6)),
    ("A30", 23, (8, 0)),
    ("A6000", 47, (8, 6)),
    ("V100-SXM2-32GB", 31, (7, 0)),
    ("V100", 15, (7, 0)),
    ("T4", 14, (7, 5)),
)


def cpu_device(memory_bytes: int | None) -> Device:
    """The CPU of a pod with so much memory."""
    return Device(DeviceKind.CPU, "CPU", memory_bytes)


def device_of_labels(labels: Mapping[str, str]) -> Device | None:
    """The GPUs of a node; None when its labels name none."""
    product = labels.get(PRODUCT_LABEL)
    if not product:
        return None
    known = device_of_product(product)
    memory, major = _number(labels, MEMORY_LABEL), _number(labels, MAJOR_LABEL)
    return Device(
        DeviceKind.CUDA,
        product,
        known.memory_bytes if memory is None else memory * MIB,
        known.capability if major is None else (major, _number(labels, MINOR_LABEL) or 0),
    )


def device_of_product(product: str) -> Device:
    """From the table; a slice of a GPU (MIG) has a memory of its own, which only the labels tell."""
    plain = f"-{product.replace(' ', '-').lower()}-"
    for part, gib, capability in _KNOWN:
        if f"-{part.lower()}-" in plain:
            return Device(DeviceKind.CUDA, product, None if "-mig-" in plain else gib * GIB, capability)
    return Device(DeviceKind.CUDA, product)


def choose_gpu(nodes: Iterable[Mapping[str, str]], products: Sequence[str]) -> Device:
    """The smallest GPU that a pod limited to `products` (empty: any) may land on. `nodes`: the labels of each.

    The plan has to hold wherever the scheduler puts the pod. Products that no node has yet come from the table.
    """
    present = [device for device in map(device_of_labels, nodes) if device is not None]
    if products:
        absent = set(products) - {device.name for device in present}
        present = [device for device in present if device.name in products]
        present += [device_of_product(product) for product in sorted(absent)]
    if not present:
        return Device(DeviceKind.CUDA, "GPU")
    return min(present, key=lambda device: (device.memory_bytes or 0, device.capability or (0, 0), device.name))


def missing_feature(device: Device, number_format: str) -> str | None:
    """Why this GPU cannot compute in this format; None when it can, or when its capability is not known."""
    feature = FEATURES.get(number_format)
    if feature is None or device.capability is None or device.capability >= feature.least:
        return None
    return f"{feature.why} (compute capability {_dotted(device.capability)}, {_dotted(feature.least)} is needed)"


def _number(labels: Mapping[str, str], label: str) -> int | None:
    text = labels.get(label, "")
    return int(text) if text.isascii() and text.isdigit() else None


def _dotted(capability: Capability) -> str:
    return f"{capability[0]}.{capability[1]}"
