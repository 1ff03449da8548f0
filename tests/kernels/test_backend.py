import pytest
import torch

from octavo_kernels.backend import BackendName, select_backend

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", [BackendName.REFERENCE, BackendName.TORCH_CPU])
def test_a_named_backend_is_that_one(name: BackendName) -> None:
    assert select_backend(name, CPU, 1, torch.float32).name == name.value


def test_auto_takes_the_native_backend_or_the_next_best() -> None:
    assert select_backend(BackendName.AUTO, CPU, 1, torch.bfloat16).name in ("cpu", "torch_cpu")


def test_another_device_is_refused_with_what_to_use() -> None:
    with pytest.raises(RuntimeError, match="use the device cpu"):
        select_backend(BackendName.AUTO, torch.device("cuda"), 1, torch.bfloat16)
