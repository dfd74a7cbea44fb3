"""Which dimensions of operands and results of a call can be divided among devices together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm import error
from tvm.ir import GlobalVar, IRModule, Op, PrimExpr, RelayExpr
from tvm.tir import PrimFunc

from ..block_builder import BlockBuilder
from ..dtensor import DeviceMesh, DTensorStructInfo, Placement, PlacementSpec, dtensor_fields
from ..expr import Call, Constant, SeqExpr, Tuple, Var
from ..op import call_tir, infer_struct_info
from ..op.base import register_dtensor_rule
from ..op.registry import rule_of
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo, tensor_fields
from ..transform import LegalizeOps
from ..transform.legalize_ops.common import register_on_mesh
from .kernel_axes import AxisGroup, KernelAxes

__all__ = [
    "CallAxes",
    "OperatorKernel",
    "axes_of_call",
    "divided_results",
    "infer_dtensor",
    "kernel_of",
    "placement",
    "placement_of",
    "tensor_operands",
]

_AS_THEY_LIE = ("relax.ccl.allreduce", "relax.ccl.broadcast_from_worker0")
# Their results are what the call says, or what rules of their own make of tensors on devices.
_OWN_RULES = ("relax.call_", "relax.invoke_", "relax.dist.", "relax.vm.", "relax.memory.")


@dataclass
class CallAxes:
    """The groups of a call.

    Parameters
    ----------
    operands : tensors that it reads, those within tuples among them.
    groups : dimensions that are divided together; results count on behind the operands.
    """

    operands: list[RelayExpr]
    groups: list[AxisGroup]

    def group_of(self, position: int, dim: int) -> AxisGroup:
        """The group of a dimension."""
        return next(group for group in self.groups if (position, dim) in group.dims)


def _is_tensor(value: RelayExpr) -> bool:
    return isinstance(value.struct_info, (TensorStructInfo, DTensorStructInfo))


def tensor_operands(call: Call) -> list[RelayExpr]:
    """Tensors that a call reads in their order, also those within tuples."""
    given = [call.args[1]] if _is_kernel_call(call) else list(call.args)
    found: list[RelayExpr] = []
    for arg in given:
        if isinstance(arg, Tuple):
            found += [field for field in arg.fields if _is_tensor(field)]
        elif _is_tensor(arg):
            found.append(arg)
        elif isinstance(arg.struct_info, TupleStructInfo):
            raise error.ValueError(
                f"relax.distributed: the operands of {call.op} are in the tuple {arg}; write its "
                "fields out"
            )
    return found


def _is_kernel_call(call: Call) -> bool:
    return isinstance(call.op, Op) and str(call.op.name) == "relax.call_tir"


def _whole(info: StructInfo) -> StructInfo:
    """The tensors themselves, wherever they lie."""
    if isinstance(info, DTensorStructInfo):
        return info.tensor_sinfo
    if isinstance(info, TupleStructInfo):
        return TupleStructInfo([_whole(field) for field in info.fields])
    return info


def stand_in(call: Call) -> tuple[Call, list[Var]]:
    """The call of an operator on tensors that lie on one device, and these in their order.

    Constants of no dimension stay, since kernels are made of them.
    """
    made: list[Var] = []

    def plain(arg: RelayExpr) -> RelayExpr:
        if isinstance(arg, Tuple):
            return Tuple([plain(field) for field in arg.fields])
        if isinstance(arg, Constant) and not len(arg.data.shape):
            return Constant(arg.data)
        if not _is_tensor(arg):
            return arg
        made.append(Var(f"operand{len(made)}", _whole(arg.struct_info)))
        return made[-1]

    operands = [plain(arg) for arg in call.args]
    return Call(call.op, operands, call.attrs, call.sinfo_args), made


@dataclass
class OperatorKernel:
    """The only kernel of an operator.

    Parameters
    ----------
    operands : for each of its tensors which one of the call's that are no numbers it is.
    extents : arguments behind the results.
    """

    func: PrimFunc
    name: str
    operands: list[int]
    extents: list[PrimExpr]


def kernel_of(call: Call) -> OperatorKernel | None:
    """The kernel of an operator; None where it takes other steps than one kernel."""
    plain, operands = stand_in(call)
    builder = BlockBuilder()
    with builder.function("main", operands):
        builder.emit_func_output(builder.emit(plain))
    mod = LegalizeOps()(builder.finalize())
    body = mod["main"].body
    assert isinstance(body, SeqExpr)
    bindings = [binding for block in body.blocks for binding in block.bindings]
    if len(bindings) != 1 or not isinstance(bindings[0].value, Call):
        return None
    kernel = bindings[0].value
    if not _is_kernel_call(kernel):
        return None
    order = []
    for arg in kernel.args[1].fields:
        place = next((i for i, var in enumerate(operands) if var.same_as(arg)), None)
        if place is None:
            return None
        order.append(place)
    extents = list(kernel.args[2].values) if len(kernel.args) > 2 else []
    gvar = kernel.args[0]
    return OperatorKernel(mod[gvar], str(gvar.name_hint), order, extents)


def _legal_on_mesh(builder: BlockBuilder, call: Call) -> RelayExpr:
    """The call of an operator's kernel on whole tensors; the call itself where there is none."""
    if str(call.op.name).startswith((*_OWN_RULES, "relax.ccl.")):
        return call
    kernel = kernel_of(call)
    if kernel is None:
        return call
    tensors = [value for value in tensor_operands(call) if not _is_number(value)]
    gvar = builder.add_func(kernel.func, kernel.name)
    operands = [tensors[k] for k in kernel.operands]
    return call_tir(gvar, operands, dtensor_fields(call.struct_info), kernel.extents or None)


