"""Operators by which the workers of a session (:mod:`tvm.runtime.disco`) exchange tensors.

All workers run the same program; each of these is a meeting that all of them reach.
"""

from __future__ import annotations

from typing import Any

from tvm import error, tir
from tvm.ir import RelayExpr

from ..expr import Call
from ..struct_info import TensorStructInfo
from .base import make_call
from .registry import register_rule
from .rules import known_shape, number, opaque_tensor, setting, tensor, unary_rule, with_shape

__all__ = ["REDUCTIONS", "allgather", "allreduce", "broadcast_from_worker0", "scatter_from_worker0"]

REDUCTIONS = ("sum", "prod", "min", "max", "avg")
"""What ``allreduce`` makes of the tensors, by the numbers that its kernels know."""


def allreduce(x: RelayExpr, op_type: str = "sum") -> Call:
    """The sum of the workers' tensors, for all of them; or product, least, greatest or mean.

    Raises
    ------
    ValueError : `op_type` is none of `REDUCTIONS`.
    """
    if op_type not in REDUCTIONS:
        raise error.ValueError(
            f"relax.ccl.allreduce: op_type is one of {', '.join(REDUCTIONS)}, got {op_type!r}"
        )
    return make_call("ccl.allreduce", x, op_type=op_type)


def allgather(x: RelayExpr, num_workers: int) -> Call:
    """The workers' tensors behind each other along the first dimension, for all of them."""
    return make_call("ccl.allgather", x, num_workers=int(num_workers))


def broadcast_from_worker0(x: RelayExpr) -> Call:
    """The tensor of the first worker, for all of them."""
    return make_call("ccl.broadcast_from_worker0", x)


def scatter_from_worker0(x: RelayExpr, num_workers: int, axis: int = 0) -> Call:
    """For each worker its part of the first worker's tensor along an axis.

    Raises
    ------
    ValueError : the axis cannot be divided equally.
    """
    return make_call("ccl.scatter_from_worker0", x, num_workers=int(num_workers), axis=int(axis))


def _workers(call: Call) -> int:
    count = int(setting(call, "num_workers"))
    if count < 1:
        raise error.ValueError(f"{call.op.name}: num_workers must be at least 1, got {count}")
    return count


def _gathered(call: Call) -> TensorStructInfo:
    info, count = tensor(call, 0), _workers(call)
    shape = known_shape(info)
    if shape is None:
        return opaque_tensor(info.dtype, info.ndim, info.vdevice)
    if not shape:
        raise error.ValueError(f"{call.op.name}: takes a tensor of at least one dimension")
    return with_shape([shape[0] * count, *shape[1:]], info.dtype, info.vdevice)


def _scattered(call: Call) -> TensorStructInfo:
    info, count, axis = tensor(call, 0), _workers(call), int(setting(call, "axis", 0))
    shape: list[Any] | None = known_shape(info)
    if shape is None:
        return opaque_tensor(info.dtype, info.ndim, info.vdevice)
    if not 0 <= axis < len(shape):
        raise error.ValueError(f"{call.op.name}: axis {axis} of {len(shape)} dimensions")
    extent = number(shape[axis])
    if extent is not None and extent % count:
        raise error.ValueError(
            f"{call.op.name}: {extent} elements along axis {axis} cannot be divided equally among "
            f"{count} workers"
        )
    shape[axis] = tir.floordiv(shape[axis], tir.const(count, str(shape[axis].dtype)))
    return with_shape(shape, info.dtype, info.vdevice)


register_rule("ccl.allreduce", unary_rule())
register_rule("ccl.broadcast_from_worker0", unary_rule())
register_rule("ccl.allgather", _gathered)
register_rule("ccl.scatter_from_worker0", _scattered)
