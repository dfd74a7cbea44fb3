"""The walk that graph passes share: a function rebuilt binding by binding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm.ir import IRModule, RelayExpr

from .block_builder import NameSupply
from .expr import (
    Call,
    DataflowBlock,
    DataflowVar,
    Function,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)

__all__ = ["FunctionRewriter", "graph_functions", "map_functions", "use_counts", "uses_of"]


def uses_of(value: RelayExpr) -> list[Var]:
    """Variables that a bound value reads, once for each read."""
    if isinstance(value, Var):
        return [value]
    if isinstance(value, Call):
        return [var for arg in value.args for var in uses_of(arg)]
    if isinstance(value, Tuple):
        return [var for field in value.fields for var in uses_of(field)]
    if isinstance(value, TupleGetItem):
        return uses_of(value.tuple_value)
    return []


def use_counts(func: Function) -> dict[Var, int]:
    """How often each variable is read, by bindings and by the result."""
    counts: dict[Var, int] = {}
    values = [b.value for block in func.body.blocks for b in block.bindings]
    for value in [*values, func.body.body]:
        for var in uses_of(value):
            counts[var] = counts.get(var, 0) + 1
    return counts


def graph_functions(mod: IRModule) -> dict[Any, Function]:
    """Graph functions of the module that are not single kernels, by global variable."""
    return {
        gvar: func
        for gvar, func in mod.functions.items()
        if isinstance(func, Function) and not func.attrs.get("Primitive", 0)
    }


def map_functions(mod: IRModule, fn: Callable[[Function], Function]) -> IRModule:
    """The module with ``fn`` applied to each graph function that is not a single kernel."""
    functions = dict(mod.functions.items())
    for gvar, func in graph_functions(mod).items():
        functions[gvar] = fn(func)
    return mod.with_functions(functions)


class FunctionRewriter:
    """Rebuilds a function. Subclasses override :meth:`rewrite`, one call per binding.

    Attributes
    ----------
    values : for each variable of the new function, what it is bound to (parameters are absent).
    origins : for each of them that replaces a variable of the old function, that one.
    """

    def __init__(self, func: Function) -> None:
        self.func = func
        self.values: dict[Var, RelayExpr] = {}
        self.origins: dict[Var, Var] = {}
        self._replaced: dict[Var, RelayExpr] = {}
        self._names = NameSupply()
        self._bindings: list[VarBinding] = []
        self._in_dataflow = False
        for param in func.params:
            self._names.fresh(str(param.name_hint))

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        """What replaces ``value``, bound to ``var`` in the old function.

        ``value`` reads variables of the new function already. The result is a value to bind, or a
        variable or constant that takes the place of ``var``. More bindings come from :meth:`emit`.
        """
        return value

    def rewrite_result(self, result: RelayExpr) -> RelayExpr:
        """What replaces the function's result, given in variables of the new function."""
        return result

    def emit(self, value: RelayExpr, name_hint: str = "lv") -> Var:
        """Bind a value in front of the binding that is being rewritten."""
        make = DataflowVar if self._in_dataflow else Var
        return self._bind(make(self._names.fresh(name_hint), value.struct_info), value)

    def run(self) -> Function:
        """The rebuilt function."""
        blocks = []
        for block in self.func.body.blocks:
            self._bindings = []
            self._in_dataflow = isinstance(block, DataflowBlock)
            for binding in block.bindings:
                self._rewrite_binding(binding.var, binding.value)
            if self._bindings:
                make = type(block)
                blocks.append(make(self._bindings))
        result = self.rewrite_result(self.substitute(self.func.body.body))
        return Function(
            self.func.params,
            SeqExpr(blocks, result),
            is_pure=self.func.is_pure,
            attrs=self.func.attrs,
        )

    def _rewrite_binding(self, var: Var, old_value: RelayExpr) -> None:
        value = self.rewrite(var, self.substitute(old_value))
        is_output = not isinstance(var, DataflowVar)
        if not isinstance(value, (Call, Tuple, TupleGetItem)) and not is_output:
            self._replaced[var] = value
            return
        name = self._names.fresh(str(var.name_hint))
        new = self._bind(type(var)(name, value.struct_info), value)
        self._replaced[var] = new
        self.origins[new] = var

    def _bind(self, var: Var, value: RelayExpr) -> Var:
        self._bindings.append(VarBinding(var, value))
        self.values[var] = value
        return var

    def substitute(self, value: RelayExpr) -> RelayExpr:
        """The value with variables of the old function replaced by those of the new one."""
        if isinstance(value, Var):
            return self._replaced.get(value, value)
        if isinstance(value, Call):
            args = [self.substitute(arg) for arg in value.args]
            if all(a.same_as(b) for a, b in zip(args, value.args)):
                return value
            return Call(value.op, args, value.attrs, value.sinfo_args, value.struct_info)
        if isinstance(value, Tuple):
            return Tuple([self.substitute(field) for field in value.fields])
        if isinstance(value, TupleGetItem):
            return TupleGetItem(self.substitute(value.tuple_value), value.index)
        return value