def _is_number(value: RelayExpr) -> bool:
    return isinstance(value, Constant) and not len(value.data.shape)


def axes_of_call(call: Call, mod: IRModule | None = None) -> CallAxes | None:
    """The groups of a call of a kernel of the module, or of an operator.

    Returns
    -------
    None for calls of which nothing is known: they need all of each operand.
    """
    operands = tensor_operands(call)
    if _is_kernel_call(call):
        func = (
            mod[call.args[0]] if mod is not None and isinstance(call.args[0], GlobalVar) else None
        )
        if not isinstance(func, PrimFunc):
            return None
        return CallAxes(operands, KernelAxes(func).groups())
    if not isinstance(call.op, Op) or str(call.op.name).startswith(_OWN_RULES):
        return None
    found = kernel_of(call)
    if found is None:
        return None
    func, order = found.func, found.operands
    tensors = [i for i, value in enumerate(operands) if not _is_number(value)]
    # Positions of the kernel's parameters, results included, among those of the call.
    places = [tensors[k] for k in order]
    count = len(func.buffer_map) - len(order)
    places += [len(operands) + k for k in range(count)]
    groups = []
    for group in KernelAxes(func).groups():
        group.dims = {(places[position], dim) for position, dim in group.dims}
        group.partial = {places[position]: kind for position, kind in group.partial.items()}
        groups.append(group)
    return CallAxes(operands, groups)


def placement_of(value: RelayExpr) -> Sequence[int | None]:
    """For each dimension of the mesh, which dimension of a tensor is divided."""
    info = value.struct_info
    return info.placement.axes if isinstance(info, DTensorStructInfo) else ()


def infer_dtensor(call: Call) -> StructInfo:
    """What is known of the result of an operator of tensors on a mesh.

    Results are divided along what operands are divided along; a reduction over parts gives copies.

    Raises
    ------
    TypeError : operands lie on different meshes, or such that no device can compute a part alone.
    """
    name = str(call.op.name)
    if name.startswith(_OWN_RULES) or name in _AS_THEY_LIE:
        return rule_of(call.op)(call) if name not in _AS_THEY_LIE else call.args[0].struct_info
    mesh = mesh_of(call)
    if name == "relax.ccl.allgather":
        return _gathered(call.args[0].struct_info)
    result = infer_struct_info(stand_in(call)[0])
    axes = axes_of_call(call)
    placements = divided_results(call, axes, mesh, len(tensor_fields(result)))
    return _lying(result, mesh, placements)


def mesh_of(call: Call) -> DeviceMesh:
    """The mesh that all operands lie on."""
    meshes = [part.device_mesh for arg in call.args for part in dtensor_fields(arg.struct_info)]
    if any(mesh != meshes[0] for mesh in meshes):
        raise error.TypeError(f"{call.op.name}: operands lie on different meshes")
    return meshes[0]


def _gathered(info: DTensorStructInfo) -> DTensorStructInfo:
    specs = [
        PlacementSpec.replica() if axis == 0 else spec
        for axis, spec in zip(info.placement.axes, info.placement.dim_specs)
    ]
    return DTensorStructInfo(info.tensor_sinfo, info.device_mesh, Placement(specs))


def divided_results(
    call: Call, axes: CallAxes | None, mesh: DeviceMesh, count: int
) -> list[list[int | None]]:
    """For each result and dimension of the mesh, which dimension is divided.

    Raises
    ------
    TypeError : operands lie such that no device can compute a part alone.
    """
    results: list[list[int | None]] = [[None] * len(mesh.extents) for _ in range(count)]
    operands = tensor_operands(call)
    for at, parts in enumerate(mesh.extents):
        placed = [
            (i, axis)
            for i, value in enumerate(operands)
            for axis in [(*placement_of(value), *[None] * len(mesh.extents))[at]]
        ]
        for position, axis in placed:
            if axis is None:
                continue
            if axes is None:
                raise error.TypeError(f"{call.op}: needs all of its operands; redistribute them")
            group = axes.group_of(position, axis)
            reason = group.why_not(parts)
            if reason:
                raise error.TypeError(
                    f"{call.op}: operand {position} cannot be divided along dimension {axis}: "
                    f"{reason}"
                )
            for other, where in placed:
                dims = {dim for place, dim in group.dims if place == other}
                if dims and dims != {where}:
                    raise error.TypeError(
                        f"{call.op}: operand {position} is divided along dimension {axis}, so "
                        f"operand {other} has to be along {sorted(dims)}"
                    )
            for k, result in enumerate(results):
                dims = {dim for place, dim in group.dims if place == len(operands) + k}
                if dims:
                    result[at] = min(dims)
    return results


def _lying(info: StructInfo, mesh: DeviceMesh, placements: list[list[int | None]]) -> StructInfo:
    if isinstance(info, TupleStructInfo):
        return TupleStructInfo(
            [_lying(f, mesh, [place]) for f, place in zip(info.fields, placements)]
        )
    return DTensorStructInfo(info, mesh, placement(placements[0]))


def placement(axes: Sequence[int | None]) -> Placement:
    """The placement that divides these dimensions."""
    return Placement(
        [PlacementSpec.replica() if a is None else PlacementSpec.sharding(a) for a in axes]
    )


register_dtensor_rule(infer_dtensor)
register_on_mesh(_legal_on_mesh)
