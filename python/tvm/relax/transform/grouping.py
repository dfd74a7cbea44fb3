"""Groups of bindings as functions of their own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tvm import error, tir
from tvm.ir import GlobalVar, Op, RelayExpr
from tvm.ir.transform import PassContext

from ..analysis import free_vars
from ..block_builder import NameSupply
from ..expr import (
    Binding,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..struct_info import ShapeStructInfo, StructInfo
from ..struct_info_relations import (
    definable_tir_vars_in_struct_info,
    tir_vars_in_struct_info,
)

__all__ = ["Group", "largest_group", "outline_groups", "substituted"]

# More than this many operators of one kernel drown code generators.
_MAX_OPERATORS = 256
_LARGEST = ("relax.FuseOps.max_depth", "relay.FuseOps.max_depth")
_CALLS_OF_KERNELS = ("relax.call_tir", "relax.call_tir_inplace")


def largest_group() -> int:
    """How many operators a kernel has at most.

    The pass context says, by "relax.FuseOps.max_depth" and "relay.FuseOps.max_depth".

    Raises
    ------
    ValueError : the option is below one.
    """
    config = PassContext.current().config
    # Graphs of relay are fused here too, and their programs set the option of their own level.
    found = [config[key] for key in _LARGEST if key in config]
    most = min((int(value) for value in found), default=_MAX_OPERATORS)
    if most < 1:
        raise error.ValueError(
            f"FuseOps: max_depth is the most operators in a kernel, at least 1; got {most}"
        )
    return most


@dataclass(eq=False)
class Group:
    """Bindings that become one function.

    Attributes
    ----------
    attrs : attributes of the function.
    bindings : its bindings, in order.
    outputs : those of their variables that are read elsewhere, in the order of the first reader.
    """

    attrs: Mapping[str, Any]
    bindings: list[Binding] = field(default_factory=list)
    outputs: list[Var] = field(default_factory=list)


def outline_groups(
    block: DataflowBlock,
    group_of: Mapping[Var, Group],
    add_function: Callable[[Function, str], GlobalVar],
    lift_constants: bool,
) -> DataflowBlock:
    """The block with a call in the place of each group of bindings.

    Parameters
    ----------
    group_of : the group of each variable that is in one.
    add_function : puts a function into the module under a name like the one given.
    lift_constants : whether constants become parameters of the functions.

    Raises
    ------
    ValueError : groups need results of each other, whichever runs first.
    """
    bindings = _grouped_order(list(block.bindings), group_of)
    for binding in bindings:
        own = group_of.get(binding.var)
        if own is not None:
            own.bindings.append(binding)
        for var in free_vars(binding.value):
            _note_output(var, own, group_of)
    for binding in bindings:
        if not isinstance(binding.var, DataflowVar):
            _note_output(binding.var, None, group_of)
    result: list[Binding] = []
    names = NameSupply()
    for binding in bindings:
        names.fresh(str(binding.var.name_hint))
    for binding in bindings:
        group = group_of.get(binding.var)
        if group is None:
            result.append(binding)
        elif binding is group.bindings[-1]:
            made = _Outlined(group, lift_constants)
            gvar = add_function(made.function, made.name)
            call = Call(gvar, made.args, None, (), made.result)
            _bind_outputs(group, call, result, names)
    return type(block)(result)


def _note_output(var: Var, reader: Group | None, group_of: Mapping[Var, Group]) -> None:
    owner = group_of.get(var)
    if owner is None or owner is reader:
        return
    if not any(var.same_as(known) for known in owner.outputs):
        owner.outputs.append(var)


def _bind_outputs(group: Group, call: Call, result: list[Binding], names: NameSupply) -> None:
    if len(group.outputs) == 1:
        result.append(VarBinding(group.outputs[0], call))
        return
    whole = DataflowVar(names.fresh("lv"), call.struct_info)
    result.append(VarBinding(whole, call))
    for binding in group.bindings:
        for index, var in enumerate(group.outputs):
            if var.same_as(binding.var):
                result.append(VarBinding(var, TupleGetItem(whole, index)))


def substituted(value: RelayExpr, new: Mapping[Any, RelayExpr]) -> RelayExpr:
    """A value with variables, and constants, replaced."""
    if isinstance(value, Var | Constant):
        return new.get(value, value)
    if isinstance(value, Call):
        args = [substituted(arg, new) for arg in value.args]
        callee = substituted(value.op, new) if isinstance(value.op, Var) else value.op
        return Call(callee, args, value.attrs, value.sinfo_args, value.struct_info)
    if isinstance(value, Tuple):
        return Tuple([substituted(item, new) for item in value.fields])
    if isinstance(value, TupleGetItem):
        return TupleGetItem(substituted(value.tuple_value, new), value.index)
    return value


def _grouped_order(bindings: list[Binding], group_of: Mapping[Var, Group]) -> list[Binding]:
    """Bindings in their order as far as possible, with the members of each group together.

    A group stands where its last member can first stand.
    """
    unit_of: dict[Var, Hashable] = {}
    units: dict[Hashable, list[Binding]] = {}
    for binding in bindings:
        group = group_of.get(binding.var)
        key: Hashable = id(group) if group is not None else (binding.var,)
        unit_of[binding.var] = key
        units.setdefault(key, []).append(binding)
    before: dict[Hashable, list[Hashable]] = {
        key: [
            unit_of[var]
            for binding in members
            for var in free_vars(binding.value)
            if var in unit_of and unit_of[var] != key
        ]
        for key, members in units.items()
    }
    done: dict[Hashable, bool] = {}
    result: list[Binding] = []

    def place(key: Hashable) -> None:
        if key in done:
            if not done[key]:
                names = ", ".join(str(b.var.name_hint) for b in units[key])
                raise error.ValueError(
                    f"A cyclic dependency detected: the group of {names} needs the result of "
                    "another one that needs a result of it"
                )
            return
        done[key] = False
        for other in before[key]:
            place(other)
        done[key] = True
        result.extend(units[key])

    last = {key: members[-1].var for key, members in units.items()}
    for binding in bindings:
        if last[unit_of[binding.var]].same_as(binding.var):
            place(unit_of[binding.var])
    return result


class _Outlined:
    """The function of a group, with what it is called with.

    Attributes
    ----------
    name : "fused", then what the group calls.
    result : what is known of what it gives.
    """

    def __init__(self, group: Group, lift_constants: bool) -> None:
        self.args: list[RelayExpr] = []
        self._params: list[Var] = []
        self._inner: dict[Any, RelayExpr] = {}
        self._lift = lift_constants
        self._inside = {binding.var for binding in group.bindings}
        parts = ["fused"]
        for binding in group.bindings:
            self._import(binding.value)
            parts += _labels(binding.value)
        self.name = "_".join(parts)
        bindings = []
        for binding in group.bindings:
            value = substituted(binding.value, self._inner)
            output = any(binding.var.same_as(var) for var in group.outputs)
            make = Var if output else DataflowVar
            hint = "gv" if output else str(binding.var.name_hint)
            var = make(hint, binding.var.struct_info)
            self._inner[binding.var] = var
            bindings.append(VarBinding(var, value))
        outputs = [self._inner[var] for var in group.outputs]
        result = outputs[0] if len(outputs) == 1 else Tuple(outputs)
        self._add_extents(result.struct_info, bindings)
        body = SeqExpr([DataflowBlock(bindings)], result)
        self.result = result.struct_info
        self.function = Function(self._params, body, result.struct_info, attrs=group.attrs)

    def _import(self, value: RelayExpr) -> None:
        """Parameters for what a value reads from outside of the group."""
        if isinstance(value, Call):
            for part in [*([value.op] if isinstance(value.op, Var) else []), *value.args]:
                self._import(part)
        elif isinstance(value, Tuple):
            for part in value.fields:
                self._import(part)
        elif isinstance(value, TupleGetItem):
            self._import(value.tuple_value)
        elif isinstance(value, Var) and value not in self._inside:
            self._add(value, str(value.name_hint))
        elif isinstance(value, Constant) and self._lift and len(value.data.shape):
            self._add(value, f"param_{len(self._params)}")

    def _add(self, value: RelayExpr, name: str) -> None:
        if value not in self._inner:
            param = Var(name, value.struct_info)
            self._inner[value] = param
            self._params.append(param)
            self.args.append(value)

    def _add_extents(self, result: StructInfo, bindings: list[VarBinding]) -> None:
        """A parameter for extents that no shape of a parameter gives."""
        known: set[tir.Var] = set()
        for param in self._params:
            known.update(definable_tir_vars_in_struct_info(param.struct_info))
        needed: dict[tir.Var, None] = {}
        for binding in bindings:
            found = [*tir_vars_in_struct_info(binding.var.struct_info)]
            for arg in getattr(binding.value, "args", ()):
                if arg.struct_info is not None:
                    found += tir_vars_in_struct_info(arg.struct_info)
            needed.update(dict.fromkeys(var for var in found if var not in known))
        if needed:
            extents = list(needed)
            self._params.append(Var("tir_vars", ShapeStructInfo(extents)))
            self.args.append(ShapeExpr(extents))


def _labels(value: RelayExpr) -> list[str]:
    if not isinstance(value, Call):
        return []
    if isinstance(value.op, GlobalVar):
        return [str(value.op.name_hint).removeprefix("fused_")]
    if not isinstance(value.op, Op):
        return []
    name = str(value.op.name)
    if name in _CALLS_OF_KERNELS:
        return [str(value.args[0].name_hint)]
    return [name.replace(".", "_")]
