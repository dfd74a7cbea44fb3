"""Groups of operators that patterns find, as functions for other compilers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tvm import error, tir
from tvm.ir import BaseFunc, GlobalVar, IRModule, RelayExpr

from ..analysis import defined_symbolic_vars, free_vars, get_var2val
from ..block_builder import BlockBuilder
from ..dpl.pattern import DFPattern
from ..expr import (
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
from .bind import bind_function
from .graph_pass import graph_pass
from .grouping import Group, outline_groups

__all__ = ["FuseOpsByPattern", "FusionPattern", "PatternCheckContext"]


@dataclass(frozen=True)
class PatternCheckContext:
    """What the check of a :class:`FusionPattern` sees of a match.

    Attributes
    ----------
    matched_expr : what the whole pattern matched.
    annotated_expr : what the pattern's named parts stand for: values where a part says how they are
        made, else what the match reads, mostly variables.
    matched_bindings : the variables that the match takes in, with what they are bound to.
    var_usages : for each variable of the function, those that read it.
    value_to_bound_var : for each bound value, its variable.
    """

    matched_expr: RelayExpr
    annotated_expr: Mapping[str, RelayExpr]
    matched_bindings: Mapping[Var, RelayExpr]
    var_usages: Mapping[Var, Sequence[Var]]
    value_to_bound_var: Mapping[RelayExpr, Var]


Check = Callable[[PatternCheckContext], bool]


@dataclass(frozen=True)
class FusionPattern:
    """A pattern with the name of what it becomes.

    Attributes
    ----------
    name : of the form "compiler.operation"; attribute "Composite" of the functions.
    pattern : what to look for.
    annotation_patterns : parts of the pattern by names that the check uses.
    check : whether a match is taken; every one without it.
    attrs_getter : from the named parts of a match to more attributes of its function.
    """

    name: str
    pattern: DFPattern
    annotation_patterns: Mapping[str, DFPattern] = field(default_factory=dict)
    check: Check | None = None
    attrs_getter: Callable[[Mapping[str, RelayExpr]], Mapping[str, Any]] | None = None


def as_fusion_pattern(given: FusionPattern | Sequence[Any]) -> FusionPattern:
    """A pattern that is given as such or as a tuple of its attributes."""
    if isinstance(given, FusionPattern):
        return given
    if not isinstance(given, Sequence) or not 2 <= len(given) <= 5:
        raise error.TypeError(
            "FuseOpsByPattern: a pattern is a FusionPattern or (name, pattern), then the annotated "
            f"parts, the check and the getter of attributes; got {given}"
        )
    parts: list[Any] = [*given, *[None] * (5 - len(given))]
    return FusionPattern(parts[0], parts[1], parts[2] or {}, parts[3], parts[4])


class _Matches:
    """The groups that a pattern makes of one function."""

    def __init__(self, func: Function, rule: FusionPattern) -> None:
        self._rule = rule
        self._values = get_var2val(func)
        self._vars: dict[RelayExpr, Var] = {value: var for var, value in self._values.items()}
        self._usages: dict[Var, list[Var]] = {}
        for var, value in self._values.items():
            for read in free_vars(value):
                self._usages.setdefault(read, []).append(var)
        self.group_of: dict[Var, Group] = {}

    def look(self, block: DataflowBlock) -> None:
        """Form groups of bindings of a block."""
        local = {binding.var for binding in block.bindings}
        for binding in block.bindings:
            value = binding.value
            if not isinstance(value, Call | Tuple | TupleGetItem):
                continue
            found = self._rule.pattern.extract_matched_expr(value, self._values)
            if found is None:
                continue
            inner = self._members(found, local)
            if inner is None:
                continue
            members = [binding.var, *inner]
            # Groups do not share bindings: who comes first has them.
            if any(var in self.group_of for var in members):
                continue
            named = {
                name: self._named(part, found[part])
                for name, part in self._rule.annotation_patterns.items()
                if part in found
            }
            if not self._accepted(value, named, members):
                continue
            attrs: dict[str, Any] = {"Primitive": 1, "Composite": self._rule.name}
            if self._rule.attrs_getter is not None:
                attrs.update(self._rule.attrs_getter(named))
            group = Group(attrs)
            self.group_of.update(dict.fromkeys(members, group))

    def _named(self, pattern: DFPattern, expr: RelayExpr) -> RelayExpr:
        """What a check sees of a part: the call that was described, or what comes from outside."""
        return self._values.get(expr, expr) if pattern.takes_in else expr

    def _members(self, found: Mapping[DFPattern, RelayExpr], local: set[Var]) -> list[Var] | None:
        """Variables whose values the pattern describes, not only as anything.

        None if the group would reach into another block, or through a second name of a value, which
        stays outside.
        """
        members = []
        for pattern, expr in found.items():
            if isinstance(expr, Var) and pattern.takes_in:
                value = self._values[expr]
                if expr not in local or not isinstance(value, Call | Tuple | TupleGetItem):
                    return None
                members.append(expr)
        return list(dict.fromkeys(members))

    def _accepted(
        self, value: RelayExpr, named: Mapping[str, RelayExpr], members: Sequence[Var]
    ) -> bool:
        if self._rule.check is None:
            return True
        bindings = {var: self._values[var] for var in members}
        context = PatternCheckContext(value, named, bindings, self._usages, self._vars)
        return bool(self._rule.check(context))


def with_own_extents(func: Function) -> Function:
    """The function with symbolic extents that no other function has."""
    extents = {var: tir.Var(str(var.name), str(var.dtype)) for var in defined_symbolic_vars(func)}
    return bind_function(func, {}, extents)


def _apply(
    mod: IRModule, rule: FusionPattern, bind_constants: bool, entries: Sequence[str]
) -> IRModule:
    builder = BlockBuilder(mod)

    def add(func: Function, name: str) -> GlobalVar:
        return builder.add_func(with_own_extents(func), name)

    changed = False
    for gvar, func in mod.functions.items():
        if not isinstance(func, Function) or _is_outlined(func):
            continue
        if entries and str(gvar.name_hint) not in entries:
            continue
        matches = _Matches(func, rule)
        blocks: list[BindingBlock] = []
        for block in func.body.blocks:
            if isinstance(block, DataflowBlock):
                matches.look(block)
        if not matches.group_of:
            continue
        changed = True
        for block in func.body.blocks:
            if isinstance(block, DataflowBlock):
                block = outline_groups(block, matches.group_of, add, not bind_constants)
            blocks.append(block)
        body = SeqExpr(blocks, func.body.body)
        builder.update_func(
            gvar, Function(func.params, body, func.ret_struct_info, func.is_pure, func.attrs)
        )
    return builder.finalize() if changed else mod


def _is_outlined(func: BaseFunc) -> bool:
    return any(key in func.attrs for key in ("Composite", "Codegen", "Primitive"))


def annotated_composite(func: Function, codegen: str, name: str) -> Function:
    """A function for a compiler, around a composite function that it calls."""
    inner_attrs = {k: v for k, v in func.attrs.items() if k not in ("Primitive", "global_symbol")}
    inner = Function(func.params, func.body, func.ret_struct_info, func.is_pure, inner_attrs)
    params = [Var(str(param.name_hint), param.struct_info) for param in func.params]
    local = Var("gv", inner.struct_info)
    call = Call(local, params, None, (), func.ret_struct_info)
    result = Var("gv1", func.ret_struct_info)
    block = BindingBlock([VarBinding(local, inner), VarBinding(result, call)])
    attrs = {"Codegen": codegen, "global_symbol": name}
    body = SeqExpr([block], result)
    return Function(params, body, func.ret_struct_info, func.is_pure, attrs)


def _annotate(mod: IRModule) -> IRModule:
    """The module with a function for its compiler in the place of each composite function."""
    names: dict[str, GlobalVar] = {}
    functions: dict[GlobalVar, BaseFunc] = {}
    taken = {str(gvar.name_hint) for gvar in mod.functions}
    for gvar, func in mod.functions.items():
        composite = func.attrs.get("Composite") if isinstance(func, Function) else None
        if composite is None:
            functions[gvar] = func
            continue
        codegen = str(composite).split(".")[0]
        base = f"{gvar.name_hint}_{codegen}"
        name, number = base, 1
        while name in taken:
            name, number = f"{base}{number}", number + 1
        taken.add(name)
        new = GlobalVar(name)
        names[str(gvar.name_hint)] = new
        functions[new] = annotated_composite(func, codegen, name)
    return with_renamed_calls(mod.with_functions(functions), names)


def with_renamed_calls(mod: IRModule, names: Mapping[str, GlobalVar]) -> IRModule:
    """The module whose graph functions call others by new names."""
    if not names:
        return mod

    def renamed(block: BindingBlock) -> BindingBlock:
        bindings = []
        for binding in block.bindings:
            value = binding.value
            if isinstance(value, Call) and isinstance(value.op, GlobalVar):
                gvar = names.get(str(value.op.name_hint), value.op)
                call = Call(gvar, value.args, value.attrs, value.sinfo_args, value.struct_info)
                binding = VarBinding(binding.var, call)
            bindings.append(binding)
        return type(block)(bindings)

    functions = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function) and isinstance(func.body, SeqExpr):
            body = SeqExpr([renamed(block) for block in func.body.blocks], func.body.body)
            func = Function(func.params, body, func.ret_struct_info, func.is_pure, func.attrs)
        functions[gvar] = func
    return mod.with_functions(functions)


@graph_pass("FuseOpsByPattern")
def FuseOpsByPattern(
    mod: IRModule,
    patterns: Sequence[FusionPattern | Sequence[Any]],
    bind_constants: bool = True,
    annotate_codegen: bool = False,
    entry_functions: Sequence[str] | None = None,
) -> IRModule:
    """The module with what patterns match in dataflow blocks as functions of their own.

    Earlier patterns go before later ones, and a binding belongs to one function. The functions
    have the pattern's name as attribute "Composite" and are marked as "Primitive".

    Parameters
    ----------
    patterns : each a :class:`FusionPattern`, or a tuple of its attributes of which those behind the
        pattern may be left out.
    bind_constants : whether constants are part of the functions; else they are parameters.
    annotate_codegen : whether each function becomes one for a compiler, the part of the pattern's
        name before the dot, with attributes "Codegen" and "global_symbol" around the composite one,
        as :func:`RunCodegen` takes them. `MergeCompositeFunctions` does this for several at once.
    entry_functions : names of the functions to look through; all graph functions where none are
        given.

    Raises
    ------
    ValueError : a match needs a result that follows from one of its own, or variables are bound
        more than once.
    KeyError : there is no function of a name.
    """
    _check_bound_once(mod)
    entries = [str(name) for name in entry_functions or ()]
    for name in entries:
        mod.get_global_var(name)
    for given in patterns:
        mod = _apply(mod, as_fusion_pattern(given), bind_constants, entries)
    return _annotate(mod) if annotate_codegen else mod


def _check_bound_once(mod: IRModule) -> None:
    seen: set[Var] = set()
    for func in mod.functions.values():
        for var in get_var2val(func) if isinstance(func, Function) else ():
            if var in seen:
                raise error.ValueError(
                    f"FuseOpsByPattern: '{var.name_hint}' is bound more than once in the module; "
                    "give a copied function variables of its own"
                )
            seen.add(var)
