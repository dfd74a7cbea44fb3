"""Tensor intrinsics of CUDA: tensor cores by fragments and by ``mma``, dot products of bytes.

The names of intrinsics that programs import (``WMMA_SYNC_16x16x16_f16f16f32_INTRIN``,
``LDMATRIX_f16_A_DYN_INTRIN``, ...) are made with the intrinsics; ``__all__`` lists them.
"""

from __future__ import annotations

import tvm.error

from ..buffer import Buffer
from ..expr import Cast, PrimExpr, StringImm, Var, const
from ..function import TensorIntrin
from ..op import call_intrin
from ..statement import BufferStore, Evaluate, Stmt
from . import cuda_mma
from .cuda_mma import (
    get_mma_intrin_group,
    ldmatrix_32x8_to_shared_16x16_layout,
    shared_16x16_to_ldmatrix_32x8_layout,
    shared_16x32_to_ldmatrix_32x16_layout,
    shared_32x16_to_ldmatrix_32x16_layout,
)
from .describe import function_of_block, nest, operand
from .dot_product_common import (
    DP4A_S8S8S32_INTRIN,
    DP4A_S8U8S32_INTRIN,
    DP4A_U8S8S32_INTRIN,
    DP4A_U8U8U32_INTRIN,
)

__all__ = [
    "DP4A_S8S8S32_INTRIN",
    "DP4A_S8U8S32_INTRIN",
    "DP4A_U8S8S32_INTRIN",
    "DP4A_U8U8U32_INTRIN",
    "get_mma_intrin_group",
    "get_wmma_intrin_group",
    "ldmatrix_32x8_to_shared_16x16_layout",
    "shared_16x16_to_ldmatrix_32x8_layout",
    "shared_16x32_to_ldmatrix_32x16_layout",
    "shared_32x16_to_ldmatrix_32x16_layout",
]

_TILE = 16
_SHORT = {"float16": "f16", "float32": "f32", "int8": "s8", "int32": "s32"}


def _fragment(buffer: Buffer) -> PrimExpr:
    """Number of a fragment in its array, which is laid out as a matrix of fragments."""
    offset, row = buffer.elem_offset, buffer.strides[0]
    return offset // row // _TILE * (row // _TILE) + offset % row // _TILE


def _tile(name: str, dtype: str, scope: str, strides: bool = False) -> Buffer:
    steps = [Var(f"{name}_s0", "int32"), Var(f"{name}_s1", "int32")] if strides else None
    return operand(name, (_TILE, _TILE), dtype, scope, steps)


def _pointer(buffer: Buffer, mode: str) -> PrimExpr:
    return buffer.access_ptr(mode)


def _in_name(memory: str) -> str:
    return memory.replace(".", "_")


def _register_load(dtype: str, which: str, memory: str, transposed: bool) -> str:
    name = f"wmma_load_16x16x16_{_SHORT[dtype]}_{which}{'_trans' if transposed else ''}"
    name += f"_{_in_name(memory)}"
    scope = f"wmma.matrix_{which}"
    a, c = _tile("A", dtype, memory), _tile("C", dtype, scope)

    body = nest([_TILE, _TILE], "SS", "load", lambda i, j: BufferStore(c, a[i, j], [i, j]))
    desc = function_of_block([a, c], [a], [c], body)
    source, made = _tile("A", dtype, memory, strides=True), _tile("C", dtype, scope, strides=True)
    layout = "col_major" if transposed else "row_major"
    sizes = [const(_TILE, "int32")] * 3
    call = call_intrin(
        "handle",
        "tir.tvm_load_matrix_sync",
        made.data,
        *sizes,
        _fragment(made),
        _pointer(source, "r"),
        source.strides[0],
        StringImm(layout),
    )
    impl = function_of_block([source, made], [source], [made], Evaluate(call))
    TensorIntrin.register(name, desc, impl)
    return name


def _register_store(dtype: str, memory: str) -> str:
    name = f"wmma_store_16x16x16_{_SHORT[dtype]}_{_in_name(memory)}"
    scope = "wmma.accumulator"
    a, c = _tile("A", dtype, scope), _tile("C", dtype, memory)
    body = nest([_TILE, _TILE], "SS", "store", lambda i, j: BufferStore(c, a[i, j], [i, j]))
    desc = function_of_block([a, c], [a], [c], body)
    source = _tile("A", dtype, scope, strides=True)
    made = _tile("C", dtype, memory, strides=True)
    sizes = [const(_TILE, "int32")] * 3
    call = call_intrin(
        "handle",
        "tir.tvm_store_matrix_sync",
        source.data,
        *sizes,
        _fragment(source),
        _pointer(made, "w"),
        made.strides[0],
        StringImm("row_major"),
    )
    impl = function_of_block([source, made], [source], [made], Evaluate(call))
    TensorIntrin.register(name, desc, impl)
    return name


