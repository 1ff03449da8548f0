"""Which weight format a model is served in: what the spec asks for, what the checkpoint has, what the device computes.

Pure; a refusal says what to write instead.
"""

from octavo_operator.model.devices import Device, DeviceKind, missing_feature
from octavo_operator.model.problem import Refusal
from octavo_operator.reasons import Reason

READABLE = ("awq", "gptq", "squeezellm", "fp8")
"""Formats of quantized checkpoints that the runtime's GPU backend reads."""

AUTO, NONE, FP8 = "auto", "none", "fp8"


def weight_format(wanted: str, stored: str | None, device: Device) -> str | Refusal | None:
    """The format that is served, None for plain weights. `stored`: of the checkpoint; gguf counts as plain.

    `wanted`: `spec.engine.quantization`.
    """
    if stored == "gguf":
        stored = None  # unpacked to the plain format when it is loaded
    if device.kind is DeviceKind.CPU:
        return _cpu_refusal(wanted, stored)
    if stored is not None and stored not in READABLE:
        return _refusal(
            f"The checkpoint is quantized as {stored}, which Octavo does not read.",
            f"Choose a plain checkpoint or one of {', '.join(READABLE)}.",
        )
    chosen = _chosen(wanted, stored)
    if isinstance(chosen, Refusal) or chosen is None:
        return chosen
    lack = missing_feature(device, chosen)
    if lack is not None:
        return _refusal(f"{device.name} cannot serve {chosen}: {lack}.", _other_format(chosen, stored))
    return chosen


def number_formats_refusal(dtype: str, kv_cache_dtype: str, device: Device) -> Refusal | None:
    """Of `spec.engine.dtype` and `spec.engine.kvCacheDtype`."""
    if kv_cache_dtype == FP8:
        if device.kind is DeviceKind.CPU:
            return _refusal("engine.kvCacheDtype fp8 is not served on the CPU.", "Set engine.kvCacheDtype to auto.")
        lack = missing_feature(device, FP8)
        if lack is not None:
            return _refusal(f"{device.name} cannot keep an fp8 cache: {lack}.", "Set engine.kvCacheDtype to auto.")
    lack = missing_feature(device, dtype)
    if lack is not None:
        return _refusal(f"{device.name} cannot serve in {dtype}: {lack}.", "Set engine.dtype to float16.")
    return None


def _cpu_refusal(wanted: str, stored: str | None) -> Refusal | None:
    """Only plain weights are computed there."""
    if stored is not None:
        return _refusal(
            f"The checkpoint is quantized as {stored}, which is not served on the CPU.",
            "Choose a plain or GGUF checkpoint.",
        )
    if wanted not in (AUTO, NONE):
        return _refusal(f"engine.quantization {wanted} is not served on the CPU.", "Set engine.quantization to auto.")
    return None


def _chosen(wanted: str, stored: str | None) -> str | Refusal | None:
    if wanted in (AUTO, stored):
        return stored
    if stored is not None:
        return _refusal(
            f"engine.quantization is {wanted}, but the checkpoint is quantized as {stored}.",
            f"Set engine.quantization to {stored} or auto, or choose another checkpoint.",
        )
    if wanted == NONE:
        return None
    if wanted == FP8:  # made from plain weights while they are loaded
        return FP8
    return _refusal(
        f"engine.quantization is {wanted}, but the checkpoint is not quantized.",
        f"Choose a checkpoint that is quantized as {wanted}, or set engine.quantization to fp8, which is made while loading.",
    )


def _other_format(chosen: str, stored: str | None) -> str:
    if stored is None:
        return "Set engine.quantization to none, or ask for another GPU in resources.gpuProducts."
    return f"Choose a checkpoint that is not quantized as {chosen}, or ask for another GPU in resources.gpuProducts."


def _refusal(message: str, advice: str) -> Refusal:
    return Refusal(Reason.QUANTIZATION_UNSUPPORTED, message, advice)
