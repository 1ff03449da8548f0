"""Records a model's forward once, as the array of ops that the native library replays every step.

`ProgramBuilder` implements `Ops` on symbolic values; `plan_arenas` then gives each value a place that it shares with
values that are not alive at the same time. Knows shapes and weights; the batch comes later (`program.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from octavo_kernels.cpu.native import DTYPE_CODES, OpCode, OpStruct, Rows, ValueStruct
from octavo_kernels.cpu.packed_linear import NativeLinear
from octavo_kernels.ops import AttentionShape, CacheShape, Ops, PackedLinear

CACHE_LINE = 16  # float32 elements
MAX_GROUP = 128  # query heads of a key-value head for which attention surely has scratch (kernels.h: kScratchBytes)
ALIASED = 1024  # rows this far apart (4 KiB), or a multiple, compete for the same few lines of a first-level cache


@dataclass(frozen=True, slots=True)
class SymbolicValue:
    """An activation of the program: columns `column ... column + width` of a buffer, as it is after `version` rewrites."""

    buffer: int
    width: int
    column: int = 0
    version: int = 0


@dataclass(slots=True)
class Buffer:
    """Memory of one activation: rows of `stride` float32 elements, used by ops `first ... last`."""

    rows: Rows
    stride: int
    first: int
    last: int
    version: int = 0
    start: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """One recorded op; `settings` are the fields of `OpStruct` that are not values."""

    code: OpCode
    settings: dict[str, Any]
    input: SymbolicValue | None = None
    residual: SymbolicValue | None = None
    out: SymbolicValue | None = None


@dataclass(frozen=True, slots=True)
class Recording:
    """A finished program: ops to replay, arena sizes in float32 elements per row, and the tensors it points into."""

    ops: Any  # ctypes array of OpStruct
    token_width: int
    logits_width: int
    max_in_features: int
    tensors: tuple[torch.Tensor, ...]


@dataclass(slots=True)
class ProgramBuilder:
    """`Ops` that write down instead of computing. `cache` is what attention layers must agree with."""

    cache: CacheShape
    buffers: list[Buffer] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    tensors: list[torch.Tensor] = field(default_factory=list)

    def embedding(self, table: PackedLinear) -> SymbolicValue:
        weight = self._native(table)
        settings = self._packed(weight)
        return self._record(OpCode.EMBEDDING, settings, out=self._new(Rows.TOKENS, weight.in_features))

    def rms_norm(self, x: SymbolicValue, weight: torch.Tensor, eps: float) -> SymbolicValue:
        settings = self._norm(weight, eps, x.width)
        return self._record(OpCode.RMS_NORM, settings, x, out=self._like(x, x.width))

    def add_rms_norm(
        self, x: SymbolicValue, residual: SymbolicValue, weight: torch.Tensor, eps: float
    ) -> tuple[SymbolicValue, SymbolicValue]:
        """The sum takes the residual's place: the old residual cannot be used after."""
        settings = self._norm(weight, eps, x.width)
        if residual.width != x.width:
            raise ValueError(f"add_rms_norm: x has width {x.width} and residual {residual.width}")
        out = self._record(OpCode.RMS_NORM, settings, x, residual, self._like(x, x.width))
        return out, self._rewritten(residual)

    def linear(self, x: SymbolicValue, weight: PackedLinear) -> SymbolicValue:
        native = self._native(weight)
        if native.in_features != x.width:
            raise ValueError(f"linear: x has width {x.width} and the weight takes {native.in_features}")
        return self._record(OpCode.LINEAR, self._packed(native), x, out=self._like(x, native.out_features))

    def qk_norm(
        self, qkv: SymbolicValue, q_weight: torch.Tensor, k_weight: torch.Tensor, eps: float, shape: AttentionShape
    ) -> SymbolicValue:
        """In place: two norms, over the query heads and over the key heads."""
        self._check_qkv(qkv, shape)
        column = 0
        for weight, heads in ((q_weight, shape.num_heads), (k_weight, shape.num_kv_heads)):
            settings = self._norm(weight, eps, shape.head_dim) | {"segments": heads}
            part = SymbolicValue(qkv.buffer, heads * shape.head_dim, qkv.column + column, qkv.version)
            self._record(OpCode.RMS_NORM, settings, part, out=part)
            column += heads * shape.head_dim
        return self._rewritten(qkv)

    def rope_store(self, qkv: SymbolicValue, cos_sin: torch.Tensor, layer: int, shape: AttentionShape) -> SymbolicValue:
        """In place; the queries are the first columns of qkv."""
        self._check_qkv(qkv, shape)
        if cos_sin.shape[1] != shape.head_dim or not 0 <= layer < self.cache.num_layers:
            raise ValueError(f"rope_store: cos_sin {tuple(cos_sin.shape)} or layer {layer} does not fit the KV cache")
        settings = self._layer(layer, shape) | {"weight": self._float32(cos_sin), "n": cos_sin.shape[0]}
        self._record(OpCode.ROPE_STORE, settings, qkv)
        rotated = self._rewritten(qkv)
        return SymbolicValue(rotated.buffer, shape.num_heads * shape.head_dim, rotated.column, rotated.version)

    def paged_attention(self, q: SymbolicValue, layer: int, shape: AttentionShape) -> SymbolicValue:
        if q.width != shape.num_heads * shape.head_dim:
            raise ValueError(f"paged_attention: q has width {q.width}, not heads * head_dim")
        settings = self._layer(layer, shape) | {"scale": shape.scale, "sliding_window": shape.sliding_window or 0}
        return self._record(OpCode.PAGED_ATTENTION, settings, q, out=self._like(q, q.width))

    def silu_mul(self, gate_up: SymbolicValue) -> SymbolicValue:
        if gate_up.width % 2:
            raise ValueError(f"silu_mul: gate_up has the odd width {gate_up.width}")
        return self._record(OpCode.SILU_MUL, {}, gate_up, out=self._like(gate_up, gate_up.width // 2))

    def logits_rows(self, x: SymbolicValue) -> SymbolicValue:
        return self._record(OpCode.LOGITS_ROWS, {}, x, out=self._new(Rows.LOGITS, x.width))

    def _record(
        self,
        code: OpCode,
        settings: dict[str, Any],
        x: SymbolicValue | None = None,
        residual: SymbolicValue | None = None,
        out: SymbolicValue | None = None,
    ) -> SymbolicValue:
        for value in (x, residual):
            if value is not None:
                if value.version != self.buffers[value.buffer].version:
                    raise ValueError(f"{code.name.lower()}: a value is used that an op before has overwritten")
                self.buffers[value.buffer].last = len(self.calls)
        self.calls.append(Call(code, settings, x, residual, out))
        return out or x or SymbolicValue(0, 0)

    def _new(self, rows: Rows, width: int) -> SymbolicValue:
        here = len(self.calls)
        self.buffers.append(Buffer(rows, row_stride(width), here, here))
        return SymbolicValue(len(self.buffers) - 1, width)

    def _like(self, x: SymbolicValue, width: int) -> SymbolicValue:
        return self._new(self.buffers[x.buffer].rows, width)

    def _rewritten(self, value: SymbolicValue) -> SymbolicValue:
        self.buffers[value.buffer].version += 1
        return SymbolicValue(value.buffer, value.width, value.column, value.version + 1)

    def _native(self, weight: PackedLinear) -> NativeLinear:
        if not isinstance(weight, NativeLinear):
            raise TypeError(f"the cpu backend multiplies NativeLinear weights, not {type(weight).__name__}")
        return weight

    def _packed(self, weight: NativeLinear) -> dict[str, Any]:
        self.tensors.append(weight.packed)
        if weight.bias is not None:
            self.tensors.append(weight.bias)
        return {
            "weight": weight.packed.data_ptr(),
            "bias": None if weight.bias is None else weight.bias.data_ptr(),
            "dtype": DTYPE_CODES[weight.dtype],
            "n": weight.out_features,
            "k": weight.in_features,
        }

    def _norm(self, weight: torch.Tensor, eps: float, width: int) -> dict[str, Any]:
        if weight.shape != (width,):
            raise ValueError(f"rms_norm: the weight has shape {tuple(weight.shape)}, not ({width},)")
        return {"weight": self._float32(weight), "eps": eps, "k": width, "segments": 1}

    def _float32(self, tensor: torch.Tensor) -> int:
        wide = tensor.detach().to(torch.float32).contiguous()
        self.tensors.append(wide)
        return wide.data_ptr()

    def _layer(self, layer: int, shape: AttentionShape) -> dict[str, Any]:
        if (shape.num_kv_heads, shape.head_dim) != (self.cache.num_kv_heads, self.cache.head_dim):
            raise ValueError(f"layer {layer} has other key-value heads than the KV cache")
        group, rest = divmod(shape.num_heads, shape.num_kv_heads)
        if rest or group > MAX_GROUP:
            raise ValueError(
                f"layer {layer} has {shape.num_heads} query heads over {shape.num_kv_heads} key-value heads; "
                f"the cpu backend takes whole groups of at most {MAX_GROUP}"
            )
        return {"layer": layer, "num_heads": shape.num_heads}

    def _check_qkv(self, qkv: SymbolicValue, shape: AttentionShape) -> None:
        if qkv.width != (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim:
            raise ValueError(f"qkv has width {qkv.width}, not (heads + 2 kv_heads) * head_dim")


def row_stride(width: int) -> int:
    """Distance of rows of `width` elements: whole cache lines, and rows read together lie in different ones."""
    stride = -(-width // CACHE_LINE) * CACHE_LINE
    return stride + CACHE_LINE if stride % ALIASED == 0 else stride


def record(forward: Callable[[Ops[Any]], Any], cache: CacheShape, vocab_size: int) -> Recording:
    """Runs `forward` on symbolic values; its result must be a linear of logits rows with `vocab_size` columns.

    :raises ValueError: when shapes do not fit or the result is something else
    """
    builder = ProgramBuilder(cache)
    logits: SymbolicValue = forward(builder)
    last = builder.calls[-1]
    buffer = builder.buffers[logits.buffer]
    if (
        last.out != logits
        or last.code is not OpCode.LINEAR
        or buffer.rows is not Rows.LOGITS
        or logits.width != vocab_size
    ):
        raise ValueError(f"a forward must end in a linear of logits_rows with {vocab_size} columns")
    buffer.rows, buffer.stride = Rows.OUTPUT, vocab_size
    ops = (OpStruct * len(builder.calls))()
    token_width = plan_arena(builder.buffers, Rows.TOKENS)
    logits_width = plan_arena(builder.buffers, Rows.LOGITS)
    for op, call in zip(ops, builder.calls, strict=True):
        op.code = call.code
        for name, setting in call.settings.items():
            setattr(op, name, setting)
        for name, value in (("input", call.input), ("residual", call.residual), ("out", call.out)):
            if value is not None:
                setattr(op, name, _place(builder.buffers[value.buffer], value))
    widest = max(call.settings["k"] for call in builder.calls if call.code is OpCode.LINEAR)
    return Recording(ops, token_width, logits_width, widest, tuple(builder.tensors))


def plan_arena(buffers: list[Buffer], rows: Rows) -> int:
    """Gives the buffers of one arena a start, first fit among those alive at the same time; returns the arena's width."""
    placed: list[Buffer] = []
    for buffer in (buffer for buffer in buffers if buffer.rows is rows):
        alive = sorted(
            (other for other in placed if other.last >= buffer.first and other.first <= buffer.last),
            key=lambda other: other.start,
        )
        start = 0
        for other in alive:
            if other.start - start >= buffer.stride:
                break
            start = max(start, other.start + other.stride)
        buffer.start = start
        placed.append(buffer)
    return max((buffer.start + buffer.stride for buffer in placed), default=0)


def _place(buffer: Buffer, value: SymbolicValue) -> ValueStruct:
    return ValueStruct(buffer.start, value.column, value.width, buffer.stride, buffer.rows)
