"""Tensor intrinsics of x86: dot products of bytes, by VNNI and by plain AVX-512."""

from __future__ import annotations

from ..buffer import Buffer
from ..expr import Broadcast, PrimExpr, Ramp, const
from ..function import TensorIntrin
from ..op import call_llvm_pure_intrin, reinterpret
from ..statement import BufferStore, Stmt
from .describe import dot_product, load_lanes

__all__ = ["AVX512_DOT_16x4_INTRIN", "VNNI_DOT_16x4_INTRIN", "dot_product_16x4_u8i8i32_desc"]


def _operands(a: Buffer, b: Buffer) -> tuple[PrimExpr, PrimExpr]:
    """Four bytes of A for each of 16 lanes, and 16 rows of four bytes of B."""
    word = reinterpret("int32", load_lanes(a, [0], 4))
    return Broadcast(word, 16), load_lanes(b, [0, 0], 64)


def _vnni(a: Buffer, b: Buffer, c: Buffer) -> Stmt:
    words, rows = _operands(a, b)
    at = Ramp(const(0, "int32"), const(1, "int32"), 16)
    name = "llvm.x86.avx512.vpdpbusd.512"
    total = call_llvm_pure_intrin("int32x16", name, c[at], words, reinterpret("int32x16", rows))
    return BufferStore(c, total, [at])


def _avx512(a: Buffer, b: Buffer, c: Buffer) -> Stmt:
    words, rows = _operands(a, b)
    at = Ramp(const(0, "int32"), const(1, "int32"), 16)
    # Pairs of bytes to int16 with saturation, then pairs of those to int32.
    pairs = call_llvm_pure_intrin(
        "int16x32", "llvm.x86.avx512.pmaddubs.w.512", reinterpret("uint8x64", words), rows
    )
    ones = Broadcast(const(1, "int16"), 32)
    sums = call_llvm_pure_intrin("int32x16", "llvm.x86.avx512.pmaddw.d.512", pairs, ones)
    return BufferStore(c, c[at] + sums, [at])


#: What both do: each of 16 rows of B times four bytes of A.
dot_product_16x4_u8i8i32_desc, dot_product_16x4_u8i8i32_vnni = dot_product(
    16, 4, ("uint8", "int8", "int32"), _vnni
)

VNNI_DOT_16x4_INTRIN = "dot_16x4_vnni"
TensorIntrin.register(
    VNNI_DOT_16x4_INTRIN, dot_product_16x4_u8i8i32_desc, dot_product_16x4_u8i8i32_vnni
)

#: Sums of two products are cut to 16 bits, as the instruction does.
AVX512_DOT_16x4_INTRIN = "dot_16x4_avx512"
TensorIntrin.register(
    AVX512_DOT_16x4_INTRIN, *dot_product(16, 4, ("uint8", "int8", "int32"), _avx512)
)