def _register_fill(dtype: str) -> str:
    name = f"wmma_fill_16x16x16_{_SHORT[dtype]}"
    c = _tile("C", dtype, "wmma.accumulator")
    zero = const(0, dtype)
    body = nest([_TILE, _TILE], "SS", "init", lambda i, j: BufferStore(c, zero, [i, j]))
    desc = function_of_block([c], [], [c], body)
    made = _tile("C", dtype, "wmma.accumulator", strides=True)
    sizes = [const(_TILE, "int32")] * 3
    call = call_intrin(
        "handle", "tir.tvm_fill_fragment", made.data, *sizes, _fragment(made), const(0, "float32")
    )
    impl = function_of_block([made], [], [made], Evaluate(call))
    TensorIntrin.register(name, desc, impl)
    return name


def _register_sync(in_dtype: str, out_dtype: str, transposed: bool) -> str:
    short, out = _SHORT[in_dtype], _SHORT[out_dtype]
    name = f"wmma_sync_16x16x16_{short}{short}{out}{'_trans' if transposed else ''}"
    scopes = ("wmma.matrix_a", "wmma.matrix_b", "wmma.accumulator")

    def params(strides: bool) -> list[Buffer]:
        dtypes = (in_dtype, in_dtype, out_dtype)
        return [_tile(*row, strides) for row in zip("ABC", dtypes, scopes, strict=True)]

    a, b, c = params(strides=False)

    def update(i, j, k) -> Stmt:
        left, right = a[i, k], b[(j, k) if transposed else (k, j)]
        if in_dtype != out_dtype:
            left, right = Cast(out_dtype, left), Cast(out_dtype, right)
        return BufferStore(c, c[i, j] + left * right, [i, j])

    body = nest([_TILE] * 3, "SSR", "update", update)
    desc = function_of_block([a, b, c], [c, a, b], [c], body)
    x, y, z = params(strides=True)
    parts = [part for buffer in (z, x, y, z) for part in (buffer.data, _fragment(buffer))]
    call = call_intrin("handle", "tir.tvm_mma_sync", *parts)
    impl = function_of_block([x, y, z], [z, x, y], [z], Evaluate(call))
    TensorIntrin.register(name, desc, impl)
    return name


_MEMORIES = ("shared", "shared.dyn")
_KINDS = (("float16", "float32"), ("float16", "float16"), ("int8", "int32"))

# The names that programs import, each with the registered name of its intrinsic.
_NAMES = dict(cuda_mma.NAMES)

for _in in ("float16", "int8"):
    for _which in "ab":
        for _memory in _MEMORIES:
            for _transposed in (False, True):
                _flags = ("_TRANS" if _transposed else "") + ("_DYN" if "." in _memory else "")
                _key = f"WMMA_LOAD_16x16x16_{_SHORT[_in].upper()}_{_which.upper()}{_flags}_INTRIN"
                _NAMES[_key] = _register_load(_in, _which, _memory, _transposed)
for _out in ("float32", "float16", "int32"):
    _kind = _SHORT[_out].upper()
    _NAMES[f"WMMA_FILL_16x16x16_{_kind}_INTRIN"] = _register_fill(_out)
    for _memory in (*_MEMORIES, "global"):
        _key = f"WMMA_STORE_16x16x16_{_kind}_{_in_name(_memory).upper()}_INTRIN"
        _NAMES[_key] = _register_store(_out, _memory)
for _in, _out in _KINDS:
    for _transposed in (False, True):
        _short = f"{_SHORT[_in]}{_SHORT[_in]}{_SHORT[_out]}"
        _key = f"WMMA_SYNC_16x16x16_{_short}{'_TRANS' if _transposed else ''}_INTRIN"
        _NAMES[_key] = _register_sync(_in, _out, _transposed)

globals().update(_NAMES)
__all__ += list(_NAMES)


def get_wmma_intrin_group(
    load_scope: str, store_scope: str, in_dtype: str, out_dtype: str, trans_b: bool
) -> dict[str, str]:
    """Names of the intrinsics that a product on tensor cores takes.

    Parameters
    ----------
    load_scope : "shared" or "shared.dyn", where operands are loaded from.
    store_scope : "global", "shared" or "shared.dyn", where results go.
    in_dtype, out_dtype : "float16" with "float16" or "float32", or "int8" with "int32".
    trans_b : whether rows of the second operand are columns of the product.

    Returns
    -------
    Names by ``init``, ``load_a``, ``load_b``, ``compute`` and ``store``.

    Raises
    ------
    ValueError : tensor cores do not multiply these types.
    """
    if (in_dtype, out_dtype) not in _KINDS:
        kinds = ", ".join(f"{a} to {b}" for a, b in _KINDS)
        raise tvm.error.ValueError(
            f"get_wmma_intrin_group: no products of {in_dtype} to {out_dtype}; there are {kinds}"
        )
    short, out = _SHORT[in_dtype], _SHORT[out_dtype]
    trans = "_trans" if trans_b else ""
    return {
        "init": f"wmma_fill_16x16x16_{out}",
        "load_a": f"wmma_load_16x16x16_{short}_a_{_in_name(load_scope)}",
        "load_b": f"wmma_load_16x16x16_{short}_b{trans}_{_in_name(load_scope)}",
        "compute": f"wmma_sync_16x16x16_{short}{short}{out}{trans}",
        "store": f"wmma_store_16x16x16_{out}_{_in_name(store_scope)}",
    }
