"""Products of bytes summed up in int32, four at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from tvm import te, tir
from tvm.target import Target
from tvm.target.machine import int16_vector_width, sums_byte_products

__all__ = ["ByteDot", "byte_dot"]

# Products that an instruction adds to each int32.
_DEPTH = 4


@dataclass(frozen=True)
class ByteDot:
    """An instruction on a vector of sums.

    Attributes
    ----------
    depth : neighbouring steps of the reduction that it takes at once.
    intrinsic : for ``Stage.tensorize``, of a loop over the lanes of a vector and one over the
        depth; weights are stored as (..., lanes, depth).
    """

    depth: int
    intrinsic: te.TensorIntrin


def byte_dot(product: te.Tensor, lanes: int, target: Target) -> ByteDot | None:
    """The instruction for a product or convolution, None where there is none.

    With VNNI, it is one; other processors of x86 take even and odd bytes as 16-bit integers, whose
    products they sum up in pairs. Both are exact.

    Parameters
    ----------
    product : int32 sums of uint8 data times int8 weights, summed up along the data's last axis
        innermost.
    lanes : elements of a vector of sums.
    """
    data, weight = product.op.input_tensors
    if (data.dtype, weight.dtype, product.dtype) != ("uint8", "int8", "int32"):
        return None
    if lanes not in (4, 8, 16) or int(product.op.reduce_axis[-1].dom.extent) % _DEPTH:
        return None
    if sums_byte_products(target):
        return ByteDot(_DEPTH, _intrinsic(lanes, _vpdpbusd, "vpdpbusd"))
    if 32 * lanes <= int16_vector_width(target):
        return ByteDot(_DEPTH, _intrinsic(lanes, _vpmaddwd, "vpmaddwd"))
    return None


# From int32 sums, the same four bytes of data in each lane, and four bytes of weights in each, the
# new sums.
_Update = Callable[[int, tir.PrimExpr, tir.PrimExpr, tir.PrimExpr], tir.PrimExpr]


def _vpdpbusd(
    lanes: int, sums: tir.PrimExpr, data: tir.PrimExpr, weight: tir.PrimExpr
) -> tir.PrimExpr:
    name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
    return tir.call_llvm_pure_intrin(f"int32x{lanes}", name, sums, data, weight)


_VPMADDWD = {
    4: "llvm.x86.sse2.pmadd.wd",
    8: "llvm.x86.avx2.pmadd.wd",
    16: "llvm.x86.avx512.pmaddw.d.512",
}


def _vpmaddwd(
    lanes: int, sums: tir.PrimExpr, data: tir.PrimExpr, weight: tir.PrimExpr
) -> tir.PrimExpr:
    words = 2 * lanes
    eight = tir.Broadcast(tir.const(8, "int16"), words)
    unsigned = tir.reinterpret(f"uint16x{words}", data)
    even = tir.bitwise_and(unsigned, tir.Broadcast(tir.const(255, "uint16"), words))
    odd = tir.shift_right(unsigned, tir.Broadcast(tir.const(8, "uint16"), words))
    signed = tir.reinterpret(f"int16x{words}", weight)
    # Shifts to the right repeat the sign.
    low = tir.shift_right(tir.shift_left(signed, eight), eight)
    high = tir.shift_right(signed, eight)
    for left, right in ((even, low), (odd, high)):
        pairs = tir.reinterpret(f"int16x{words}", left)
        vector = f"int32x{lanes}"
        sums = sums + tir.call_llvm_pure_intrin(vector, _VPMADDWD[lanes], pairs, right)
    return sums


@functools.cache
def _intrinsic(lanes: int, update: _Update, name: str) -> te.TensorIntrin:
    """sums[i] += data[0] * weight[i, 0] + ... + data[3] * weight[i, 3]."""
    data = te.placeholder((_DEPTH,), "uint8", name="data")
    weight = te.placeholder((lanes, _DEPTH), "int8", name="weight")
    k = te.reduce_axis((0, _DEPTH), name="k")
    sums = te.compute(
        (lanes,),
        lambda i: te.sum(data[k].astype("int32") * weight[i, k].astype("int32"), axis=k),
        name="sums",
    )

    def code(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tuple[None, tir.Stmt, tir.Stmt]:
        (bytes_, rows), (out,) = ins, outs
        vector = f"int32x{lanes}"
        word = tir.reinterpret("int32", bytes_.vload([0], f"uint8x{_DEPTH}"))
        words = tir.reinterpret(vector, rows.vload([0, 0], f"int8x{lanes * _DEPTH}"))
        total = update(lanes, out.vload([0], vector), tir.Broadcast(word, lanes), words)
        nothing = out.vstore([0], tir.Broadcast(tir.const(0, "int32"), lanes))
        return None, nothing, out.vstore([0], total)

    return te.decl_tensor_intrin(sums.op, code, name=name)
