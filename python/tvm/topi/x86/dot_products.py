"""Products of short numbers summed up in 32 bits, several at a time."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from tvm import DataType, te, tir
from tvm.target import Target
from tvm.target.machine import int16_vector_width, sums_bfloat16_products, sums_byte_products

from ..utils import as_int

__all__ = ["DotInstruction", "dot_instruction"]


@dataclass(frozen=True)
class DotInstruction:
    """An instruction on a vector of sums.

    Attributes
    ----------
    depth : neighbouring steps of the reduction that it takes at once.
    intrinsic : for ``Stage.tensorize``, of a loop over the lanes of a vector and one over the
        depth; weights are stored as (..., lanes, depth).
    """

    depth: int
    intrinsic: te.TensorIntrin


def dot_instruction(product: te.Tensor, lanes: int, target: Target) -> DotInstruction | None:
    """The instruction for a product or convolution, None where there is none.

    Bytes: with VNNI, it is one; other processors of x86 take even and odd bytes as 16-bit integers,
    whose products they sum up in pairs. Both are exact. bfloat16: with the instructions of AVX-512
    for it, which take denormal numbers for zeros.

    Parameters
    ----------
    product : int32 sums of uint8 data times int8 weights, or float32 sums of bfloat16 ones, along
        the data's last axis innermost.
    lanes : elements of a vector of sums.
    """
    data, weight = product.op.input_tensors
    found = _KINDS.get((data.dtype, weight.dtype, product.dtype))
    if found is None or lanes not in (4, 8, 16):
        return None
    depth = 4 // DataType(data.dtype).itemsize
    if as_int(product.op.reduce_axis[-1].dom.extent) % depth:
        return None
    update = found(lanes, target)
    return None if update is None else DotInstruction(depth, _intrinsic(data.dtype, lanes, update))


# From sums, the same four bytes of data in each lane and four bytes of weights in each, both as
# int32, the new sums.
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


def _dpbf16ps(
    lanes: int, sums: tir.PrimExpr, data: tir.PrimExpr, weight: tir.PrimExpr
) -> tir.PrimExpr:
    name = f"llvm.x86.avx512bf16.dpbf16ps.{32 * lanes}"
    pairs = [tir.reinterpret(f"bfloat16x{2 * lanes}", value) for value in (data, weight)]
    return tir.call_llvm_pure_intrin(f"float32x{lanes}", name, sums, *pairs)


def _of_bytes(lanes: int, target: Target) -> _Update | None:
    if sums_byte_products(target):
        return _vpdpbusd
    return _vpmaddwd if 32 * lanes <= int16_vector_width(target) else None


def _of_bfloat16(lanes: int, target: Target) -> _Update | None:
    return _dpbf16ps if sums_bfloat16_products(target) else None


# By the types of data, weights and sums.
_KINDS: dict[tuple[str, str, str], Callable[[int, Target], _Update | None]] = {
    ("uint8", "int8", "int32"): _of_bytes,
    ("bfloat16", "bfloat16", "float32"): _of_bfloat16,
}


@functools.cache
def _intrinsic(dtype: str, lanes: int, update: _Update) -> te.TensorIntrin:
    """sums[i] += data[0] * weight[i, 0] + data[1] * weight[i, 1] + ..., over four bytes of data."""
    is_real = dtype == "bfloat16"
    total, factor = ("float32", dtype) if is_real else ("int32", "int8")
    depth = 4 // DataType(dtype).itemsize
    data = te.placeholder((depth,), dtype, name="data")
    weight = te.placeholder((lanes, depth), factor, name="weight")
    k = te.reduce_axis((0, depth), name="k")
    sums = te.compute(
        (lanes,),
        lambda i: te.sum(data[k].astype(total) * weight[i, k].astype(total), axis=k),
        name="sums",
    )

    def code(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tuple[None, tir.Stmt, tir.Stmt]:
        (given, rows), (out,) = ins, outs
        word = tir.reinterpret("int32", given.vload([0], f"{dtype}x{depth}"))
        words = tir.reinterpret(f"int32x{lanes}", rows.vload([0, 0], f"{factor}x{lanes * depth}"))
        old = out.vload([0], f"{total}x{lanes}")
        new = update(lanes, old, tir.Broadcast(word, lanes), words)
        nothing = out.vstore([0], tir.Broadcast(tir.const(0, total), lanes))
        return None, nothing, out.vstore([0], new)

    return te.decl_tensor_intrin(sums.op, code, name=update.__name__.removeprefix("_"))
