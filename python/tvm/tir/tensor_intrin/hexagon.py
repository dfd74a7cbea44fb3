"""Tensor intrinsics of Hexagon's vector unit: dot products of bytes and of halves."""

from __future__ import annotations

from collections.abc import Callable

from ..buffer import Buffer
from ..expr import Broadcast, Ramp, const
from ..function import TensorIntrin
from ..op import call_llvm_pure_intrin, reinterpret
from ..statement import BufferStore, Stmt
from .describe import dot_product, load_lanes

__all__ = ["VDMPY_i16i16i32_INTRIN", "VRMPY_u8i8i32_INTRIN", "VRMPY_u8u8i32_INTRIN"]


def _multiply(instruction: str, depth: int) -> Callable[[Buffer, Buffer, Buffer], Stmt]:
    """32 lanes, each a sum of `depth` products with one word of the first operand."""

    def implement(a: Buffer, b: Buffer, c: Buffer) -> Stmt:
        word = reinterpret("int32", load_lanes(a, [0], depth))
        rows = reinterpret("int32x32", load_lanes(b, [0, 0], 32 * depth))
        at = Ramp(const(0, "int32"), const(1, "int32"), 32)
        total = call_llvm_pure_intrin("int32x32", instruction, c[at], rows, Broadcast(word, 32))
        return BufferStore(c, total, [at])

    return implement


VRMPY_u8u8i32_INTRIN = "dot_32x4_u8u8i32_vrmpy"
TensorIntrin.register(
    VRMPY_u8u8i32_INTRIN,
    *dot_product(
        32, 4, ("uint8", "uint8", "int32"), _multiply("llvm.hexagon.V6.vrmpyubv.acc.128B", 4)
    ),
)

VRMPY_u8i8i32_INTRIN = "dot_32x4_u8i8i32_vrmpy"
TensorIntrin.register(
    VRMPY_u8i8i32_INTRIN,
    *dot_product(
        32, 4, ("uint8", "int8", "int32"), _multiply("llvm.hexagon.V6.vrmpybusv.acc.128B", 4)
    ),
)

VDMPY_i16i16i32_INTRIN = "dot_32x2_i16i16i32_vdmpy"
TensorIntrin.register(
    VDMPY_i16i16i32_INTRIN,
    *dot_product(
        32, 2, ("int16", "int16", "int32"), _multiply("llvm.hexagon.V6.vdmpyhvsat.acc.128B", 2)
    ),
)
