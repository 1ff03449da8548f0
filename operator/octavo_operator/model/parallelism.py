"""Whether a model can be split over so many GPUs: heads and widths over tensor ranks, layers over pipeline stages. Pure."""

from octavo_operator.model.devices import Device, DeviceKind
from octavo_operator.model.problem import Refusal
from octavo_operator.model.shape import ModelShape
from octavo_operator.reasons import Reason

TENSOR_SIZES = (1, 2, 4, 8)
MOST_GPUS = 8


def tensor_sizes(shape: ModelShape) -> tuple[int, ...]:
    """The tensor parallel sizes that this model can be split into."""
    return tuple(size for size in TENSOR_SIZES if _tensor_lack(shape, size) is None)


def pipeline_sizes(shape: ModelShape) -> tuple[int, ...]:
    """The pipeline sizes that give every stage the same number of layers."""
    return tuple(size for size in range(1, MOST_GPUS + 1) if shape.num_layers % size == 0)


def gpus_refusal(count: int, device: Device) -> Refusal | None:
    """None when the device can be had `count` times."""
    if device.kind is DeviceKind.CPU and count > 1:
        return Refusal(
            Reason.DEVICE_UNAVAILABLE,
            f"{count} GPUs are asked for, but no node offers GPUs, so the model would run on the CPU; set "
            "engine.device to cuda to wait for GPUs, or leave the parallel sizes out.",
        )
    return None


def parallelism_refusal(shape: ModelShape, tensor: int, pipeline: int) -> Refusal | None:
    """None when the model can be split so. Sizes as in `spec.engine`."""
    lack = _tensor_lack(shape, tensor)
    if lack is not None:
        sizes = ", ".join(map(str, tensor_sizes(shape)))
        return Refusal(
            Reason.PARALLELISM_MISMATCH,
            f"engine.tensorParallelSize is {tensor}, but {lack}; sizes that divide are {sizes}.",
        )
    if shape.num_layers % pipeline:
        sizes = ", ".join(map(str, pipeline_sizes(shape)))
        return Refusal(
            Reason.PARALLELISM_MISMATCH,
            f"engine.pipelineParallelSize is {pipeline}, but the model has {shape.num_layers} layers; sizes that divide "
            f"are {sizes}.",
        )
    return None


def _tensor_lack(shape: ModelShape, size: int) -> str | None:
    if shape.num_heads % size:
        return f"the model has {shape.num_heads} attention heads"
    if shape.num_kv_heads % size and size % shape.num_kv_heads:  # fewer key-value heads than ranks are replicated
        return f"the model has {shape.num_kv_heads} key-value heads"
    if shape.intermediate_size % size:
        return f"the model's layers are {shape.intermediate_size} wide"
    return None
