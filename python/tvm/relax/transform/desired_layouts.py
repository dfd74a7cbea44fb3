"""Layouts that operators are wished to have, kept from one operator to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import (
    Binding,
    Call,
    DataflowVar,
    Function,
    MatchCast,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    dict_attrs,
)
from ..expr_functor import PyExprMutator
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from .layout_rules import Orders, as_written, axes_between, place

__all__ = ["with_layouts"]


def with_layouts(mod: IRModule, desired: Mapping[str, Sequence[str]]) -> IRModule:
    """The module whose operators in dataflow blocks have the layouts that are desired of them."""
    functions = {}
    for gvar, func in mod.functions.items():
        functions[gvar] = (
            _Converter(mod, desired).visit_expr(func) if isinstance(func, Function) else func
        )
    return mod.with_functions(functions)


def _has_order(orders: Orders) -> bool:
    """Whether a value is a tensor of known rank or a tuple of such."""
    if isinstance(orders, list):
        return all(_has_order(part) for part in orders)
    return orders is not None


class _Converter(PyExprMutator):
    """Keeps the order of every variable of a dataflow block, and transposes where one is read in
    another order; what leaves the block is as it was written."""

    def __init__(self, mod: IRModule, desired: Mapping[str, Sequence[str]]) -> None:
        super().__init__(mod)
        self._desired = desired
        self._orders: dict[Var, Orders] = {}

    # ---- values in an order ----

    def _order_of(self, expr: RelayExpr) -> Orders:
        if isinstance(expr, Tuple):
            return [self._order_of(part) for part in expr.fields]
        if isinstance(expr, Var) and expr in self._orders:
            return self._orders[expr]
        return as_written(expr.struct_info)

    def _in_order(self, expr: RelayExpr, want: Orders) -> RelayExpr:
        """What stands for a value of the program, in an order."""
        have = self._order_of(expr)
        if want is None or have is None:
            return super().visit_expr(expr)
        if isinstance(expr, Tuple):
            assert isinstance(want, list)
            return Tuple([self._in_order(part, o) for part, o in zip(expr.fields, want)])
        now = self.get_var_remap(expr) if isinstance(expr, Var) else super().visit_expr(expr)
        return self._transposed(now, have, want)

    def _transposed(self, now: RelayExpr, have: Orders, want: Orders) -> RelayExpr:
        if have == want or have is None or want is None:
            return now
        if isinstance(have, list):
            assert isinstance(want, list)
            fields = [
                self._transposed(self.builder_.normalize(TupleGetItem(now, k)), one, other)
                for k, (one, other) in enumerate(zip(have, want))
            ]
            return Tuple(fields)
        assert isinstance(want, tuple)
        return self.builder_.emit(op.permute_dims(now, axes_between(have, want)))

    def visit_var_(self, op: Var) -> RelayExpr:
        return self._in_order(op, as_written(op.struct_info))

    def visit_dataflow_var_(self, op: DataflowVar) -> RelayExpr:
        return self._in_order(op, as_written(op.struct_info))

    # ---- bindings ----

    def visit_binding(self, binding: Binding) -> None:
        if not self.builder_.current_block_is_dataflow():
            super().visit_binding(binding)
            return
        value = binding.value
        if isinstance(binding, MatchCast):
            self._match_cast(binding)
        elif isinstance(value, Call) and op.has_op(value.op):
            self._call(binding, value)
        elif isinstance(value, Tuple) and _has_order(as_written(binding.var.struct_info)):
            self._tuple(binding, value)
        elif isinstance(value, TupleGetItem):
            self._field(binding, value)
        else:
            super().visit_binding(binding)

    def _is_inner(self, var: Var) -> bool:
        return isinstance(var, DataflowVar)

    def _call(self, binding: VarBinding, call: Call) -> None:
        written = as_written(binding.var.struct_info)
        orders = [self._order_of(arg) for arg in call.args]
        placed = None
        if self._is_inner(binding.var) or _has_order(written):
            placed = place(call, orders, self._desired)
        if placed is None:
            super().visit_binding(binding)
            return
        args = [self._in_order(arg, order) for arg, order in zip(call.args, placed.args)]
        settings = {**dict(call.attrs.items()), **placed.settings}
        new = self.builder_.normalize(Call(call.op, args, dict_attrs(settings), call.sinfo_args))
        if self._is_inner(binding.var):
            self._orders[binding.var] = placed.result
            self.reemit_binding(binding, new)
        elif placed.result == written:
            self.reemit_binding(binding, new)
        else:
            inner = self.builder_.emit(new)
            value = self._back(inner, placed.result, written)
            self.reemit_binding(binding, value)

    def _back(self, value: Var, have: Orders, want: Orders) -> RelayExpr:
        """The last transpose of a value, which the variable that leaves the block is bound to."""
        if isinstance(have, list):
            return self.builder_.normalize(self._transposed(value, have, want))
        assert isinstance(have, tuple) and isinstance(want, tuple)
        return self.builder_.normalize(op.permute_dims(value, axes_between(have, want)))

    def _tuple(self, binding: VarBinding, value: Tuple) -> None:
        order = (
            self._order_of(value) if self._is_inner(binding.var) else as_written(value.struct_info)
        )
        new = self.builder_.normalize(self._in_order(value, order))
        self._orders[binding.var] = order
        self.reemit_binding(binding, new)

    def _field(self, binding: VarBinding, value: TupleGetItem) -> None:
        tuple_order = self._order_of(value.tuple_value)
        if not self._is_inner(binding.var):
            tuple_order = as_written(value.tuple_value.struct_info)
        if not isinstance(tuple_order, list):
            super().visit_binding(binding)
            return
        base = self._in_order(value.tuple_value, tuple_order)
        self._orders[binding.var] = tuple_order[value.index]
        self.reemit_binding(binding, self.builder_.normalize(TupleGetItem(base, value.index)))

    def _match_cast(self, binding: MatchCast) -> None:
        written = as_written(binding.value.struct_info)
        order = self._order_of(binding.value) if self._is_inner(binding.var) else written
        if order == written or not _has_order(as_written(binding.struct_info)):
            super().visit_binding(binding)
            return
        info = _permuted(binding.struct_info, order)
        var = DataflowVar(str(binding.var.name_hint), info)
        self.set_var_remap(binding.var, var)
        self._orders[binding.var] = order
        value = self.builder_.normalize_argument(self._in_order(binding.value, order))
        self.builder_.emit_normalized(MatchCast(var, value, info))


def _permuted(info: StructInfo, order: Orders) -> StructInfo:
    """What is known of a value that is stored in an order."""
    if isinstance(info, TupleStructInfo):
        assert isinstance(order, list)
        return TupleStructInfo([_permuted(part, o) for part, o in zip(info.fields, order)])
    assert isinstance(info, TensorStructInfo) and isinstance(order, tuple)
    values = None if info.shape is None else info.shape.struct_info.values
    if values is None:
        return TensorStructInfo(None, str(info.dtype), info.vdevice, info.ndim)
    return TensorStructInfo([values[k] for k in order], str(info.dtype), info.vdevice)
