"""What every architecture shares: each reads exactly the tensors of its checkpoint and derives from one decoder."""

from pathlib import Path

import pytest
import torch

from octavo_kernels.reference_backend import ReferenceBackend
from octavo_runtime.errors import StartCause, StartError
from octavo_runtime.model.config import Architecture
from octavo_runtime.model.decoder import Decoder
from octavo_runtime.model.registry import Checkpoint, load_model, no_progress, open_checkpoint
from octavo_runtime.testing import write_tiny_checkpoint

POSITIONS = 32


@pytest.mark.parametrize("architecture", list(Architecture), ids=lambda value: value.name)
def test_every_architecture_is_a_decoder_that_reads_all_of_its_checkpoint(
    tmp_path: Path, architecture: Architecture
) -> None:
    checkpoint = open_checkpoint(write_tiny_checkpoint(tmp_path, architecture))
    seen: list[tuple[int, int]] = []
    model = load_model(
        checkpoint, ReferenceBackend(), torch.float32, POSITIONS, lambda done, total: seen.append((done, total))
    )
    assert isinstance(model, Decoder)
    assert len(model.layers) == checkpoint.config.num_layers
    assert all((layer.attention.qk_norm is not None) == checkpoint.config.qk_norm for layer in model.layers)
    assert [layer.attention.shape.sliding_window for layer in model.layers] == list(checkpoint.config.windows)
    assert seen[-1][0] == seen[-1][1]


def test_a_decoder_without_one_of_its_tensors_does_not_start(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(write_tiny_checkpoint(tmp_path, Architecture.LLAMA, num_hidden_layers=1))
    missing = open_checkpoint(write_tiny_checkpoint(tmp_path / "deeper", Architecture.LLAMA, num_hidden_layers=2))
    with pytest.raises(StartError, match=r"has no tensor model\.layers\.1\.") as caught:
        load_model(Checkpoint(missing.config, checkpoint.source), ReferenceBackend(), torch.float32, 8, no_progress)
    assert caught.value.cause is StartCause.MODEL_CORRUPT
