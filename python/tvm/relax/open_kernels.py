"""Kernels of networks whose sizes are open: one for each fused group, for all sizes.

Functions that are lists of kernels go through the passes that those of fixed sizes go through, and
their groups are scheduled by the same rules, with sizes that are typical where open ones would be
asked for. What comes out calls kernels that take any size, and is a program that allocates as it
runs; see :mod:`compile_programs`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from tvm import te, tir, topi
from tvm.driver import schedule_to_module
from tvm.ir import GlobalVar, IRModule, RelayExpr
from tvm.target import Target

from .block_builder import NameSupply
from .expr import Call, Constant, Function, ShapeExpr, Tuple, rearranged
from .fused_group import FusedGroup, fused_groups
from .op import call_tir
from .program_codegen import ROW_KERNEL_NAMES, ROW_KERNELS
from .rewriter import FunctionRewriter, graph_functions
from .row_forms import RowForm, row_form
from .struct_info import ShapeStructInfo, TensorStructInfo, TupleStructInfo, tensor_fields

__all__ = ["with_open_kernels"]


def with_open_kernels(mod: IRModule, target: Target) -> IRModule:
    """A fused module with its groups as scheduled kernels, and calls of these.

    Weights that a schedule reads in another order are stored so.
    """
    names = NameSupply()
    for gvar in mod.get_global_vars():
        names.fresh(str(gvar.name_hint))
    kernels: dict[str, _OpenKernel | _RowKernels] = {}
    for group in fused_groups(mod):
        gvar = GlobalVar(names.fresh(f"{group.name}_kernel"))
        rows = row_form(group)
        kernels[group.name] = (
            _OpenKernel(group, gvar, target)
            if rows is None
            else _RowKernels(group, rows, gvar, target)
        )
    functions: dict[GlobalVar, Any] = {
        gvar: func for gvar, func in mod.functions.items() if isinstance(func, tir.PrimFunc)
    }
    for gvar, func in graph_functions(mod).items():
        functions[gvar] = _KernelCalls(func, kernels).run()
    for kernel in kernels.values():
        functions.update(kernel.functions)
    return mod.with_functions(functions)


class _RowKernels:
    """Kernels of a group each row of whose results depends on the same row of what it takes.

    They are scheduled as those of fixed sizes are; the machine calls them for one block of rows
    after the other.
    """

    def __init__(self, group: FusedGroup, rows: RowForm, gvar: GlobalVar, target: Target) -> None:
        self.gvar = gvar
        self.functions: dict[GlobalVar, tir.PrimFunc] = {}
        self._packings: Mapping[int, topi.schedule_registry.Packing] = {}
        names: list[str] = []
        for size, function in rows.functions:
            part = FusedGroup(group.name, function, group.weight, group.constant_inputs)
            name = str(gvar.name_hint) if not names else f"{gvar.name_hint}_{size}"
            with target:
                if names:
                    # Weights lie as the first kernel reads them.
                    known = _scheduled_like(part, self._packings, target)
                else:
                    known = topi.schedule_args_for(part.args, part.constant_inputs, target)
                    if any(packing.result is not None for packing in known.packings.values()):
                        # More columns than there are take the place of the operator's stage.
                        known = topi.schedule_args_for(part.args, (), target)
                    self._packings = known.packings
            func = schedule_to_module(known.schedule, list(known.args), name=name)[name]
            self.functions[gvar if not names else GlobalVar(name)] = func
            names.append(name)
        sizes = [size for size, _ in rows.functions]
        settings = {ROW_KERNELS: [rows.leading, rows.mask, *sizes], ROW_KERNEL_NAMES: names}
        self.functions[gvar] = self.functions[gvar].with_attr(settings)
        self._packed: dict[tuple[Any, int], Constant] = {}

    def call(self, call: Call) -> Call:
        """The call that takes the place of one of the group's function."""
        args = _with_stored(_tensors_of(call), self._packings, self._packed)
        return call_tir(self.gvar, args, call.struct_info)


def _scheduled_like(
    group: FusedGroup, packings: Mapping[int, topi.schedule_registry.Packing], target: Target
) -> topi.schedule_registry.ScheduledArgs:
    """A schedule for weights that are stored for another number of rows."""
    args = list(group.args)
    outputs = list(group.te.outputs)
    for position, packing in packings.items():
        outputs = list(te.replace_tensors(outputs, [(args[position], packing.weight)]))
        args[position] = packing.packed
    inputs = args[: len(group.te.inputs)]
    schedule = topi.schedule_for(outputs, target)
    return topi.schedule_registry.ScheduledArgs(schedule, [*inputs, *outputs], packings)


def _tensors_of(call: Call) -> list[RelayExpr]:
    return [arg for arg in call.args if not isinstance(arg, ShapeExpr)]


