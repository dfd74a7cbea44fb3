"""From tensors on a mesh to the program that each worker runs on its parts."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import error, tir
from tvm.ir import IRModule, Op, PrimExpr, RelayExpr

from ..dtensor import DTensorStructInfo, dtensor_fields
from ..expr import (
    Call,
    Constant,
    DataflowBlock,
    ExternFunc,
    Function,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from ..expr_functor import PyExprMutator
from ..op import call_tir, ccl, known_call, permute_dims
from ..op.distributed import call_tir_local_view, redistribute_replica_to_shard
from ..op.rules import known_shape
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from ..transform.graph_pass import graph_pass
from .call_axes import axes_of_call, placement_of, tensor_operands
from .kernel_axes import AxisGroup, KernelAxes

__all__ = ["LegalizeRedistribute", "LowerDistIR", "LowerGlobalViewToLocalView"]

_CACHES = {
    "vm.builtin.distributed.attention_kv_cache_append": "vm.builtin.attention_kv_cache_append",
    "vm.builtin.distributed.attention_kv_cache_view": "vm.builtin.attention_kv_cache_view",
}


def _is_op(call: RelayExpr, name: str) -> bool:
    return isinstance(call, Call) and isinstance(call.op, Op) and str(call.op.name) == name


def _lies_on_mesh(func: Function) -> bool:
    return any(dtensor_fields(param.struct_info) for param in func.params)


def _one_dimension(info: DTensorStructInfo, where: str) -> int:
    """How many devices a mesh of one dimension has."""
    extents = info.device_mesh.extents
    if len(extents) != 1:
        raise error.ValueError(
            f"{where}: workers exchange tensors all together, so the mesh has one dimension, not "
            f"{len(extents)}: {info.device_mesh}"
        )
    return extents[0]


class _LocalViews(PyExprMutator):
    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not _is_op(call, "relax.call_tir") or not dtensor_fields(op.struct_info):
            return call
        kernel = KernelAxes(self.builder_.get()[call.args[0]])
        tensors = [placement_of(value) for value in tensor_operands(call)]
        results = dtensor_fields(op.struct_info)
        tensors += [info.placement.axes for info in results]
        mesh = results[0].device_mesh
        if len(tensors) != len(kernel.buffers):
            raise error.ValueError(
                f"LowerGlobalViewToLocalView: {call.args[0]} takes {len(kernel.buffers)} tensors, "
                f"the call has {len(tensors)}"
            )
        divided: list[tuple[AxisGroup, int]] = []
        kinds: set[str] = set()
        for at, parts in enumerate(mesh.extents):
            group = self._group(
                call, kernel, [axes[at] if axes else None for axes in tensors], parts
            )
            if group is not None:
                divided.append((group, parts))
                kinds |= set(group.partial.values())
        gvar = self.builder_.add_func(kernel.local(divided), str(call.args[0].name_hint))
        extents = call.args[2] if len(call.args) > 2 else None
        local = call_tir_local_view(gvar, call.args[1], results, extents)
        if not kinds:
            return local
        if len(kinds) > 1 or len(results) > 1:
            raise error.ValueError(
                f"LowerGlobalViewToLocalView: {call.args[0]} reduces parts to several results; "
                "make a kernel of each"
            )
        for info in results:
            _one_dimension(info, "LowerGlobalViewToLocalView")
        return ccl.allreduce(local, kinds.pop())

    def _group(
        self, call: Call, kernel: KernelAxes, axes: list[int | None], parts: int
    ) -> AxisGroup | None:
        """The group that is divided along one dimension of the mesh."""
        groups = kernel.groups()
        chosen = None
        for position, axis in enumerate(axes):
            if axis is None:
                continue
            group = next(group for group in groups if (position, axis) in group.dims)
            reason = group.why_not(parts)
            if chosen is not None and group is not chosen:
                reason = "another operand is divided along a dimension that does not belong to it"
            if reason:
                raise error.ValueError(
                    f"LowerGlobalViewToLocalView: {call.args[0]}: tensor {position} cannot be "
                    f"divided along dimension {axis}: {reason}"
                )
            chosen = group
        for position, dim in chosen.dims if chosen is not None else ():
            if axes[position] != dim:
                raise error.ValueError(
                    f"LowerGlobalViewToLocalView: {call.args[0]}: tensor {position} has to be "
                    f"divided along dimension {dim}, as others are with it"
                )
        return chosen


@graph_pass("distributed.LowerGlobalViewToLocalView")
def LowerGlobalViewToLocalView(mod: IRModule) -> IRModule:
    """The module with kernels that each device runs on its parts.

    Reductions over what is divided are followed by `R.ccl.allreduce`.

    Raises
    ------
    ValueError : tensors lie such that no device can compute a part alone.
    """
    mutator = _LocalViews(mod)
    for var, func in mod.functions.items():
        if isinstance(func, Function) and _lies_on_mesh(func):
            mutator.builder_.update_func(var, mutator.visit_expr(func))
    return mutator.builder_.finalize()


class _Redistributions(PyExprMutator):
    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not _is_op(call, "relax.dist.redistribute"):
            return call
        value, info = call.args[0], call.args[0].struct_info
        where = "LegalizeRedistribute"
        if info.device_mesh != call.attrs["device_mesh"]:
            raise error.ValueError(
                f"{where}: from {info.device_mesh} to another mesh is no exchange"
            )
        workers = _one_dimension(info, where)
        [before], [after] = info.placement.axes, call.attrs["placement"].axes
        if before == after:
            return value
        if before is not None:
            value = self._gathered(value, before, workers)
        if after is None:
            return value
        return redistribute_replica_to_shard(self.builder_.emit(value), workers, after)

    def _gathered(self, value: RelayExpr, axis: int, workers: int) -> RelayExpr:
        """All of a tensor for each worker; parts are gathered along the first dimension."""
        if axis == 0:
            return ccl.allgather(value, workers)
        order = [axis, *(i for i in range(value.struct_info.ndim) if i != axis)]
        back = [order.index(i) for i in range(len(order))]
        turned = self.builder_.emit(permute_dims(value, order))
        return permute_dims(self.builder_.emit(ccl.allgather(turned, workers)), back)


@graph_pass("distributed.LegalizeRedistribute")
def LegalizeRedistribute(mod: IRModule) -> IRModule:
    """The module with changes of places as exchanges between workers.

    Copies become parts by themselves, parts become copies by `R.ccl.allgather`.

    Raises
    ------
    ValueError : the mesh has more than one dimension, or there is another one behind.
    """
    mutator = _Redistributions(mod)
    for var, func in mod.functions.items():
        if isinstance(func, Function):
            mutator.builder_.update_func(var, mutator.visit_expr(func))
    return mutator.builder_.finalize()


def _part_of_shape(shape: Sequence[PrimExpr], info: DTensorStructInfo) -> list[PrimExpr]:
    extents = list(shape)
    for count, axis in zip(info.device_mesh.extents, info.placement.axes):
        if axis is None:
            continue
        extent = extents[axis]
        if isinstance(extent, tir.IntImm) and extent.value % count:
            raise error.ValueError(
                f"LowerDistIR: {extent.value} elements along dimension {axis} cannot be divided "
                f"equally among {count} devices"
            )
        extents[axis] = tir.floordiv(extent, tir.const(count, str(extent.dtype)))
    return extents


def _part(info: StructInfo) -> StructInfo:
    """What a worker has of a value."""
    if isinstance(info, TupleStructInfo):
        return TupleStructInfo([_part(field) for field in info.fields])
    if not isinstance(info, DTensorStructInfo):
        return info
    whole = info.tensor_sinfo
    shape = known_shape(whole)
    if shape is None:
        raise error.ValueError(f"LowerDistIR: the shape of {info} is not known")
    return TensorStructInfo(_part_of_shape(shape, info), str(whole.dtype), whole.vdevice)


def _whole(info: StructInfo) -> StructInfo:
    if isinstance(info, TupleStructInfo):
        return TupleStructInfo([_whole(field) for field in info.fields])
    return info.tensor_sinfo if isinstance(info, DTensorStructInfo) else info


class _Workers(PyExprMutator):
    """One function as each worker runs it: it begins with the first worker's tensors."""

    def function(self, func: Function) -> Function:
        params = [Var(str(param.name_hint), _whole(param.struct_info)) for param in func.params]
        self.builder_.begin_scope(params)
        blocks = list(func.body.blocks)
        # Outputs of a dataflow block would have to be named, so the first block goes on.
        if blocks and isinstance(blocks[0], DataflowBlock):
            self.builder_.begin_dataflow_block()
        else:
            self.builder_.begin_binding_block()
        for param, new in zip(func.params, params):
            self.set_var_remap(param, self._handed_out(new, param.struct_info))
        first = self.builder_.end_block()
        body = self.builder_.as_sequence(self.visit_expr(func.body))
        self.builder_.end_scope()
        blocks = list(body.blocks)
        if blocks and type(blocks[0]) is type(first):
            blocks[0] = type(first)([*first.bindings, *blocks[0].bindings])
        else:
            blocks = [first, *blocks]
        body = SeqExpr(blocks, body.body)
        return Function(params, body, None, func.is_pure, func.attrs)

    def _handed_out(self, value: RelayExpr, info: StructInfo) -> RelayExpr:
        if isinstance(info, TupleStructInfo) and dtensor_fields(info):
            return self.builder_.emit(
                Tuple(
                    [
                        self._handed_out(TupleGetItem(value, k), field)
                        for k, field in enumerate(info.fields)
                    ]
                )
            )
        if not isinstance(info, DTensorStructInfo):
            return value
        workers = _one_dimension(info, "LowerDistIR")
        [axis] = info.placement.axes
        if axis is None:
            return self.builder_.emit(ccl.broadcast_from_worker0(value))
        return self.builder_.emit(ccl.scatter_from_worker0(value, workers, axis))

    def visit_constant_(self, op: Constant) -> RelayExpr:
        return Constant(op.data) if dtensor_fields(op.struct_info) else op

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not dtensor_fields(op.struct_info) and not any(
            arg.struct_info is not None and dtensor_fields(arg.struct_info) for arg in op.args
        ):
            return call
        if _is_op(op, "relax.dist.call_tir_local_view"):
            extents = call.args[2] if len(call.args) > 2 else None
            return call_tir(call.args[0], call.args[1], _part(op.struct_info), extents)
        if isinstance(op.op, ExternFunc):
            return _of_runtime(call, op)
        if _is_op(op, "relax.call_tir"):
            raise error.ValueError(
                f"LowerDistIR: {op.args[0]} is called on whole tensors; run "
                "LowerGlobalViewToLocalView before"
            )
        if _is_op(op, "relax.dist.redistribute"):
            raise error.ValueError("LowerDistIR: run LegalizeRedistribute before")
        if not str(op.op.name).startswith(("relax.ccl.", "relax.dist.")):
            _check_local(op)
        args = [
            ShapeExpr(_part_of_shape(arg.values, op.struct_info))
            if isinstance(arg, ShapeExpr) and isinstance(op.struct_info, DTensorStructInfo)
            else arg
            for arg in call.args
        ]
        return known_call(Call(call.op, args, call.attrs, call.sinfo_args))

    def visit_struct_info(self, info: StructInfo) -> StructInfo:
        return super().visit_struct_info(_part(info) if dtensor_fields(info) else info)


