"""Operators of tensors on several devices (:mod:`tvm.relax.distributed`)."""

from __future__ import annotations

from tvm import error, tir
from tvm.ir import RelayExpr

from ..dtensor import DeviceMesh, DTensorStructInfo, Placement
from ..expr import Call
from ..struct_info import StructInfo
from .base import make_call
from .calls import call_tir_local_view
from .registry import register_rule
from .rules import known_shape, number, tensor, with_shape

__all__ = [
    "annotate_sharding",
    "call_tir_local_view",
    "redistribute",
    "redistribute_replica_to_shard",
]


def annotate_sharding(input: RelayExpr, device_mesh: DeviceMesh, placement: Placement) -> Call:
    """The tensor, of which it is said how it shall lie on a mesh.

    `relax.distributed.transform.PropagateSharding` finds out how the others lie then.
    """
    return make_call("dist.annotate_sharding", input, device_mesh=device_mesh, placement=placement)


def redistribute(input: RelayExpr, device_mesh: DeviceMesh, placement: Placement) -> Call:
    """The tensor, lying in another way.

    Raises
    ------
    TypeError : it is no tensor on several devices.
    """
    return make_call("dist.redistribute", input, device_mesh=device_mesh, placement=placement)


def redistribute_replica_to_shard(input: RelayExpr, num_workers: int, axis: int) -> Call:
    """For each device its part of a tensor that all of them have.

    Raises
    ------
    ValueError : the axis cannot be divided equally.
    """
    return make_call(
        "dist.redistribute_replica_to_shard", input, num_workers=int(num_workers), axis=int(axis)
    )


def _annotated(call: Call) -> StructInfo:
    return call.args[0].struct_info


def _redistributed(call: Call) -> StructInfo:
    info = call.args[0].struct_info
    if not isinstance(info, DTensorStructInfo):
        raise error.TypeError(f"relax.dist.redistribute: takes a DTensor, got {info}")
    return DTensorStructInfo(info.tensor_sinfo, call.attrs["device_mesh"], call.attrs["placement"])


def _parts(call: Call) -> StructInfo:
    count, axis = int(call.attrs["num_workers"]), int(call.attrs["axis"])
    info = call.args[0].struct_info
    whole = info.tensor_sinfo if isinstance(info, DTensorStructInfo) else tensor(call, 0)
    shape = known_shape(whole)
    if shape is None or not 0 <= axis < len(shape):
        raise error.ValueError(f"{call.op.name}: there is no axis {axis} of known extent in {info}")
    extent = number(shape[axis])
    if extent is not None and extent % count:
        raise error.ValueError(
            f"{call.op.name}: {extent} elements along axis {axis} cannot be divided equally among "
            f"{count} workers"
        )
    if isinstance(info, DTensorStructInfo):
        return DTensorStructInfo(whole, info.device_mesh, f"S[{axis}]")
    shape[axis] = tir.floordiv(shape[axis], tir.const(count, str(shape[axis].dtype)))
    return with_shape(shape, whole.dtype, whole.vdevice)


register_rule("dist.annotate_sharding", _annotated)
register_rule("dist.redistribute", _redistributed)
register_rule("dist.redistribute_replica_to_shard", _parts)
