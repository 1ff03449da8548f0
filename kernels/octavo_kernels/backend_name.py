"""Names of the backends, for settings: needs no torch, so that the HTTP process can read it."""

from enum import StrEnum


class BackendName(StrEnum):
    """What `--backend` may say. AUTO: the fastest that the machine can run."""

    AUTO = "auto"
    CPU = "cpu"
    TORCH_CPU = "torch_cpu"
    REFERENCE = "reference"
