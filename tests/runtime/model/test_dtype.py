import pytest

from octavo_runtime.model.dtype import ModelDtype


@pytest.mark.parametrize(
    ("asked", "stored", "itemsize"),
    [("auto", "bfloat16", 2), ("bfloat16", "bfloat16", 2), ("float16", "float32", 4), ("float32", "float32", 4)],
)
def test_what_is_kept_on_a_cpu(asked: str, stored: str, itemsize: int) -> None:
    dtype = ModelDtype(asked).stored("cpu")
    assert (dtype.value, dtype.itemsize) == (stored, itemsize)


def test_other_devices_keep_float16() -> None:
    assert ModelDtype.FLOAT16.stored("cuda") is ModelDtype.FLOAT16
