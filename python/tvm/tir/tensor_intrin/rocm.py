"""Tensor intrinsics of AMD's GPUs: dot products of bytes, and matrix cores (MFMA).

A wavefront of 64 threads holds a tile of a matrix, `local` elements in each thread; the layout
functions say which thread has which element (AMD's matrix instruction calculator).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..buffer import Buffer
from ..expr import Cast, IterVar, PrimExpr, Ramp, Var, const
from ..function import TensorIntrin
from ..op import call_llvm_pure_intrin, reinterpret
from ..statement import BufferStore, For, ForKind, SeqStmt, Stmt
from .describe import dot_product, function_of_block, load_lanes, nest, operand

__all__ = [
    "AMDGPU_SDOT4_INTRIN",
    "ROCM_MFMA_LOAD_16x4_A_SHARED_f32_INTRIN",
    "ROCM_MFMA_LOAD_16x4_B_SHARED_f32_INTRIN",
    "ROCM_MFMA_LOAD_16x16_A_SHARED_f16_INTRIN",
    "ROCM_MFMA_LOAD_16x16_A_SHARED_s8_INTRIN",
    "ROCM_MFMA_LOAD_16x16_B_SHARED_f16_INTRIN",
    "ROCM_MFMA_LOAD_16x16_B_SHARED_s8_INTRIN",
    "ROCM_MFMA_STORE_16x16_f32_INTRIN",
    "ROCM_MFMA_STORE_16x16_s32_INTRIN",
    "ROCM_MFMA_f16f16f32_INTRIN",
    "ROCM_MFMA_f32f32f32_INTRIN",
    "ROCM_MFMA_fill_16x16_f32_INTRIN",
    "ROCM_MFMA_fill_16x16_i32_INTRIN",
    "ROCM_MFMA_s8s8s32_INTRIN",
    "shared_4x16_to_local_64x1_layout_B",
    "shared_16x4_to_local_64x1_layout_A",
    "shared_16x16_to_local_64x4_layout_A",
    "shared_16x16_to_local_64x4_layout_B",
    "shared_16x16_to_local_64x4_layout_C",
]

_WAVE = 64
Place = tuple[Any, Any]


def _sdot4(a: Buffer, b: Buffer, c: Buffer) -> Stmt:
    words = [reinterpret("int32", load_lanes(buffer, [0], 4)) for buffer in (a, b)]
    clamp = const(True, "bool")
    total = call_llvm_pure_intrin("int32", "llvm.amdgcn.sdot4.i32", *words, c[0], clamp)
    return BufferStore(c, total, [0])


AMDGPU_SDOT4_INTRIN = "sdot4"
TensorIntrin.register(
    AMDGPU_SDOT4_INTRIN,
    *dot_product(0, 4, ("int8", "int8", "int32"), _sdot4, ("shared", "shared", "local")),
)


def shared_16x4_to_local_64x1_layout_A(i: Any, j: Any) -> Place:
    """Thread and position of element (i, j) of a left operand of 16 x 4."""
    return j * 16 + i, 0


def shared_4x16_to_local_64x1_layout_B(i: Any, j: Any) -> Place:
    """Thread and position of element (i, j) of a right operand of 4 x 16."""
    return i * 16 + j, 0


def shared_16x16_to_local_64x4_layout_A(i: Any, j: Any) -> Place:
    """Thread and position of element (i, j) of a left operand of 16 x 16."""
    return i + 16 * (j // 4), j % 4


def shared_16x16_to_local_64x4_layout_B(i: Any, j: Any) -> Place:
    """Thread and position of element (i, j) of a right operand of 16 x 16."""
    return j + 16 * (i // 4), i % 4


def shared_16x16_to_local_64x4_layout_C(i: Any, j: Any) -> Place:
    """Thread and position of element (i, j) of a result of 16 x 16."""
    return j + 16 * (i // 4), i % 4


def _of_thread(layout: Callable[[Any, Any], Place], rows: int, thread: Any, at: int) -> Place:
    """Element that a thread has at a position: the layouts above the other way round."""
    if layout is shared_16x4_to_local_64x1_layout_A:
        return thread % 16, thread // 16
    if layout is shared_4x16_to_local_64x1_layout_B:
        return thread // 16, thread % 16
    if layout is shared_16x16_to_local_64x4_layout_A:
        return thread % 16, thread // 16 * 4 + at
    return thread // 16 * 4 + at, thread % 16


def _each_thread(body: Callable[[Var], Stmt]) -> Stmt:
    thread = Var("tx", "int32")
    axis = IterVar(None, Var("threadIdx.x", "int32"), IterVar.ThreadIndex, "threadIdx.x")
    return For(thread, 0, _WAVE, ForKind.THREAD_BINDING, body(thread), axis)


def _warp(name: str, dtype: str, local: int) -> Buffer:
    return operand(name, (_WAVE, local), dtype, "warp")


def _register_load(
    name: str, shape: tuple[int, int], dtype: str, layout: Callable[[Any, Any], Place]
) -> str:
    local = shape[0] * shape[1] // _WAVE

    def params() -> tuple[Buffer, Buffer]:
        return operand("A", shape, dtype, "shared"), _warp("W", dtype, local)

    a, w = params()
    copy = nest(shape, "SS", "load", lambda i, j: BufferStore(w, a[i, j], list(layout(i, j))))
    desc = function_of_block([a, w], [a], [w], copy)
    x, y = params()

    def load(thread: Var) -> Stmt:
        stores = [
            BufferStore(y, x[_of_thread(layout, shape[0], thread, at)], [thread, at])
            for at in range(local)
        ]
        return SeqStmt(stores) if local > 1 else stores[0]

    impl = function_of_block([x, y], [x], [y], _each_thread(load))
    TensorIntrin.register(name, desc, impl)
    return name


def _register_fill(name: str, dtype: str) -> str:
    layout = shared_16x16_to_local_64x4_layout_C
    c = _warp("C", dtype, 4)
    zero = const(0, dtype)
    body = nest([16, 16], "SS", "init", lambda i, j: BufferStore(c, zero, list(layout(i, j))))
    desc = function_of_block([c], [], [c], body)
    z = _warp("C", dtype, 4)
    fill = _each_thread(lambda tx: SeqStmt([BufferStore(z, zero, [tx, at]) for at in range(4)]))
    impl = function_of_block([z], [], [z], fill)
    TensorIntrin.register(name, desc, impl)
    return name


def _register_store(name: str, dtype: str) -> str:
    layout = shared_16x16_to_local_64x4_layout_C

    def params() -> tuple[Buffer, Buffer]:
        return _warp("W", dtype, 4), operand("C", (16, 16), dtype)

    w, c = params()
    body = nest([16, 16], "SS", "store", lambda i, j: BufferStore(c, w[layout(i, j)], [i, j]))
    desc = function_of_block([w, c], [w], [c], body)
    x, y = params()

    def store(thread: Var) -> Stmt:
        return SeqStmt(
            [
                BufferStore(y, x[thread, at], list(_of_thread(layout, 16, thread, at)))
                for at in range(4)
            ]
        )

    impl = function_of_block([x, y], [x], [y], _each_thread(store))
    TensorIntrin.register(name, desc, impl)
    return name


def _register_product(
    name: str,
    depth: int,
    dtypes: tuple[str, str],
    layouts: tuple[Callable[[Any, Any], Place], Callable[[Any, Any], Place]],
    instruction: str,
) -> str:
    in_dtype, out_dtype = dtypes
    local = 16 * depth // _WAVE

    def params() -> tuple[Buffer, Buffer, Buffer]:
        made = _warp("A", in_dtype, local), _warp("B", in_dtype, local)
        return (*made, _warp("C", out_dtype, 4))

    a, b, c = params()

    def update(i: Var, j: Var, k: Var) -> Stmt:
        left, right = a[layouts[0](i, k)], b[layouts[1](k, j)]
        if in_dtype != out_dtype:
            left, right = Cast(out_dtype, left), Cast(out_dtype, right)
        at = shared_16x16_to_local_64x4_layout_C(i, j)
        return BufferStore(c, c[at] + left * right, list(at))

    body = nest([16, 16, depth], "SSR", "update", update)
    desc = function_of_block([a, b, c], [c, a, b], [c], body)
    x, y, z = params()

    def lanes(buffer: Buffer, thread: Var, count: int) -> PrimExpr:
        if count == 1:
            return buffer[thread, 0]
        return buffer[thread, Ramp(const(0, "int32"), const(1, "int32"), count)]

    def multiply(thread: Var) -> Stmt:
        left, right = lanes(x, thread, local), lanes(y, thread, local)
        if in_dtype == "int8":
            left, right = reinterpret("int32", left), reinterpret("int32", right)
        zero = const(0, "int32")
        total = call_llvm_pure_intrin(
            f"{out_dtype}x4", instruction, left, right, lanes(z, thread, 4), zero, zero, zero
        )
        return BufferStore(z, total, [thread, Ramp(zero, const(1, "int32"), 4)])

    impl = function_of_block([x, y, z], [z, x, y], [z], _each_thread(multiply))
    TensorIntrin.register(name, desc, impl)
    return name


_A4, _B4 = shared_16x4_to_local_64x1_layout_A, shared_4x16_to_local_64x1_layout_B
_A16, _B16 = shared_16x16_to_local_64x4_layout_A, shared_16x16_to_local_64x4_layout_B

ROCM_MFMA_fill_16x16_f32_INTRIN = _register_fill("ROCM_mfma_fill_16x16_f32", "float32")
ROCM_MFMA_fill_16x16_i32_INTRIN = _register_fill("ROCM_mfma_fill_16x16_i32", "int32")
ROCM_MFMA_LOAD_16x4_A_SHARED_f32_INTRIN = _register_load(
    "rocm_mfma_load_16x4_a_shared_f32", (16, 4), "float32", _A4
)
ROCM_MFMA_LOAD_16x4_B_SHARED_f32_INTRIN = _register_load(
    "rocm_mfma_load_b_16x4_shared_f32", (4, 16), "float32", _B4
)
ROCM_MFMA_LOAD_16x16_A_SHARED_f16_INTRIN = _register_load(
    "rocm_mfma_load_16x16_a_shared_f16", (16, 16), "float16", _A16
)
ROCM_MFMA_LOAD_16x16_B_SHARED_f16_INTRIN = _register_load(
    "rocm_mfma_load_b_16x16_shared_f16", (16, 16), "float16", _B16
)
ROCM_MFMA_LOAD_16x16_A_SHARED_s8_INTRIN = _register_load(
    "rocm_mfma_load_16x16_a_shared_s8", (16, 16), "int8", _A16
)
ROCM_MFMA_LOAD_16x16_B_SHARED_s8_INTRIN = _register_load(
    "rocm_mfma_load_b_16x16_shared_s8", (16, 16), "int8", _B16
)
ROCM_MFMA_f32f32f32_INTRIN = _register_product(
    "rocm_mfma_f32f32f32", 4, ("float32", "float32"), (_A4, _B4),
    "llvm.amdgcn.mfma.f32.16x16x4f32",
)  # fmt: skip
ROCM_MFMA_f16f16f32_INTRIN = _register_product(
    "rocm_mfma_f16f16f32", 16, ("float16", "float32"), (_A16, _B16),
    "llvm.amdgcn.mfma.f32.16x16x16f16",
)  # fmt: skip
ROCM_MFMA_s8s8s32_INTRIN = _register_product(
    "rocm_mfma_s8s8s32", 16, ("int8", "int32"), (_A16, _B16),
    "llvm.amdgcn.mfma.i32.16x16x16i8",
)  # fmt: skip
ROCM_MFMA_STORE_16x16_f32_INTRIN = _register_store("rocm_mfma_store_16x16_f32", "float32")
ROCM_MFMA_STORE_16x16_s32_INTRIN = _register_store("rocm_mfma_store_16x16_s32", "int32")
