"""Bindings that only give another name to a value are taken out."""

from __future__ import annotations

import tvm
from tvm.ir import IRModule, RelayExpr

from ..expr import (
    Binding,
    BindingBlock,
    Constant,
    DataflowBlock,
    DataflowVar,
    Function,
    MatchCast,
    Tuple,
    TupleGetItem,
    Var,
)
from ..expr_functor import PyExprMutator, PyExprVisitor
from .graph_pass import graph_pass

__all__ = ["CanonicalizeBindings"]


class _Names(PyExprVisitor):
    """What each variable stands for, and where it is used."""

    def __init__(self) -> None:
        self._open: list[BindingBlock] = []
        self._values: dict[Var, RelayExpr] = {}
        # Variables that are only another name, with what they name.
        self.aliases: dict[Var, Var] = {}
        self.constants: dict[Var, Constant] = {}
        # The dataflow block that a variable is bound in.
        self._home: dict[Var, DataflowBlock] = {}
        self._order: list[Var] = []
        self.exposed: set[Var] = set()

    def root(self, var: Var) -> Var:
        """The variable that one of several names stands for."""
        while var in self.aliases:
            var = self.aliases[var]
        return var

    def visit_binding_block(self, block: BindingBlock) -> None:
        self._open.append(block)
        super().visit_binding_block(block)
        self._open.pop()

    def visit_binding(self, binding: Binding) -> None:
        var = binding.var
        self._order.append(var)
        if isinstance(self._open[-1], DataflowBlock):
            self._home[var] = self._open[-1]
        value = self._simple(binding)
        if isinstance(value, Var) and _same_info(var, value):
            self.aliases[var] = value
            return
        if isinstance(value, Constant):
            self.constants[var] = value
        self._values[var] = binding.value
        super().visit_binding(binding)

    def _simple(self, binding: Binding) -> RelayExpr | None:
        """The variable or constant that a binding gives a name to, None for everything else."""
        value = binding.value
        if isinstance(binding, MatchCast):
            is_new = not tvm.ir.structural_equal(binding.struct_info, value.struct_info)
            return None if is_new else value
        if isinstance(value, TupleGetItem) and isinstance(value.tuple_value, Var):
            whole = self._values.get(self.root(value.tuple_value))
            return whole.fields[value.index] if isinstance(whole, Tuple) else None
        return value

    def visit_var_(self, op: Var) -> None:
        var = self.root(op)
        home = self._home.get(var)
        if home is not None and not any(block.same_as(home) for block in self._open):
            self.exposed.add(var)
            self.exposed.add(op)

    def visit_dataflow_var_(self, op: DataflowVar) -> None:
        self.visit_var_(op)

    def new_definitions(self) -> dict[Var, Var]:
        """Variables that are to be bound in place of others.

        A dataflow variable that has another name outside of its block gets that, and a variable
        that nothing outside reads becomes a dataflow variable.
        """
        result: dict[Var, Var] = {}
        for var in self._order:
            root = self.root(var)
            if isinstance(root, DataflowVar):
                if var in self.exposed and not isinstance(var, DataflowVar):
                    result.setdefault(root, var)
            elif var.same_as(root) and var in self._home and var not in self.exposed:
                result[var] = DataflowVar(str(var.name_hint), var.struct_info)
        return result


def _same_info(a: RelayExpr, b: RelayExpr) -> bool:
    if a.struct_info is None or b.struct_info is None:
        return False
    return tvm.ir.structural_equal(a.struct_info, b.struct_info)


class _Rename(PyExprMutator):
    def __init__(self, mod: IRModule, names: _Names) -> None:
        super().__init__(mod)
        self._names = names
        self._defined = names.new_definitions()

    def visit_binding(self, binding: Binding) -> None:
        if binding.var not in self._names.aliases:
            super().visit_binding(binding)

    def visit_var_def(self, var: Var) -> Var:
        new = self._defined.get(var)
        if new is None:
            return super().visit_var_def(var)
        self.set_var_remap(var, new)
        return new

    def visit_var_(self, op: Var) -> RelayExpr:
        if op in self._names.constants:
            return self._names.constants[op]
        return super().visit_var_(self._names.root(op))

    def visit_dataflow_var_(self, op: DataflowVar) -> RelayExpr:
        return self.visit_var_(op)


@graph_pass("CanonicalizeBindings")
def CanonicalizeBindings(mod: IRModule) -> IRModule:
    """The module without bindings that only name a value again.

    Readers take the value itself; so do those of a field of a tuple whose fields are known, and of
    constants. Casts that say nothing new are such bindings. In dataflow blocks, only what is read
    outside of the block stays one of its outputs.
    """
    functions = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            names = _Names()
            names.visit_expr(func)
            func = _Rename(mod, names).visit_expr(func)
        functions[gvar] = func
    return mod.with_functions(functions)
