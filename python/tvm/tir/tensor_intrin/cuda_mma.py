"""Products of a warp by ``mma`` instructions, 16 x 16 results with operands from ``ldmatrix``.

The 32 threads of a warp hold a tile together; the layout functions say which thread has which
element, and where (NVIDIA's PTX ISA, "Matrix Fragments for mma.m16n8k16" and "mma.m16n8k32"). A
tile in scope "warp" is an array of 32 rows, one of each thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tvm.error
from tvm._ffi import register_func

from ..buffer import Buffer
from ..expr import Cast, IterVar, PrimExpr, Var, const
from ..function import TensorIntrin
from ..ptx import mma_fill, mma_store, ptx_ldmatrix, ptx_mma
from ..statement import BufferStore, Evaluate, For, ForKind, SeqStmt, Stmt
from .describe import function_of_block, nest, operand

_WARP = 32
_TILE = 16

Place = tuple[Any, Any]
Layout = Callable[[Any, Any], Place]


def shared_16x16_to_ldmatrix_32x8_layout(i: Any, j: Any) -> Place:
    """Thread and position of element (i, j) of 16 x 16: operands of two bytes, and all sums."""
    return i % 8 * 4 + j % 8 // 2, j // 8 * 4 + i // 8 * 2 + j % 2


def shared_16x32_to_ldmatrix_32x16_layout(i: Any, j: Any) -> Place:
    """Thread and position of element (i, j) of 16 x 32: operands of bytes, the sum's axis last."""
    return i % 8 * 4 + j % 16 // 4, j // 16 * 8 + i // 8 * 4 + j % 4


def shared_32x16_to_ldmatrix_32x16_layout(i: Any, j: Any) -> Place:
    """Thread and position of element (i, j) of 32 x 16: operands of bytes, the sum's axis first."""
    return j % 8 * 4 + i % 16 // 4, j // 8 * 8 + i // 16 * 4 + i % 4


def ldmatrix_32x8_to_shared_16x16_layout(thread_id: Any, local_id: Any) -> Place:
    """Row and column of what a thread of a 16 x 16 tile has at a position."""
    row = local_id // 2 % 2 * 8 + thread_id // 4
    return row, local_id // 4 * 8 + thread_id % 4 * 2 + local_id % 2


def _element_of_bytes(thread: Any, at: Any) -> Place:
    """Row and column of what a thread of a 32 x 16 tile of bytes has at a position."""
    return at // 4 % 2 * 16 + thread % 4 * 4 + at % 4, at // 8 * 8 + thread // 4


@register_func("tir.index_map.shared_16x16_to_ldmatrix_32x8_layout")
def _ldmatrix_index_map(indices: Any) -> list[PrimExpr]:
    return list(shared_16x16_to_ldmatrix_32x8_layout(indices[0], indices[1]))


_SHORT = {
    "float16": "f16",
    "float32": "f32",
    "int8": "i8",
    "int32": "i32",
    "e4m3_float8": "e4m3",
    "e5m2_float8": "e5m2",
}
_PTX = {
    "float16": "fp16",
    "float32": "fp32",
    "int8": "int8",
    "int32": "int32",
    "e4m3_float8": "e4m3",
    "e5m2_float8": "e5m2",
}


def _warp(name: str, dtype: str, local: int) -> Buffer:
    return operand(name, (_WARP, local), dtype, "warp")


def _strided(name: str, shape: tuple[int, int], dtype: str, scope: str) -> Buffer:
    strides = [Var(f"{name}_s0", "int32"), Var(f"{name}_s1", "int32")]
    return operand(name, shape, dtype, scope, strides)


def _each_thread(body: Callable[[Var], Stmt]) -> Stmt:
    thread = Var("tx", "int32")
    axis = IterVar(None, Var("threadIdx.x", "int32"), IterVar.ThreadIndex, "threadIdx.x")
    return For(thread, 0, _WARP, ForKind.THREAD_BINDING, body(thread), axis)


