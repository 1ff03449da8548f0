"""How many bytes a model takes on each device: its share of the weights, the cache of a token, a step's activations.

The same arithmetic as the runtime's (`octavo plan`), divided over tensor ranks and pipeline stages; a contract test
compares the two. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from octavo_operator.model.devices import DeviceKind
from octavo_operator.model.resolved import WeightFacts
from octavo_operator.model.shape import ModelShape, layer_parameters, table_parameters

_FLOATS: Mapping[str, int] = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}
"""Formats of safetensors that are converted when they are loaded, and their bytes; all others stay as they are."""

LOGITS_ROWS = 256  # positions whose log-probabilities one step may give, the runtime's default


@dataclass(frozen=True, slots=True)
class Split:
    """Over how many devices."""

    tensor: int = 1
    pipeline: int = 1


def item_bytes(dtype: str, kind: DeviceKind) -> int:
    """Bytes of a number that `engine.dtype` stands for. The CPU keeps float16 as float32, which it computes in."""
    return 4 if dtype == "float32" or (dtype == "float16" and kind is DeviceKind.CPU) else 2


def weight_bytes(facts: WeightFacts, shape: ModelShape, weight_format: str | None, item: int, split: Split) -> int:
    """On the device that holds most. `weight_format`: None for plain weights of `item` bytes each."""
    tables = _table_bytes(shape, item, split)
    layers = shape.num_layers // split.pipeline
    plain = layers * layer_parameters(shape, split.tensor) * item + shape.hidden_size * item
    if weight_format is None:
        return tables + plain
    if facts.quantization is None:  # made while loading: only the matrices of the layers shrink to one byte
        return tables + plain - layers * _matrix_parameters(shape, split.tensor) * (item - 1)
    all_layers = max(0, _stored_bytes(facts, item) - table_parameters(shape) * item)
    return tables + -(-all_layers // (split.tensor * split.pipeline))


def block_bytes(shape: ModelShape, block_size: int, item: int, split: Split) -> int:
    """Of one block of K and V on one device. Key-value heads are replicated where there are fewer than ranks."""
    heads = max(1, shape.num_kv_heads // split.tensor)
    return 2 * (shape.num_layers // split.pipeline) * heads * shape.head_dim * block_size * item


def activation_bytes(shape: ModelShape, num_tokens: int, num_seqs: int, split: Split) -> int:
    """Upper bound of a step's float32 intermediates: rows of the widest live set, and the logits."""
    wide = (shape.num_heads + 2 * shape.num_kv_heads + shape.num_heads) * shape.head_dim + 3 * shape.intermediate_size
    row = 4 * shape.hidden_size + -(-wide // split.tensor)
    return 4 * (num_tokens * row + 2 * (num_seqs + LOGITS_ROWS) * shape.vocab_size)


def _table_bytes(shape: ModelShape, item: int, split: Split) -> int:
    """Embedding and output table; with stages each lies on another device, and tied ones are on both."""
    whole = table_parameters(shape) if split.pipeline == 1 else shape.vocab_size * shape.hidden_size
    return -(-whole // split.tensor) * item


def _matrix_parameters(shape: ModelShape, sharing: int) -> int:
    """Of one layer without its norms and biases."""
    hidden, head_dim = shape.hidden_size, shape.head_dim
    heads, kv_heads = shape.num_heads // sharing, max(1, shape.num_kv_heads // sharing)
    return (2 * heads + 2 * kv_heads) * head_dim * hidden + 3 * hidden * (shape.intermediate_size // sharing)


def _stored_bytes(facts: WeightFacts, item: int) -> int:
    """Of all tensors once they are loaded."""
    return sum(
        facts.stored_numbers.get(name, 0) * item if name in _FLOATS else num_bytes
        for name, num_bytes in facts.stored_bytes.items()
    )
