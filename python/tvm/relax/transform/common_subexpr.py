"""Values that are computed once instead of several times."""

from __future__ import annotations

from typing import Any

import tvm
from tvm.ir import IRModule, RelayExpr

from ..analysis.purity import is_impure_call
from ..expr import (
    BindingBlock,
    Call,
    DataflowVar,
    Function,
    MatchCast,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from ..expr_functor import PyExprMutator
from ..struct_info_relations import tir_vars_in_struct_info
from .graph_pass import graph_pass

__all__ = ["EliminateCommonSubexpr"]


class _Merger(PyExprMutator):
    """Keeps the values that are visible, by their hash."""

    def __init__(self, mod: IRModule, call_only: bool) -> None:
        super().__init__(mod)
        self._mod = mod
        self._call_only = call_only
        self._known: dict[int, list[tuple[Any, Var]]] = {}
        # Outputs of the open dataflow block that have the value of one of its own variables, which
        # stands for them inside.
        self._outputs: dict[Var, Var] = {}

    def _is_candidate(self, value: RelayExpr) -> bool:
        if isinstance(value, Call):
            return not is_impure_call(value, self._mod) and not _allocates(value)
        return not self._call_only and isinstance(value, (TupleGetItem, Tuple))

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        if not self._is_candidate(value):
            self.reemit_binding(binding, value)
            return
        if not self._merge(binding, value, value):
            self.reemit_binding(binding, value)
            self._remember(value, self.get_var_remap(binding.var))

    def visit_match_cast_(self, binding: MatchCast) -> None:
        value = self.visit_expr(binding.value)
        known = tir_vars_in_struct_info(binding.struct_info)
        # A cast that binds extents is not repeated by another, which binds others.
        if self._call_only or known:
            super().visit_match_cast_(binding)
            return
        key = MatchCast(Var("cast", binding.struct_info), value, binding.struct_info)
        if not self._merge(binding, value, key):
            super().visit_match_cast_(binding)
            self._remember(key, self.get_var_remap(binding.var))

    def _remember(self, key: Any, var: Var) -> None:
        self._known.setdefault(tvm.ir.structural_hash(key), []).append((key, var))

    def _merge(self, binding: Any, value: RelayExpr, key: Any) -> bool:
        """Bind the variable that has the value already, if there is one."""
        for other, var in self._known.get(tvm.ir.structural_hash(key), ()):
            if not tvm.ir.structural_equal(key, other) or not _agree(var, binding.var):
                continue
            # The name stays, for whoever knows it; taking it out is up to CanonicalizeBindings.
            self.reemit_binding(VarBinding(binding.var, value), var)
            if isinstance(var, DataflowVar) and not isinstance(binding.var, DataflowVar):
                self._outputs[var] = binding.var
            self.set_var_remap(binding.var, var)
            return True
        return False

    def visit_binding_block(self, block: BindingBlock) -> BindingBlock:
        outer, self._outputs = self._outputs, {}
        new = super().visit_binding_block(block)
        for output in self._outputs.values():
            self.set_var_remap(output, output)
        # Dataflow variables end with their block; their values may go on under other names.
        for entries in self._known.values():
            entries[:] = [
                (value, self._outputs.get(var, var))
                for value, var in entries
                if var in self._outputs or not isinstance(var, DataflowVar)
            ]
        self._outputs = outer
        return new

    def visit_with_new_scope(self, expr: RelayExpr, params: list[Var] | None = None) -> RelayExpr:
        outer = {key: list(entries) for key, entries in self._known.items()}
        if params is not None:
            self._known = {}
        new = super().visit_with_new_scope(expr, params)
        self._known = outer
        return new


def _allocates(call: Call) -> bool:
    """Whether each call gives memory of its own, which others may write."""
    name = str(getattr(call.op, "name", ""))
    return "alloc" in name or name.endswith("call_tir_inplace") or "inplace" in name


def _agree(a: Var, b: Var) -> bool:
    return tvm.ir.structural_equal(a.struct_info, b.struct_info)


@graph_pass("EliminateCommonSubexpr")
def EliminateCommonSubexpr(mod: IRModule, call_only: bool = False) -> IRModule:
    """The module with equal values computed once, where the first is visible for the second.

    Parameters
    ----------
    call_only : whether tuples and their fields are left alone.
    """
    functions = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            func = _Merger(mod, call_only).visit_expr(func)
        functions[gvar] = func
    return mod.with_functions(functions)
