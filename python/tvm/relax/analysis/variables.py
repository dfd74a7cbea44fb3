"""Which variables an expression binds, reads, and leaves free."""

from __future__ import annotations

from tvm import tir
from tvm.ir import GlobalVar, IRModule, PrimExpr, RelayExpr

from ..expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    Function,
    MatchCast,
    Var,
    VarBinding,
)
from ..expr_functor import PyExprVisitor
from ..struct_info import StructInfo
from ..struct_info_relations import definable_tir_vars_in_struct_info, extents_in_struct_info

__all__ = [
    "all_global_vars",
    "all_vars",
    "bound_vars",
    "called_global_vars",
    "collect_non_negative_expressions",
    "computable_at_compile_time",
    "defined_symbolic_vars",
    "detect_recursion",
    "free_symbolic_vars",
    "free_vars",
    "get_var2val",
    "name_to_binding",
    "udchain",
]


def collect_non_negative_expressions(sinfo: StructInfo) -> list[PrimExpr]:
    """Expressions in struct info that are never negative: extents, once each, in order."""
    found: list[PrimExpr] = []
    for extent in extents_in_struct_info(sinfo):
        known = any(extent.same_as(other) for other in found)
        if not known and not isinstance(extent, tir.IntImm):
            found.append(extent)
    return found


class _Variables(PyExprVisitor):
    def __init__(self) -> None:
        self.bound: dict[Var, None] = {}
        self.used: dict[Var, None] = {}
        self.globals: dict[GlobalVar, None] = {}
        self.called: dict[GlobalVar, None] = {}
        self.extents: dict[tir.Var, None] = {}
        self.defined: dict[tir.Var, None] = {}

    def visit_var_(self, op: Var) -> None:
        self.used.setdefault(op)

    def visit_dataflow_var_(self, op: Var) -> None:
        self.used.setdefault(op)

    def visit_global_var_(self, op: GlobalVar) -> None:
        self.globals.setdefault(op)

    def visit_call_(self, op: Call) -> None:
        if isinstance(op.op, GlobalVar):
            self.called.setdefault(op.op)
        super().visit_call_(op)

    def visit_var_def(self, var: Var) -> None:
        self.bound.setdefault(var)
        super().visit_var_def(var)

    def visit_function_(self, op: Function) -> None:
        for param in op.params:
            self._define(param.struct_info)
        super().visit_function_(op)

    def visit_match_cast_(self, binding: MatchCast) -> None:
        self._define(binding.struct_info)
        super().visit_match_cast_(binding)

    def _define(self, info: StructInfo | None) -> None:
        for var in () if info is None else definable_tir_vars_in_struct_info(info):
            self.defined.setdefault(var)

    def visit_prim_expr(self, expr: PrimExpr) -> None:
        found = [expr] if isinstance(expr, tir.Var) else tir.analysis.undefined_vars(expr)
        for var in found:
            self.extents.setdefault(var)


def _look(expr: RelayExpr) -> _Variables:
    found = _Variables()
    found.visit_expr(expr)
    return found


def bound_vars(expr: RelayExpr) -> list[Var]:
    """The variables that an expression binds, parameters included, in order."""
    return list(_look(expr).bound)


def free_vars(expr: RelayExpr) -> list[Var]:
    """The variables that an expression reads and does not bind, in order of their first use."""
    found = _look(expr)
    return [var for var in found.used if var not in found.bound]


def all_vars(expr: RelayExpr) -> list[Var]:
    """The variables that an expression binds or reads."""
    found = _look(expr)
    return list({**found.bound, **found.used})


def all_global_vars(expr: RelayExpr) -> list[GlobalVar]:
    """The names of functions in an expression."""
    return list(_look(expr).globals)


def called_global_vars(expr: RelayExpr) -> list[GlobalVar]:
    """The names of functions that an expression calls directly, not by ``call_tir``."""
    return list(_look(expr).called)


def defined_symbolic_vars(func: Function) -> list[tir.Var]:
    """The symbolic extents that parameters, or casts in the body, give a value to."""
    return list(_look(func).defined)


def free_symbolic_vars(func: Function) -> list[tir.Var]:
    """The symbolic extents that a function uses and nothing in it gives a value to."""
    found = _look(func)
    return [var for var in found.extents if var not in found.defined]


def _blocks(expr: RelayExpr) -> list[BindingBlock]:
    found: list[BindingBlock] = []

    class Collect(PyExprVisitor):
        def visit_binding_block(self, block: BindingBlock) -> None:
            found.append(block)
            super().visit_binding_block(block)

    Collect().visit_expr(expr)
    return found


def get_var2val(func: Function) -> dict[Var, RelayExpr]:
    """What each variable of a function is bound to."""
    return {b.var: b.value for block in _blocks(func) for b in block.bindings}


def name_to_binding(func: Function) -> dict[str, list[VarBinding]]:
    """The bindings of a function by the name of their variable."""
    result: dict[str, list[VarBinding]] = {}
    for block in _blocks(func):
        for binding in block.bindings:
            result.setdefault(str(binding.var.name_hint), []).append(binding)
    return result


def udchain(dfb: DataflowBlock) -> dict[Var, list[Var]]:
    """For each variable that a dataflow block reads or binds, the variables that read it."""
    result: dict[Var, list[Var]] = {}
    for binding in dfb.bindings:
        result.setdefault(binding.var, [])
        for var in _look(binding.value).used:
            users = result.setdefault(var, [])
            if not any(user.same_as(binding.var) for user in users):
                users.append(binding.var)
    return result


def computable_at_compile_time(func: Function) -> list[Var]:
    """The variables of a function that follow from its parameters behind the inputs.

    The attribute "num_input" says how many parameters are inputs, which are given when it runs;
    without it all of them are.
    """
    inputs = func.attrs.get("num_input", None) if func.attrs is not None else None
    known = set() if inputs is None else set(list(func.params)[int(inputs) :])
    result = []
    for block in func.body.blocks:
        for binding in block.bindings:
            used = _look(binding.value).used
            if all(var in known for var in used) and (used or not isinstance(
                binding.value, Constant
            )):  # fmt: skip
                known.add(binding.var)
                result.append(binding.var)
    return result


def detect_recursion(mod: IRModule) -> list[list[GlobalVar]]:
    """Groups of functions that call each other in a circle; a function that calls itself is one."""
    calls = {
        str(gvar.name_hint): [str(v.name_hint) for v in all_global_vars(func)]
        for gvar, func in mod.functions.items()
        if isinstance(func, Function)
    }

    def reach(start: str) -> set[str]:
        seen: set[str] = set()
        pending = [start]
        while pending:
            for callee in calls.get(pending.pop(), ()):
                if callee not in seen:
                    seen.add(callee)
                    pending.append(callee)
        return seen

    reached = {name: reach(name) for name in calls}
    groups: list[list[GlobalVar]] = []
    done: set[str] = set()
    for name in sorted(calls):
        if name in done or name not in reached[name]:
            continue
        group = sorted(o for o in reached[name] if o in reached and name in reached[o])
        done.update(group)
        groups.append([mod.get_global_var(member) for member in group])
    return groups
