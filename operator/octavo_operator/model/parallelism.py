"""Whether a model can be split over so many GPUs: heads and widths over tensor ranks, layers over pipeline stages. Pure."""

from collections.abc import Sequence

from octavo_operator.model.devices import Device, DeviceKind
from octavo_operator.model.problem import Refusal
from octavo_operator.model.shape import ModelShape
from octavo_operator.reasons import Reason
from octavo_operator.wording import listed

TENSOR_SIZES = (1, 2, 4, 8)  # all that `spec.engine.tensorParallelSize` may be
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
            f"The parallel sizes ask for {count} GPUs, but the model would run on the CPU: engine.device is cpu, or it is auto "
            "and no node offers GPUs.",
            "Leave engine.tensorParallelSize and pipelineParallelSize out, or set engine.device to cuda to wait for GPUs.",
        )
    return None


def parallelism_refusal(shape: ModelShape, tensor: int, pipeline: int) -> Refusal | None:
    """None when the model can be split so. Sizes as in `spec.engine`."""
    lack = _tensor_lack(shape, tensor)
    if lack is not None:
        sizes = tensor_sizes(shape)
        return Refusal(
            Reason.PARALLELISM_MISMATCH,
            f"engine.tensorParallelSize is {tensor}, which does not divide {lack}. Of the sizes that it may be "
            f"({listed(TENSOR_SIZES, 'and')}), this model can be split into {listed(sizes, 'or')}{_only(sizes)}.",
            f"Set engine.tensorParallelSize to {listed(sizes, 'or')}.",
        )
    if shape.num_layers % pipeline:
        sizes = pipeline_sizes(shape)
        return Refusal(
            Reason.PARALLELISM_MISMATCH,
            f"engine.pipelineParallelSize is {pipeline}, which does not divide the model's {shape.num_layers} layers. Of the "
            f"sizes that it may be (1 to {MOST_GPUS}), this model can be split into {listed(sizes, 'or')}{_only(sizes)}.",
            f"Set engine.pipelineParallelSize to {listed(sizes, 'or')}.",
        )
    return None


def _only(sizes: Sequence[int]) -> str:
    return " only" if len(sizes) == 1 else ""


def _tensor_lack(shape: ModelShape, size: int) -> str | None:
    """What of the model this size does not divide."""
    if shape.num_heads % size:
        return f"the model's {shape.num_heads} attention heads"
    if shape.num_kv_heads % size and size % shape.num_kv_heads:  # fewer key-value heads than ranks are replicated
        return f"the model's {shape.num_kv_heads} key-value heads"
    if shape.intermediate_size % size:
        return f"the {shape.intermediate_size} columns of the model's layers"
    return None
