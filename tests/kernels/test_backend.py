from typing import Any

import pytest
import torch

from octavo_kernels.backend import BackendName, select_backend
from octavo_kernels.torch_cpu_backend import TorchCpuBackend

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", [BackendName.REFERENCE, BackendName.TORCH_CPU])
def test_a_named_backend_is_that_one(name: BackendName) -> None:
    assert select_backend(name, CPU, 1, torch.float32).name == name.value


def test_auto_takes_the_native_backend_or_the_next_best() -> None:
    assert select_backend(BackendName.AUTO, CPU, 1, torch.bfloat16).name in ("cpu", "torch_cpu")


@pytest.mark.parametrize("name", BackendName)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_packed_weight_is_kept_as_the_backend_says(name: BackendName, dtype: torch.dtype) -> None:
    try:
        backend = select_backend(name, CPU, 1, dtype)
    except RuntimeError as absent:
        pytest.skip(str(absent))
    packed: Any = backend.pack_linear(torch.zeros(64, 64, dtype=dtype), None)
    kept = {"reference": lambda: packed.weight, "torch_cpu": lambda: packed.rows(), "cpu": lambda: packed.packed}
    assert kept[backend.name]().nbytes == 64 * 64 * backend.stored_dtype(dtype).itemsize


@pytest.mark.parametrize(("arithmetic", "kept"), [(True, torch.bfloat16), (False, torch.float32)])
def test_torch_widens_bfloat16_where_the_machine_cannot_multiply_it(
    monkeypatch: pytest.MonkeyPatch, arithmetic: bool, kept: torch.dtype
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: arithmetic)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: arithmetic)
    assert TorchCpuBackend(1).stored_dtype(torch.bfloat16) is kept
    assert TorchCpuBackend(1).stored_dtype(torch.float32) is torch.float32


def test_another_device_is_refused_with_what_to_use() -> None:
    with pytest.raises(RuntimeError, match="use the device cpu"):
        select_backend(BackendName.AUTO, torch.device("cuda"), 1, torch.bfloat16)
