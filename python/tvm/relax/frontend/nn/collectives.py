"""Exchanges between the workers that run a network together, see :mod:`tvm.relax.op.ccl`."""

from __future__ import annotations

from ...op import ccl
from .tensor import Tensor, wrap_nested

__all__ = ["ccl_allgather", "ccl_allreduce", "ccl_broadcast_from_worker0"]


def ccl_allreduce(x: Tensor, op_type: str = "sum", name: str = "ccl_allreduce") -> Tensor:
    """The sum of the workers' tensors; or "prod", "min", "max" or "avg"."""
    return wrap_nested(ccl.allreduce(x._expr, op_type), name)


def ccl_allgather(x: Tensor, num_workers: int, name: str = "ccl_allgather") -> Tensor:
    """The workers' tensors behind each other along the first dimension."""
    return wrap_nested(ccl.allgather(x._expr, num_workers), name)


def ccl_broadcast_from_worker0(x: Tensor, name: str = "broadcast_from_worker") -> Tensor:
    """The tensor of the first worker."""
    return wrap_nested(ccl.broadcast_from_worker0(x._expr), name)