def _each_element(count: int, body: Callable[[Var], Stmt]) -> Stmt:
    at = Var("at", "int32")
    return For(at, 0, count, ForKind.SERIAL, body(at))


def _layout_of(depth: int, depth_first: bool) -> Layout:
    """Where elements of an operand are, given in the order of memory."""
    if depth == _TILE:
        return shared_16x16_to_ldmatrix_32x8_layout
    if depth_first:
        return shared_32x16_to_ldmatrix_32x16_layout
    return shared_16x32_to_ldmatrix_32x16_layout


def _register_ldmatrix(depth: int, dtype: str, matrix: str, trans: bool, scope: str) -> str:
    """A tile of an operand from shared memory; `trans` exchanges its axes there."""
    suffix = ("_trans" if trans else "") + ("_dyn" if scope == "shared.dyn" else "")
    name = f"mma_ldmatrix_{_SHORT[dtype]}_{matrix}{suffix}"
    # In memory, A is rows x depth and B depth x columns, unless transposed.
    depth_first = (matrix == "a") == trans
    shape = (depth, _TILE) if depth_first else (_TILE, depth)
    layout = _layout_of(depth, depth_first)
    local = _TILE * depth // _WARP
    w, s = _warp("warp", dtype, local), operand("shared", shape, dtype, scope)
    copy = nest(shape, "SS", "load", lambda i, j: BufferStore(w, s[i, j], list(layout(i, j))))
    desc = function_of_block([w, s], [s], [w], copy)

    made, source = _warp("warp", dtype, local), _strided("shared", shape, dtype, scope)
    # The instruction gives a thread neighbours in a row, and those belong together along the depth.
    across = depth_first
    wide = depth * 8 // _TILE  # elements of 16 bytes

    def row(tx: Var) -> PrimExpr:
        """Offset of the 16 bytes to which a thread points: rows of four matrices of 8 rows."""
        stride = source.strides[0]
        # Which of the four comes second follows from the order of registers in the layout.
        if trans:
            return stride * (tx // 16 * 8 + tx % 8) + tx % 16 // 8 * wide
        return stride * (tx % 16) + tx // 16 * wide

    def load(tx: Var) -> Stmt:
        if across and dtype != "float16":
            # The instruction cannot take bytes apart, so each is loaded on its own.
            return _each_element(
                local, lambda at: BufferStore(made, source[_element_of_bytes(tx, at)], [tx, at])
            )
        to = made.elem_offset + tx * local
        pointer = source.access_ptr("r")
        return Evaluate(ptx_ldmatrix(dtype, across, 4, ".b16", made.data, to, pointer, row(tx)))

    impl = function_of_block([made, source], [source], [made], _each_thread(load))
    TensorIntrin.register(name, desc, impl)
    return name


def _register_mma(depth: int, in_dtype: str, out_dtype: str, trans_a: bool, trans_b: bool) -> str:
    short = _SHORT[in_dtype]
    name = f"mma_{short}{short}{_SHORT[out_dtype]}"
    name += ("_trans_a" if trans_a else "") + ("_trans_b" if trans_b else "")
    local, sums = _TILE * depth // _WARP, _TILE * _TILE // _WARP
    layouts = _layout_of(depth, trans_a), _layout_of(depth, not trans_b)

    def params() -> tuple[Buffer, Buffer, Buffer]:
        operands = _warp("A", in_dtype, local), _warp("B", in_dtype, local)
        return (*operands, _warp("C", out_dtype, sums))

    a, b, c = params()

    def update(i: Var, j: Var, k: Var) -> Stmt:
        left = a[layouts[0](*((k, i) if trans_a else (i, k)))]
        right = b[layouts[1](*((j, k) if trans_b else (k, j)))]
        if in_dtype != out_dtype:
            left, right = Cast(out_dtype, left), Cast(out_dtype, right)
        at = shared_16x16_to_ldmatrix_32x8_layout(i, j)
        return BufferStore(c, c[at] + left * right, list(at))

    desc = function_of_block(
        [a, b, c], [c, a, b], [c], nest([_TILE, _TILE, depth], "SSR", "update", update)
    )
    x, y, z = params()

    def multiply(tx: Var) -> Stmt:
        # An instruction gives 8 columns: second halves of B and of the sums are those to the right.
        return SeqStmt(
            [
                Evaluate(
                    ptx_mma(
                        out_dtype, f"m16n8k{depth}", "row", "col",
                        _PTX[in_dtype], _PTX[in_dtype], _PTX[out_dtype],
                        x.data, x.elem_offset + tx * local,
                        y.data, y.elem_offset + tx * local + half * (local // 2),
                        z.data, z.elem_offset + tx * sums + half * (sums // 2),
                        False,
                    )
                )
                for half in range(2)
            ]
        )  # fmt: skip

    impl = function_of_block([x, y, z], [z, x, y], [z], _each_thread(multiply))
    TensorIntrin.register(name, desc, impl)
    return name


def _register_fill(dtype: str) -> str:
    name = f"mma_fill_16x16_{_SHORT[dtype]}"
    layout, local = shared_16x16_to_ldmatrix_32x8_layout, _TILE * _TILE // _WARP
    c, zero = _warp("C", dtype, local), const(0, dtype)
    body = nest([_TILE] * 2, "SS", "init", lambda i, j: BufferStore(c, zero, list(layout(i, j))))
    desc = function_of_block([c], [], [c], body)
    made = _warp("C", dtype, local)
    fill = _each_thread(lambda tx: Evaluate(mma_fill(dtype, local, made.data, made.elem_offset)))
    impl = function_of_block([made], [], [made], fill)
    TensorIntrin.register(name, desc, impl)
    return name


def _register_store(dtype: str, scope: str, simple: bool) -> str:
    """`simple` stores elements one by one, which other passes can look into."""
    memory = scope.replace(".", "_")
    name = f"mma_store_16x16_{_SHORT[dtype]}_{memory}_{'simple_' if simple else ''}"
    layout, local = shared_16x16_to_ldmatrix_32x8_layout, _TILE * _TILE // _WARP
    w, c = _warp("warp", dtype, local), operand("C", (_TILE, _TILE), dtype, scope)
    body = nest([_TILE] * 2, "SS", "store", lambda i, j: BufferStore(c, w[layout(i, j)], [i, j]))
    desc = function_of_block([w, c], [w], [c], body)
    source, made = _warp("warp", dtype, local), _strided("C", (_TILE, _TILE), dtype, scope)

    def store(tx: Var) -> Stmt:
        if simple:
            place = ldmatrix_32x8_to_shared_16x16_layout
            return _each_element(
                local, lambda at: BufferStore(made, source[tx, at], list(place(tx, at)))
            )
        pointer, stride = made.access_ptr("w"), made.strides[0]
        return Evaluate(
            mma_store(dtype, _TILE, _TILE, pointer, source.data, source.elem_offset, stride)
        )

    impl = function_of_block([source, made], [source], [made], _each_thread(store))
    TensorIntrin.register(name, desc, impl)
    return name


_BYTES = ("int8", "e4m3_float8", "e5m2_float8")
# The names that programs import, each with the registered name of its intrinsic.
NAMES: dict[str, str] = {}

for _scope in ("shared", "shared.dyn"):
    for _matrix in "ab":
        for _trans in (False, True):
            _suffix = ("_TRANS" if _trans else "") + ("_DYN" if _scope == "shared.dyn" else "")
            _name = _register_ldmatrix(16, "float16", _matrix, _trans, _scope)
            NAMES[f"LDMATRIX_f16_{_matrix.upper()}{_suffix}_INTRIN"] = _name
            if _matrix == "a" and _trans:
                continue
            for _dtype in _BYTES:
                _name = _register_ldmatrix(32, _dtype, _matrix, _trans, _scope)
                NAMES[f"LDMATRIX_{_SHORT[_dtype]}_{_matrix.upper()}{_suffix}_INTRIN"] = _name

for _out in ("float32", "float16"):
    for _trans_a in (False, True):
        for _trans_b in (False, True):
            _name = _register_mma(16, "float16", _out, _trans_a, _trans_b)
            _suffix = ("_TRANS_A" if _trans_a else "") + ("_TRANS_B" if _trans_b else "")
            NAMES[f"MMA_f16f16{_SHORT[_out]}{_suffix}_INTRIN"] = _name
for _dtype in _BYTES:
    _out = "int32" if _dtype == "int8" else "float32"
    for _trans in (False, True):
        _short = _SHORT[_dtype]
        _name = _register_mma(32, _dtype, _out, False, _trans)
        NAMES[f"MMA_{_short}{_short}{_SHORT[_out]}{'_TRANS_B' if _trans else ''}_INTRIN"] = _name

for _out in ("float32", "float16", "int32"):
    NAMES[f"MMA_fill_16x16_{_SHORT[_out]}_INTRIN"] = _register_fill(_out)
    for _scope in ("global", "shared", "shared.dyn"):
        for _simple in (False, True):
            _name = _register_store(_out, _scope, _simple)
            _key = f"MMA_store_16x16_{_SHORT[_out]}_{_scope.replace('.', '_')}_INTRIN"
            NAMES[_key + ("_SIMPLE" if _simple else "")] = _name


def get_mma_intrin_group(
    load_scope: str,
    store_scope: str,
    a_dtype: str,
    b_dtype: str,
    out_dtype: str,
    trans_a: bool,
    trans_b: bool,
    not_use_mma_store_intrinic: bool = True,
    store_to_smem_dtype: str | None = None,
) -> dict[str, str]:
    """Names of the intrinsics that a product by ``mma`` instructions takes.

    Parameters
    ----------
    load_scope : "shared" or "shared.dyn", where operands are loaded from.
    store_scope : "global", "shared" or "shared.dyn", where results go.
    a_dtype, b_dtype : one type, "float16", "int8", "e4m3_float8" or "e5m2_float8".
    out_dtype : "float16" or "float32", "int32" for bytes that are integers.
    trans_a, trans_b : whether operands are depth x rows, and columns x depth, in memory.
    not_use_mma_store_intrinic : store elements one by one instead of by ``T.mma_store``.
    store_to_smem_dtype : element type of the stored tile, if not `out_dtype`.

    Returns
    -------
    Names by ``init``, ``load_a``, ``load_b``, ``compute`` and ``store``.

    Raises
    ------
    ValueError : there is no intrinsic for these types, scopes or transpositions.
    """
    for dtype in (a_dtype, b_dtype, out_dtype, store_to_smem_dtype or out_dtype):
        if dtype not in _SHORT:
            kinds = ", ".join(_SHORT)
            raise tvm.error.ValueError(
                f"get_mma_intrin_group: no products of {dtype}; there are {kinds}"
            )
    left, right, out = _SHORT[a_dtype], _SHORT[b_dtype], _SHORT[out_dtype]
    stored = _SHORT[store_to_smem_dtype or out_dtype]
    flip_a, flip_b = "_trans" if trans_a else "", "_trans" if trans_b else ""
    dyn = "_dyn" if load_scope == "shared.dyn" else ""
    simple = "simple_" if not_use_mma_store_intrinic else ""
    group = {
        "init": f"mma_fill_16x16_{out}",
        "load_a": f"mma_ldmatrix_{left}_a{flip_a}{dyn}",
        "load_b": f"mma_ldmatrix_{right}_b{flip_b}{dyn}",
        "compute": f"mma_{left}{right}{out}{flip_a and '_trans_a'}{flip_b and '_trans_b'}",
        "store": f"mma_store_16x16_{stored}_{store_scope.replace('.', '_')}_{simple}",
    }
    missing = [name for name in group.values() if TensorIntrin.get(name, True) is None]
    if missing or load_scope not in ("shared", "shared.dyn"):
        raise tvm.error.ValueError(
            f"get_mma_intrin_group: there is no {', '.join(missing) or f'load from {load_scope}'}; "
            "products are of float16 to float16 or float32, of int8 to int32 and of float8 to "
            "float32, and only float16 has a transposed A"
        )
    return group
