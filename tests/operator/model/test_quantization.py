import pytest

from octavo_operator.model.devices import Device, DeviceKind, cpu_device
from octavo_operator.model.problem import Refusal
from octavo_operator.model.quantization import number_formats_refusal, weight_format
from octavo_operator.reasons import Reason

H100 = Device(DeviceKind.CUDA, "H100", None, (9, 0))
A100 = Device(DeviceKind.CUDA, "A100", None, (8, 0))
T4 = Device(DeviceKind.CUDA, "T4", None, (7, 5))
V100 = Device(DeviceKind.CUDA, "V100", None, (7, 0))
CPU = cpu_device(None)


@pytest.mark.parametrize(
    ("wanted", "stored", "device", "served"),
    [
        ("auto", None, CPU, None),
        ("none", None, CPU, None),
        ("auto", "gguf", CPU, None),
        ("none", "gguf", H100, None),
        ("auto", "awq", T4, "awq"),
        ("awq", "awq", A100, "awq"),
        ("auto", "fp8", H100, "fp8"),
        ("fp8", None, H100, "fp8"),
        ("auto", "squeezellm", V100, "squeezellm"),
    ],
)
def test_the_format_that_is_served(wanted: str, stored: str | None, device: Device, served: str | None) -> None:
    assert weight_format(wanted, stored, device) == served


@pytest.mark.parametrize(
    ("wanted", "stored", "device", "says"),
    [
        ("awq", None, H100, "is not quantized"),
        ("gptq", "awq", H100, "to awq or auto"),
        ("none", "awq", H100, "to awq or auto"),
        ("fp8", "awq", H100, "to awq or auto"),
        ("fp8", None, A100, "A100 cannot serve fp8"),
        ("auto", "fp8", A100, "Choose a checkpoint that is not quantized as fp8"),
        ("fp8", None, A100, "Set engine.quantization to none"),
        ("auto", "awq", V100, "V100 cannot serve awq"),
        ("auto", "bitsandbytes", H100, "bitsandbytes"),
        ("auto", "unknown", H100, "awq, gptq, squeezellm, fp8"),
        ("auto", "awq", CPU, "plain or GGUF checkpoint"),
        ("auto", "unknown", CPU, "plain or GGUF checkpoint"),
        ("fp8", None, CPU, "engine.quantization to auto"),
        ("awq", None, CPU, "engine.quantization to auto"),
    ],
)
def test_what_cannot_be_served_is_refused_with_a_way_out(
    wanted: str, stored: str | None, device: Device, says: str
) -> None:
    refusal = weight_format(wanted, stored, device)
    assert isinstance(refusal, Refusal)
    assert refusal.reason is Reason.QUANTIZATION_UNSUPPORTED
    assert says in f"{refusal.message} {refusal.advice}"


@pytest.mark.parametrize(
    ("dtype", "cache", "device", "says"),
    [
        ("auto", "fp8", A100, "engine.kvCacheDtype to auto"),
        ("auto", "fp8", CPU, "engine.kvCacheDtype to auto"),
        ("bfloat16", "auto", T4, "engine.dtype to float16"),
    ],
)
def test_number_formats_that_a_device_lacks_are_refused(dtype: str, cache: str, device: Device, says: str) -> None:
    refusal = number_formats_refusal(dtype, cache, device)
    assert refusal is not None
    assert refusal.reason is Reason.QUANTIZATION_UNSUPPORTED
    assert says in f"{refusal.message} {refusal.advice}"


@pytest.mark.parametrize(
    ("dtype", "cache", "device"),
    [("auto", "auto", T4), ("float16", "auto", V100), ("bfloat16", "fp8", H100), ("bfloat16", "auto", CPU)],
)
def test_number_formats_that_a_device_has_are_fine(dtype: str, cache: str, device: Device) -> None:
    assert number_formats_refusal(dtype, cache, device) is None
