"""The shared library: where it is, its structs, and an `Engine` of threads that runs programs.

Mirrors `src/program.h`, `src/kernels.h` and `src/api.cpp`, and checks the sizes when it loads. Knows pointers and
structs, not models; `run_args.py`, `program_builder.py` and `backend.py` fill them.
"""

import ctypes
from collections.abc import Sequence
from enum import IntEnum
from functools import cache
from pathlib import Path
from weakref import finalize

import torch

LIBRARY_PATH = Path(__file__).with_name("_native.so")


class Isa(IntEnum):
    """Instruction sets, worst first (dispatch.h)."""

    AVX2 = 0
    AVX512 = 1
    AVX512_BF16 = 2
    AMX = 3


class OpCode(IntEnum):
    """What an op of a program does (program.h)."""

    EMBEDDING = 0
    RMS_NORM = 1
    LINEAR = 2
    ROPE_STORE = 3
    PAGED_ATTENTION = 4
    SILU_MUL = 5
    LOGITS_ROWS = 6


class Rows(IntEnum):
    """Which arena a value lies in, and so how many rows it has."""

    NONE = 0
    TOKENS = 1
    LOGITS = 2
    OUTPUT = 3


DTYPE_CODES = {torch.float32: 0, torch.bfloat16: 1}

MAX_VOCAB = 400_000
"""Tokens that sampling has scratch for (kernels.h: kMaxVocab)."""

RUN_ERRORS = {
    1: "a token id is outside the vocabulary",
    2: "a position is outside the rotation table",
    3: "a logits row is not a token of the step",
    4: "a slot is outside the KV cache",
    5: "query_start and context_len do not describe the step's tokens",
    6: "a block table is too short for its context or names a block outside the KV cache",
}

_PTR, _I32, _I64, _F32 = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_float


class ValueStruct(ctypes.Structure):
    """program.h: Value."""

    _fields_ = (("start", _I64), ("column", _I32), ("width", _I32), ("stride", _I32), ("rows", _I32))


class OpStruct(ctypes.Structure):
    """program.h: Op."""

    _fields_ = (
        ("code", _I32),
        ("dtype", _I32),
        ("input", ValueStruct),
        ("residual", ValueStruct),
        ("out", ValueStruct),
        ("weight", _PTR),
        ("bias", _PTR),
        ("n", _I32),
        ("k", _I32),
        ("layer", _I32),
        ("segments", _I32),
        ("num_heads", _I32),
        ("sliding_window", _I32),
        ("eps", _F32),
        ("scale", _F32),
    )


class BatchStruct(ctypes.Structure):
    """kernels.h: BatchArgs."""

    _fields_ = (
        ("num_tokens", _I32),
        ("num_rows", _I32),
        ("max_blocks", _I32),
        ("num_logits", _I32),
        ("token_ids", _PTR),
        ("positions", _PTR),
        ("slots", _PTR),
        ("query_start", _PTR),
        ("context_len", _PTR),
        ("block_tables", _PTR),
        ("logits_rows", _PTR),
    )


class CacheStruct(ctypes.Structure):
    """kernels.h: CacheArgs."""

    _fields_ = (
        ("k", _PTR),
        ("v", _PTR),
        ("dtype", _I32),
        ("block_size", _I32),
        ("num_kv_heads", _I32),
        ("head_dim", _I32),
    )


class RunStruct(ctypes.Structure):
    """program.h: RunArgs."""

    _fields_ = (
        ("batch", BatchStruct),
        ("cache", CacheStruct),
        ("layer_bytes", _I64),
        ("num_blocks", _I64),
        ("token_arena", _PTR),
        ("logits_arena", _PTR),
        ("output", _PTR),
        ("x_bf16", _PTR),
        ("attention_workspace", _PTR),
        ("attention_workspace_bytes", ctypes.c_size_t),
    )


class SampleStruct(ctypes.Structure):
    """kernels.h: SampleArgs."""

    _fields_ = (
        ("logits", _PTR),
        ("stride", _I64),
        ("vocab", _I32),
        ("num_draws", _I32),
        ("rows", _PTR),
        ("temperature", _PTR),
        ("top_k", _PTR),
        ("top_p", _PTR),
        ("min_p", _PTR),
        ("uniform", _PTR),
        ("token_ids", _PTR),
    )


_SIGNATURES = {
    "octavo_struct_sizes": (None, (_PTR,)),
    "octavo_has_isa": (_I32, (_I32,)),
    "octavo_engine_create": (_PTR, (_I32, _I32)),
    "octavo_engine_destroy": (None, (_PTR,)),
    "octavo_packed_bytes": (_I64, (_I64, _I64, _I32)),
    "octavo_pack_linear": (None, (_PTR, _I64, _I64, _I32, _PTR)),
    "octavo_advise_huge_pages": (None, (_PTR, _I64)),
    "octavo_run": (_I32, (_PTR, _PTR, _I32, _PTR)),
    "octavo_sample": (None, (_PTR, _PTR)),
}


class NativeLibraryError(RuntimeError):
    """The library is absent, was built from other sources, or lacks what was asked of it."""


@cache
def load_library() -> ctypes.CDLL:
    """The library with its functions typed.

    :raises NativeLibraryError: when the file is absent, cannot be loaded, or has structs of other sizes than ours
    """
    try:
        library = ctypes.CDLL(str(LIBRARY_PATH))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise NativeLibraryError(f"the native CPU kernels cannot be loaded: {error}") from error
    theirs = (ctypes.c_int64 * 3)()
    library.octavo_struct_sizes(theirs)
    ours = [ctypes.sizeof(struct) for struct in (RunStruct, OpStruct, SampleStruct)]
    if list(theirs) != ours:
        raise NativeLibraryError(
            "the native CPU kernels were built from other sources: run python kernels/build_native.py"
        )
    return library


def available_isas() -> list[Isa]:
    """The instruction sets that the library and this machine share, worst first; empty without the library."""
    try:
        library = load_library()
    except NativeLibraryError:
        return []
    return [isa for isa in Isa if library.octavo_has_isa(isa)]


class Engine:
    """Threads with the kernels of one instruction set. Calls release Python's lock and block until the work is done.

    :raises NativeLibraryError: without the library, or when the instruction set is not there
    """

    def __init__(self, num_threads: int, isa: Isa) -> None:
        self._library = load_library()
        self._handle = self._library.octavo_engine_create(num_threads, isa)
        if not self._handle:
            raise NativeLibraryError(
                f"no CPU engine with {num_threads} threads and {isa.name} can be made on this machine"
            )
        finalize(self, self._library.octavo_engine_destroy, self._handle)

    def run(self, ops: Sequence[OpStruct], args: RunStruct) -> None:
        """Runs a program once.

        :raises ValueError: when the batch names tokens, positions or blocks that do not exist
        """
        error = self._library.octavo_run(self._handle, ops, len(ops), ctypes.byref(args))
        if error:
            raise ValueError(RUN_ERRORS[error])

    def sample(self, args: SampleStruct) -> None:
        self._library.octavo_sample(self._handle, ctypes.byref(args))