def _with_stored(
    args: Sequence[RelayExpr], packings: Mapping[int, Any], packed: dict[tuple[Any, int], Constant]
) -> list[RelayExpr]:
    """Arguments with constants as schedules read them."""
    result = list(args)
    for position, packing in packings.items():
        constant = args[position]
        assert isinstance(constant, Constant)
        if (constant, position) not in packed:
            packed[constant, position] = Constant(rearranged(constant.data, packing.pack))
        result[position] = packed[constant, position]
    return result


class _OpenKernel:
    """The kernel of one group.

    Attributes
    ----------
    gvar : what it is called by.
    extents : variables of the group's function that no shape of an argument gives, and that the
        kernel takes as numbers behind its tensors.
    """

    def __init__(self, group: FusedGroup, gvar: GlobalVar, target: Target) -> None:
        self.gvar = gvar
        self._params = [param.struct_info for param in group.function.params]
        with target, topi.utils.typical_extents():
            known = topi.schedule_args_for(group.args, group.constant_inputs, target)
        self._packings = known.packings
        asked = _not_given(group.args)
        wide = {narrow: var for var, narrow in group.te.extents.items()}
        self.extents = [wide[var] for var in asked]
        name = str(gvar.name_hint)
        module = schedule_to_module(known.schedule, [*known.args, *asked], name=name)
        self.functions = {gvar: _checked(module[name], known.args, name)}
        self._packed: dict[tuple[Any, int], Constant] = {}

    def call(self, call: Call) -> Call:
        """The call of the kernel that takes the place of one of the group's function."""
        args = _with_stored(_tensors_of(call), self._packings, self._packed)
        values = _extents_of_call(self._params, call)
        extents = [tir.stmt_functor.substitute(var, values) for var in self.extents]
        return call_tir(self.gvar, args, call.struct_info, ShapeExpr(extents) if extents else None)


def _checked(func: tir.PrimFunc, args: Sequence[te.Tensor], name: str) -> tir.PrimFunc:
    """The kernel, which refuses tensors of more elements than its indices of 32 bits count."""
    body = func.body
    most = tir.const(2**31 - 1, "int64")
    for tensor in args:
        if all(isinstance(extent, (int, tir.IntImm)) for extent in tensor.shape):
            continue
        count = functools.reduce(
            lambda a, b: a * b, (tir.convert(e).astype("int64") for e in tensor.shape)
        )
        text = tir.StringImm(f"{name}: a tensor of more than 2^31 - 1 elements; give fixed sizes")
        body = tir.AssertStmt(tir.LE(count, most), text, body)
    return func.with_body(body)


def _not_given(tensors: list[te.Tensor]) -> list[tir.Var]:
    """Variables in the shapes of tensors, or in what is computed of them, that are no extent."""
    given: list[tir.Var] = []
    asked: list[tir.Var] = []
    for tensor in tensors:
        for extent in tensor.shape:
            if isinstance(extent, tir.Var):
                given.append(extent)
            else:
                asked += tir.analysis.undefined_vars(extent)
    for operation in topi.schedule_registry.operations_of(tensors):
        own = {axis.var for axis in [*operation.axis, *operation.reduce_axis]}
        for axis in [*operation.axis, *operation.reduce_axis]:
            asked += tir.analysis.undefined_vars(axis.dom.extent)
        for value in operation.body:
            asked += [v for v in tir.analysis.undefined_vars(value) if v not in own]
    return [var for var in dict.fromkeys(asked) if var not in set(given)]


def _extents_of_call(params: list[Any], call: Call) -> Mapping[tir.Var, Any]:
    """What variables of a group's function are in the function that calls it.

    Groups of equal structure share a function, so that the variables may be those of another.
    """
    values: dict[tir.Var, Any] = {}
    infos = [arg.struct_info for arg in call.args]
    for info, given in zip(params, infos):
        if isinstance(info, ShapeStructInfo):
            values.update(zip(info.values, given.values))
            continue
        for own, other in zip(tensor_fields(info), tensor_fields(given)):
            _match(own, other, values)
    return values


def _match(own: TensorStructInfo, other: TensorStructInfo, values: dict[tir.Var, Any]) -> None:
    for extent, value in zip(own.shape.struct_info.values, other.shape.struct_info.values):
        if isinstance(extent, tir.Var):
            values.setdefault(extent, value)


class _KernelCalls(FunctionRewriter):
    def __init__(self, func: Function, kernels: Mapping[str, _OpenKernel | _RowKernels]) -> None:
        super().__init__(func)
        self._kernels = kernels

    def rewrite(self, var: Any, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, Call) or not isinstance(value.op, GlobalVar):
            return value
        kernel = self._kernels.get(str(value.op.name_hint))
        if kernel is None:
            return value
        call, info = kernel.call(value), value.struct_info
        # A kernel of one result gives that, and no tuple.
        single = isinstance(info, TupleStructInfo) and len(info.fields) == 1
        return Tuple([self.emit(call)]) if single else call