def _of_runtime(call: Call, op: Call) -> Call:
    name = str(op.op.global_symbol)
    info = _part(op.struct_info)
    args = list(call.args)
    if name == "vm.builtin.distributed.attention_kv_cache_view":
        args[1] = ShapeExpr(_part_of_shape(args[1].values, op.struct_info))
    return Call(ExternFunc(_CACHES.get(name, name)), args, call.attrs, [info], info)


def _check_local(call: Call) -> None:
    """Refuse operators that would have to be reduced across workers."""
    axes = axes_of_call(call)
    for position, value in enumerate(tensor_operands(call)):
        for axis in placement_of(value):
            if axis is None or axes is None:
                continue
            if axes.group_of(position, axis).partial:
                raise error.ValueError(
                    f"LowerDistIR: {call.op} reduces over what is divided; run LegalizeOps and "
                    "LowerGlobalViewToLocalView before"
                )


@graph_pass("distributed.LowerDistIR")
def LowerDistIR(mod: IRModule) -> IRModule:
    """The module as each worker runs it, on its parts of tensors.

    Functions take whole tensors, those of the first worker, and begin by handing out parts and
    copies of them; they give what a worker has of the results.

    Raises
    ------
    ValueError : the mesh has more than one dimension; kernels or changes of places are not lowered
        yet.
    """
    mutator = _Workers(mod)
    for var, func in mod.functions.items():
        if isinstance(func, Function) and _lies_on_mesh(func):
            mutator.builder_.update_func(var, mutator.function(func))
    return mutator.builder_.finalize()
