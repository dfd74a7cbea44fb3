"""Results of private functions that no caller reads."""

from __future__ import annotations

from tvm.ir import GlobalVar, IRModule, RelayExpr

from ..analysis import all_global_vars
from ..analysis.dead_code import without_dead_code
from ..expr import Call, Function, SeqExpr, Tuple, TupleGetItem, Var, VarBinding
from ..expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from ..struct_info import TupleStructInfo
from .graph_pass import graph_pass

__all__ = ["RemoveUnusedOutputs"]


@visitor
class _Reads(PyExprVisitor):
    """Which fields of the results of functions are read; None for a result that is read whole."""

    def __init__(self) -> None:
        self.fields: dict[GlobalVar, set[int] | None] = {}
        self._results: dict[Var, GlobalVar] = {}

    def _whole(self, gvar: GlobalVar) -> None:
        self.fields[gvar] = None

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        if isinstance(value, Call) and isinstance(value.op, GlobalVar):
            self._results[binding.var] = value.op
            self.fields.setdefault(value.op, set())
            for arg in value.args:
                self.visit_expr(arg)
            return
        if isinstance(value, TupleGetItem) and value.tuple_value in self._results:
            read = self.fields[self._results[value.tuple_value]]
            if read is not None:
                read.add(int(value.index))
            return
        super().visit_var_binding_(binding)

    def visit_var_(self, op: Var) -> None:
        if op in self._results:
            self._whole(self._results[op])

    visit_dataflow_var_ = visit_var_

    def visit_global_var_(self, op: GlobalVar) -> None:
        self._whole(op)


@mutator
class _Caller(PyExprMutator):
    def __init__(self, mod: IRModule, kept: dict[GlobalVar, list[int]]) -> None:
        super().__init__(mod)
        self._kept = kept
        self._results: dict[Var, list[int]] = {}

    def visit_var_binding_(self, binding: VarBinding) -> None:
        value = binding.value
        if isinstance(value, Call) and value.op in self._kept:
            kept = self._kept[value.op]
            args = [self.visit_expr(arg) for arg in value.args]
            call = self.builder_.normalize(Call(value.op, args, value.attrs, value.sinfo_args))
            self._results[binding.var] = kept
            self.reemit_binding(binding, call)
            return
        super().visit_var_binding_(binding)

    def visit_tuple_getitem_(self, op: TupleGetItem) -> RelayExpr:
        kept = self._results.get(op.tuple_value)
        if kept is None:
            return super().visit_tuple_getitem_(op)
        whole = self.visit_expr(op.tuple_value)
        # A function that is left with one result gives it as it is.
        return whole if len(kept) == 1 else TupleGetItem(whole, kept.index(int(op.index)))


def _with_results(func: Function, kept: list[int]) -> Function | None:
    """The function with some of the fields of its result; None if they have no names."""
    result = func.body.body
    if not isinstance(result, Tuple):
        values = {b.var: b.value for block in func.body.blocks for b in block.bindings}
        result = values.get(result)
    if not isinstance(result, Tuple):
        return None
    fields = [result.fields[i] for i in kept]
    body = SeqExpr(func.body.blocks, fields[0] if len(fields) == 1 else Tuple(fields))
    return without_dead_code(Function(func.params, body, None, func.is_pure, func.attrs))


@graph_pass("RemoveUnusedOutputs")
def RemoveUnusedOutputs(mod: IRModule) -> IRModule:
    """The module with private functions that give no more than what some caller reads.

    Of a private function that gives a tuple, fields that no call's result is asked for are left
    out, together with what only they needed; one field that is left is given without a tuple.
    Functions whose result is passed on as a whole stay as they are.
    """
    reads = _Reads()
    for func in mod.functions.values():
        if isinstance(func, Function):
            reads.visit_expr(func)
    functions = dict(mod.functions.items())
    kept: dict[GlobalVar, list[int]] = {}
    for gvar, func in mod.functions.items():
        read = reads.fields.get(gvar)
        if not isinstance(func, Function) or read is None or "global_symbol" in (func.attrs or {}):
            continue
        info = func.ret_struct_info
        if not isinstance(info, TupleStructInfo) or not 0 < len(read) < len(info.fields):
            continue
        new = _with_results(func, sorted(read))
        if new is not None:
            functions[gvar], kept[gvar] = new, sorted(read)
    if not kept:
        return mod
    caller = _Caller(mod.with_functions(functions), kept)
    for gvar, func in functions.items():
        if isinstance(func, Function) and any(g in kept for g in all_global_vars(func)):
            caller.builder_.update_func(gvar, caller.visit_expr(func))
    return caller.builder_.get()
