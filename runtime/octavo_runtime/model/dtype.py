"""Number formats that weights and cache are kept in. Needs no torch."""

from enum import StrEnum


class ModelDtype(StrEnum):
    """What `--dtype` may say. AUTO is bfloat16; FLOAT16 is kept as float32 on the CPU, which computes in that."""

    AUTO = "auto"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"
    FLOAT32 = "float32"

    def stored(self, device: str) -> "ModelDtype":
        """The format that is really in memory on `device`."""
        if self is ModelDtype.AUTO:
            return ModelDtype.BFLOAT16
        if self is ModelDtype.FLOAT16 and device == "cpu":
            return ModelDtype.FLOAT32
        return self

    @property
    def itemsize(self) -> int:
        """Bytes of one number of a stored format."""
        return 4 if self is ModelDtype.FLOAT32 else 2
