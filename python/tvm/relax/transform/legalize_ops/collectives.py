"""Exchanges between workers as calls of functions of the runtime."""

from __future__ import annotations

from tvm import te, tir
from tvm.ir import RelayExpr

from ...block_builder import BlockBuilder
from ...expr import Call, ShapeExpr
from ...op import attrs_of, call_dps_packed, call_pure_packed, permute_dims, reshape
from ...op.ccl import REDUCTIONS
from ...struct_info import ShapeStructInfo
from .common import register_legalize

__all__: list[str] = []


def _allreduce(builder: BlockBuilder, call: Call) -> RelayExpr:
    code = REDUCTIONS.index(str(call.attrs["op_type"]))
    operands = [call.args[0], ShapeExpr([code])]
    return call_dps_packed("runtime.disco.allreduce", operands, call.struct_info)


def _as_it_is(builder: BlockBuilder, call: Call) -> RelayExpr:
    name = str(call.op.name).removeprefix("relax.ccl.")
    return call_dps_packed(f"runtime.disco.{name}", [call.args[0]], call.struct_info)


def _scatter(builder: BlockBuilder, call: Call) -> RelayExpr:
    """The runtime hands out equal parts of the memory, so the parts must lie behind each other."""
    settings = attrs_of(call)
    count, axis = settings["num_workers"], settings["axis"]
    data = call.args[0]
    shape = data.struct_info.shape
    if not isinstance(shape, ShapeExpr):
        return call
    if axis > 0:
        extents = list(shape.values)
        split = [*extents[:axis], count, extents[axis] // count, *extents[axis + 1 :]]
        order = [axis, *(i for i in range(len(split)) if i != axis)]
        parts = builder.emit(reshape(data, split))
        data = builder.emit(permute_dims(parts, order))
    return call_dps_packed("runtime.disco.scatter_from_worker0", [data], call.struct_info)


def _own_part(builder: BlockBuilder, call: Call) -> RelayExpr:
    """The worker's number is a symbolic extent, which the runtime is asked for."""
    settings = attrs_of(call)
    count, axis = settings["num_workers"], settings["axis"]
    number = tir.Var("worker_id", "int64")
    asked = call_pure_packed("runtime.disco.worker_id", sinfo_args=[ShapeStructInfo(ndim=1)])
    builder.match_cast(builder.emit(asked), ShapeStructInfo([number]))

    def part(whole: te.Tensor, worker: tir.Var) -> te.Tensor:
        size = whole.shape[axis] // count
        shape = [size if i == axis else extent for i, extent in enumerate(whole.shape)]
        return te.compute(
            shape,
            lambda *at: whole(*(i + worker * size if k == axis else i for k, i in enumerate(at))),
            name="redistribute_replica_to_shard",
        )

    return builder.call_te(
        part, call.args[0], number, primfunc_name_hint="redistribute_replica_to_shard"
    )


register_legalize("relax.ccl.allreduce", _allreduce)
register_legalize("relax.ccl.allgather", _as_it_is)
register_legalize("relax.ccl.broadcast_from_worker0", _as_it_is)
register_legalize("relax.ccl.scatter_from_worker0", _scatter)
register_legalize("relax.dist.redistribute_replica_to_shard", _own_part)
