"""Neighbouring composite functions as one function for their compiler."""

from __future__ import annotations

from typing import Any

from tvm.ir import BaseFunc, GlobalVar, IRModule, RelayExpr

from ..analysis import all_global_vars, free_vars
from ..block_builder import BlockBuilder
from ..expr import (
    Binding,
    BindingBlock,
    Call,
    DataflowBlock,
    Function,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from .fuse_by_pattern import with_own_extents, with_renamed_calls
from .graph_pass import graph_pass
from .grouping import Group, outline_groups, substituted

__all__ = ["MergeCompositeFunctions"]


def _codegen_of(binding: Binding, mod: IRModule) -> str | None:
    """The compiler that a bound call is for, if it calls a composite function."""
    value = binding.value
    if not isinstance(value, Call) or not isinstance(value.op, GlobalVar):
        return None
    composite = mod[str(value.op.name_hint)].attrs.get("Composite")
    return None if composite is None else str(composite).split(".")[0]


class _Merger:
    """Joins calls of one compiler, as long as no group then needs a result that follows from it."""

    def __init__(self, block: DataflowBlock, mod: IRModule) -> None:
        self._groups: list[set[int]] = []
        self._owner: dict[Var, int] = {}
        self._before: dict[int, set[int]] = {}
        self._codegen: dict[int, str] = {}
        for binding in block.bindings:
            self._place(binding, _codegen_of(binding, mod))

    def _new_unit(self) -> int:
        number = len(self._before)
        self._before[number] = set()
        return number

    def _place(self, binding: Binding, codegen: str | None) -> None:
        reads = [self._owner[var] for var in free_vars(binding.value) if var in self._owner]
        sources = list(dict.fromkeys(reads))
        if codegen is None and isinstance(binding.value, TupleGetItem | Tuple):
            # Parts of what one group gives stay with it.
            same = {self._codegen.get(unit) for unit in sources}
            if len(sources) == 1 and same != {None}:
                self._owner[binding.var] = sources[0]
                return
        unit = self._new_unit()
        for source in sources:
            alike = codegen is not None and self._codegen.get(source) == codegen
            if alike and not self._reaches_otherwise(unit, source, sources):
                unit = self._merge(source, unit)
        self._owner[binding.var] = unit
        if codegen is not None:
            self._codegen[unit] = codegen
        self._before[unit].update(s for s in sources if s != unit)

    def _reaches_otherwise(self, unit: int, source: int, sources: list[int]) -> bool:
        """Whether what is read, or is in the group already, follows from the group elsewhere."""
        others = [s for s in [*sources, *self._before[unit]] if s not in (source, unit)]
        seen = set(others)
        pending = list(others)
        while pending:
            for earlier in self._before[pending.pop()]:
                if earlier == source:
                    return True
                if earlier not in seen:
                    seen.add(earlier)
                    pending.append(earlier)
        return False

    def _merge(self, first: int, second: int) -> int:
        """One unit of two; its number."""
        for var, unit in self._owner.items():
            if unit == second:
                self._owner[var] = first
        self._before[first] |= self._before.pop(second)
        self._before[first].discard(first)
        for before in self._before.values():
            if second in before:
                before.discard(second)
                before.add(first)
        self._codegen.pop(second, None)
        self._before.setdefault(second, set())
        return first

    def groups(self) -> dict[Var, Group]:
        """The group of each variable that is in one."""
        made: dict[int, Group] = {}
        return {
            var: made.setdefault(unit, Group({"Codegen": self._codegen[unit]}))
            for var, unit in self._owner.items()
            if unit in self._codegen
        }


def _with_inner_functions(func: Function, mod: IRModule, name: str) -> Function:
    """A merged function, with the composite functions that it calls inside of it."""
    bindings: list[Binding] = []
    local: dict[str, Var] = {}
    for block in func.body.blocks:
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, Call) and isinstance(value.op, GlobalVar):
                callee = str(value.op.name_hint)
                if callee not in local:
                    inner = _unmarked(mod[callee])
                    local[callee] = Var(f"local_func{len(local)}", inner.struct_info)
                    bindings.append(VarBinding(local[callee], inner))
                value = Call(local[callee], value.args, None, (), value.struct_info)
            bindings.append(VarBinding(binding.var, value))
    replaced: dict[Any, RelayExpr] = {}
    plain: list[Binding] = []
    for binding in bindings:
        var = Var(str(binding.var.name_hint), binding.var.struct_info)
        plain.append(VarBinding(var, substituted(binding.value, replaced)))
        replaced[binding.var] = var
    body = SeqExpr([BindingBlock(plain)], substituted(func.body.body, replaced))
    attrs = {**dict(func.attrs.items()), "global_symbol": name}
    return Function(func.params, body, func.ret_struct_info, func.is_pure, attrs)


def _unmarked(func: Function) -> Function:
    attrs = {k: v for k, v in func.attrs.items() if k not in ("Primitive", "global_symbol")}
    return Function(func.params, func.body, func.ret_struct_info, func.is_pure, attrs)


@graph_pass("MergeCompositeFunctions")
def MergeCompositeFunctions(mod: IRModule) -> IRModule:
    """The module with calls of composite functions for one compiler joined into one function.

    The composite functions, as `FuseOpsByPattern` makes them, are inside of it then; it has the
    attributes "Codegen" and "global_symbol", as `RunCodegen` takes them. A call is joined with
    those whose results it reads, unless something in between needs one and gives another.
    """
    builder = BlockBuilder(mod)
    merged: list[GlobalVar] = []

    def add(func: Function, name: str) -> GlobalVar:
        gvar = builder.add_func(with_own_extents(func), name)
        merged.append(gvar)
        return gvar

    for gvar, func in mod.functions.items():
        if not isinstance(func, Function) or func.attrs.get("Composite") is not None:
            continue
        blocks: list[BindingBlock] = []
        for block in func.body.blocks:
            if isinstance(block, DataflowBlock):
                groups = _Merger(block, mod).groups()
                block = outline_groups(block, groups, add, True) if groups else block
            blocks.append(block)
        body = SeqExpr(blocks, func.body.body)
        builder.update_func(
            gvar, Function(func.params, body, func.ret_struct_info, func.is_pure, func.attrs)
        )
    if not merged:
        return mod
    return _finished(builder.finalize(), {str(gvar.name_hint) for gvar in merged})


def _finished(mod: IRModule, merged: set[str]) -> IRModule:
    """The module with merged functions under the names of their compilers, and no others left."""
    called: set[str] = set()
    for gvar, func in mod.functions.items():
        if isinstance(func, Function) and str(gvar.name_hint) not in merged:
            called |= {str(callee.name_hint) for callee in all_global_vars(func)}
    names: dict[str, GlobalVar] = {}
    functions: dict[GlobalVar, BaseFunc] = {}
    for gvar, func in mod.functions.items():
        name = str(gvar.name_hint)
        if name in merged:
            names[name] = GlobalVar(f"{name}_{func.attrs['Codegen']}")
            symbol = str(names[name].name_hint)
            functions[names[name]] = _with_inner_functions(func, mod, symbol)
        elif func.attrs.get("Composite") is None or name in called:
            functions[gvar] = func
    return with_renamed_calls(mod.with_functions(functions), names)
