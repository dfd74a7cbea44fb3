"""Products of bytes summed up by one instruction, four to an int32, where the processor has it."""

from __future__ import annotations

from dataclasses import dataclass

from tvm import te, tir
from tvm.target import Target
from tvm.target.machine import sums_byte_products

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
    return ByteDot(_DEPTH, _vpdpbusd(lanes)) if sums_byte_products(target) else None


def _vpdpbusd(lanes: int) -> te.TensorIntrin:
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
        total = tir.call_llvm_pure_intrin(
            vector,
            f"llvm.x86.avx512.vpdpbusd.{32 * lanes}",
            out.vload([0], vector),
            tir.Broadcast(word, lanes),
            tir.reinterpret(vector, rows.vload([0, 0], f"int8x{lanes * _DEPTH}")),
        )
        nothing = out.vstore([0], tir.Broadcast(tir.const(0, "int32"), lanes))
        return None, nothing, out.vstore([0], total)

    return te.decl_tensor_intrin(sums.op, code, name="vpdpbusd")
