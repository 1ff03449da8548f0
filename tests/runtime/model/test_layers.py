from pathlib import Path

import torch

from octavo_kernels.reference_backend import ReferenceBackend
from octavo_runtime.model.config import Architecture
from octavo_runtime.model.layers import load_attention, load_cos_sin, load_embedding, load_lm_head
from octavo_runtime.model.loader import WeightLoader
from octavo_runtime.model.registry import no_progress, open_checkpoint
from octavo_runtime.testing import write_tiny_checkpoint


def test_tied_tables_are_one_object_and_untied_ones_two(tmp_path: Path) -> None:
    for tied in (True, False):
        folder = write_tiny_checkpoint(tmp_path / str(tied), Architecture.QWEN2, tie_word_embeddings=tied)
        checkpoint = open_checkpoint(folder)
        loader = WeightLoader(checkpoint.source, ReferenceBackend(), torch.float32, no_progress)
        embedding = load_embedding(loader, checkpoint.config)
        assert (load_lm_head(loader, checkpoint.config, embedding) is embedding) == tied


def test_attention_joins_q_k_v_and_carries_the_layers_window(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(write_tiny_checkpoint(tmp_path, Architecture.MISTRAL))
    loader = WeightLoader(checkpoint.source, ReferenceBackend(), torch.float32, no_progress)
    attention = load_attention(loader, checkpoint.config, 1, load_cos_sin(loader, checkpoint.config, 32))
    assert attention.qkv.out_features == checkpoint.config.qkv_size
    assert attention.shape.sliding_window == 12
    assert attention.cos_sin.shape == (32, checkpoint.config.head_dim)
    assert attention.qk_norm is None
