"""Fixtures of the model tests: backends, and the check of a tiny checkpoint against transformers."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from octavo_kernels.backend import Backend, BackendName, select_backend
from octavo_runtime.model.config import Architecture
from octavo_runtime.testing import PagedModel, build_tiny_model

TOLERANCE = 1e-4


def make_backend(name: BackendName, dtype: torch.dtype = torch.float32) -> Backend:
    try:
        return select_backend(name, torch.device("cpu"), num_threads=1, dtype=dtype)
    except RuntimeError as error:
        pytest.skip(str(error))


@pytest.fixture(params=[BackendName.REFERENCE, BackendName.TORCH_CPU, BackendName.CPU])
def backend(request: pytest.FixtureRequest) -> Backend:
    return make_backend(request.param)


@pytest.fixture
def check_against_transformers(tmp_path: Path, backend: Backend) -> Callable[..., None]:
    """Checks every way of feeding three sequences, at every block size, against one full forward of transformers."""

    def check(architecture: Architecture, **overrides: object) -> None:
        reference = build_tiny_model(architecture, **overrides)
        reference.save_pretrained(tmp_path)
        generator = torch.Generator().manual_seed(1)
        sequences = [torch.randint(160, (length,), generator=generator).tolist() for length in (41, 5, 26)]
        with torch.inference_mode():
            expected = [reference(torch.tensor([tokens])).logits[0] for tokens in sequences]
        for block_size in (8, 16, 32):
            model = PagedModel(tmp_path, backend, block_size=block_size)
            for offset, chunks in enumerate(FEEDS):
                actual = feed_in_chunks(model, sequences, chunks, first_id=10 * offset)
                for got, want in zip(actual, expected, strict=True):
                    torch.testing.assert_close(got, want, atol=TOLERANCE, rtol=TOLERANCE)

    return check


FEEDS = ([100], [7], [3, 1, 1, 9, 1])
"""Tokens per step and sequence, cyclic: whole prompts, chunks, and decodes mixed with chunks."""


def feed_in_chunks(
    model: PagedModel, sequences: list[list[int]], chunks: list[int], first_id: int
) -> list[torch.Tensor]:
    """Logits of every position; all sequences advance in the same steps, each by its own place in the cycle."""
    done, parts = [0] * len(sequences), [[] for _ in sequences]
    step = 0
    while any(at < len(tokens) for at, tokens in zip(done, sequences, strict=True)):
        pieces, owners = [], []
        for i, tokens in enumerate(sequences):
            size = chunks[(step + i) % len(chunks)]
            if done[i] < len(tokens):
                pieces.append((first_id + i, tokens[done[i] : done[i] + size]))
                owners.append(i)
                done[i] += size
        for i, logits in zip(owners, model.feed(pieces), strict=True):
            parts[i].append(logits)
        step += 1
    return [torch.cat(part) for part in parts]
