"""Tensor intrinsics of ARM: dot products of bytes on Neon, with and without the instruction."""

from __future__ import annotations

from ..buffer import Buffer
from ..expr import Broadcast, PrimExpr, Ramp, const
from ..function import TensorIntrin
from ..op import call_llvm_pure_intrin, reinterpret
from ..statement import BufferStore, Stmt
from .describe import dot_product, load_lanes
from .dot_product_common import (
    DP4A_S8S8S32_INTRIN,
    DP4A_S8U8S32_INTRIN,
    DP4A_U8S8S32_INTRIN,
    DP4A_U8U8U32_INTRIN,
)

__all__ = [
    "ARM_DOT_4x4_i8_NEON_INTRIN",
    "ARM_DOT_4x4_i8_SDOT_INTRIN",
    "ARM_DOT_4x4_u8_HDOT_INTRIN",
    "ARM_DOT_4x4_u8_UDOT_INTRIN",
    "DP4A_S8S8S32_INTRIN",
    "DP4A_S8U8S32_INTRIN",
    "DP4A_U8S8S32_INTRIN",
    "DP4A_U8U8U32_INTRIN",
]


def _lanes() -> PrimExpr:
    return Ramp(const(0, "int32"), const(1, "int32"), 4)


def _dot(instruction: str, kind: str, result: str):
    """The instruction that sums up four products of bytes in each of four lanes."""

    def implement(a: Buffer, b: Buffer, c: Buffer) -> Stmt:
        word = reinterpret("int32", load_lanes(a, [0], 4))
        bytes_of_a = reinterpret(f"{kind}x16", Broadcast(word, 4))
        at = _lanes()
        total = call_llvm_pure_intrin(
            f"{result}x4", instruction, c[at], bytes_of_a, load_lanes(b, [0, 0], 16)
        )
        return BufferStore(c, total, [at])

    return implement


def _neon(a: Buffer, b: Buffer, c: Buffer) -> Stmt:
    """Products as int16, then two additions of neighbours."""
    word = reinterpret("int32", load_lanes(a, [0], 4))
    pair = reinterpret("int8x8", Broadcast(word, 2))

    def half(row: int) -> PrimExpr:
        products = call_llvm_pure_intrin(
            "int16x8", "llvm.aarch64.neon.smull.v8i16", pair, load_lanes(b, [row, 0], 8)
        )
        return call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.saddlp.v4i32.v8i16", products)

    at = _lanes()
    sums = call_llvm_pure_intrin("int32x4", "llvm.aarch64.neon.addp.v4i32", half(0), half(2))
    return BufferStore(c, c[at] + sums, [at])


_SDOT = "llvm.aarch64.neon.sdot.v4i32.v16i8"
_UDOT = "llvm.aarch64.neon.udot.v4i32.v16i8"

ARM_DOT_4x4_i8_NEON_INTRIN = "dot_4x4_i8i8s32_neon"
TensorIntrin.register(
    ARM_DOT_4x4_i8_NEON_INTRIN, *dot_product(4, 4, ("int8", "int8", "int32"), _neon)
)

ARM_DOT_4x4_i8_SDOT_INTRIN = "dot_4x4_i8i8s32_sdot"
TensorIntrin.register(
    ARM_DOT_4x4_i8_SDOT_INTRIN,
    *dot_product(4, 4, ("int8", "int8", "int32"), _dot(_SDOT, "int8", "int32")),
)

ARM_DOT_4x4_u8_UDOT_INTRIN = "dot_4x4_u8u8u32_udot"
TensorIntrin.register(
    ARM_DOT_4x4_u8_UDOT_INTRIN,
    *dot_product(4, 4, ("uint8", "uint8", "uint32"), _dot(_UDOT, "uint8", "uint32")),
)

ARM_DOT_4x4_u8_HDOT_INTRIN = "dot_4x4_u8u8i32_hdot"
TensorIntrin.register(
    ARM_DOT_4x4_u8_HDOT_INTRIN,
    *dot_product(4, 4, ("uint8", "uint8", "int32"), _dot(_UDOT, "uint8", "int32")),
)
