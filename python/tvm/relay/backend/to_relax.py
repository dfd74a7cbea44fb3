"""Relay programs as graphs of relax, whose passes, kernels and machine they then use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import error, relax, te
from tvm.driver import schedule_to_module
from tvm.ir import GlobalVar, IRModule, Op, RelayExpr, TensorType, TupleType
from tvm.relax.struct_info import static_shape
from tvm.target import Target

from ..expr import Call, Constant, Function, If, Let, Tuple, TupleGetItem, Var
from ..expr_functor import PostOrderFunctor, PostOrderVisitor
from ..op.implementation import own_strategy
from ..op.registry import find_row, settings_of, struct_info_of
from ..ty import is_dynamic
from .implementations import select_implementation

__all__ = ["is_graph", "to_relax"]


Kept = Callable[[Call], bool]

# Attributes of operators that say what programs' own compute.
_COMPUTATIONS = ("FTVMCompute", "FTVMStrategy")


class _GraphCheck(PostOrderVisitor):
    """Whether every part is an operator with a kernel, on tensors of fixed shape."""

    def __init__(self, mod: IRModule | None) -> None:
        super().__init__()
        self.fits = True
        self._mod = mod
        self._entered: list[Function] = []

    def dispatch(self, expr: RelayExpr) -> None:
        kinds = (Var, Constant, Call, Tuple, TupleGetItem, Op, Function, Let)
        if not isinstance(expr, kinds):
            self.fits = False
            return
        super().dispatch(expr)

    def visit_function(self, func: Function) -> None:
        # Only what is called at once is part of a graph; see visit_call.
        self.fits = False

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        if isinstance(expr, Call):
            return list(expr.args)
        return super().visited_first(expr)

    def visit_call(self, call: Call) -> None:
        for arg in call.args:
            self.visit(arg)
        if is_dynamic(call.checked_type_):
            self.fits = False
        elif isinstance(call.op, Function) and _foreign(call.op) is None:
            self.visit(call.op.body)
        elif isinstance(call.op, (Function, GlobalVar)):
            func = self._mod[call.op] if isinstance(call.op, GlobalVar) and self._mod else call.op
            if isinstance(func, GlobalVar):
                self.fits = False
            elif _foreign(func) is None:
                if any(func.same_as(f) for f in self._entered):
                    self.fits = False  # It calls itself.
                    return
                self._entered.append(func)
                self.visit(func.body)
                self._entered.pop()
        elif isinstance(call.op, Op):
            row = find_row(call.op)
            known = row is not None and (row.lower is not None or row.written is not None)
            if not known and not any(call.op.has_attr(key) for key in _COMPUTATIONS):
                self.fits = False
            if known and row is not None and row.host is not None and row.compute is None:
                self.fits &= all(isinstance(a, Constant) for a in call.args[1:])
                self.fits &= row.name != "arange" or isinstance(call.args[0], Constant)
        else:
            self.fits = False

    def visit_let(self, let: Let) -> None:
        node: RelayExpr = let
        while isinstance(node, Let):
            self.visit(node.value)
            node = node.body
        self.visit(node)


def _foreign(func: Function) -> str | None:
    """The compiler that a function is for, None for ours."""
    return (
        str(func.attrs["Compiler"]) if func.attrs is not None and "Compiler" in func.attrs else None
    )


def is_graph(func: Function, mod: IRModule | None = None) -> bool:
    """Whether a function, whose types are known, is a graph of tensors of fixed shape.

    Parameters
    ----------
    mod : has the functions that it calls by name.
    """
    if any(is_dynamic(p.checked_type_) for p in func.params):
        return False
    if any(not isinstance(p.checked_type_, (TensorType, TupleType)) for p in func.params):
        return False
    check = _GraphCheck(mod)
    check.visit(func.body)
    return check.fits


class _Translator(PostOrderFunctor):
    def __init__(
        self,
        builder: relax.BlockBuilder,
        mod: IRModule | None,
        target: Target | None,
        kept: Kept,
    ) -> None:
        super().__init__()
        self._builder = builder
        self._mod = mod
        self._target = target
        self._kept = kept

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        if isinstance(expr, Call):
            return list(expr.args)
        return super().visited_first(expr)

    def visit_var(self, var: Var) -> Any:
        raise error.ValueError(f"relay: variable '{var.name_hint}' is not bound")

    def visit_constant(self, const: Constant) -> Any:
        return relax.const(const.data)

    def visit_tuple(self, tup: Tuple) -> Any:
        return relax.Tuple([self.visit(f) for f in tup.fields])

    def visit_tuple_getitem(self, item: TupleGetItem) -> Any:
        value = self.visit(item.tuple_value)
        if isinstance(value, relax.Tuple):
            return value.fields[item.index]
        return self._builder.emit(relax.TupleGetItem(value, item.index))

    def visit_let(self, let: Let) -> Any:
        node: RelayExpr = let
        while isinstance(node, Let):
            self.memo_map[node.var] = self.visit(node.value)
            node = node.body
        return self.visit(node)

    def visit_if(self, iff: If) -> Any:
        raise error.TypeError("relay: a graph has no branches; run it by the vm executor")

    def visit_call(self, call: Call) -> Any:
        row = find_row(call.op)
        args = [self.visit(arg) for arg in call.args]
        target = self._target
        if target is not None and isinstance(call.op, Op) and own_strategy(call.op, target):
            return self._scheduled_operator(call, args, target)
        if row is not None and row.written is not None and row.lower is None:
            return self.visit(row.written(call))
        if isinstance(call.op, (Function, GlobalVar)):
            func = self._mod[call.op] if isinstance(call.op, GlobalVar) and self._mod else call.op
            if _foreign(func) is not None:
                return self._foreign_call(func, call, args)
            inner = _Translator(self._builder, self._mod, self._target, self._kept)
            inner.memo_map.update(zip(func.params, args))
            return inner.visit(func.body)
        if row is None:
            return self._user_operator(call, args)
        settings = settings_of(call)
        for key, default in row.settings.items():
            settings.setdefault(key, default)
        if self._kept(call):
            return self._builder.emit(relax.op.make_call(f"relay.{row.name}", *args, **settings))
        assert row.lower is not None
        result = row.lower(args, settings)
        if isinstance(result, (relax.Var, relax.Constant, relax.Tuple)):
            return result
        return self._builder.emit(result)

    def _foreign_call(self, func: Function, call: Call, args: Sequence[Any]) -> Any:
        """The call of a function that another compiler's library has."""
        symbol = str(func.attrs["global_symbol"])
        tensors = [leaf for arg in args for leaf in _flat(relax.Tuple([arg])).fields]
        outputs = struct_info_of(call.checked_type_)
        infos = list(outputs.fields) if isinstance(outputs, relax.TupleStructInfo) else outputs
        return self._builder.emit(relax.call_dps_packed(symbol, relax.Tuple(tensors), infos))

    def _user_operator(self, call: Call, args: Sequence[Any]) -> Any:
        """An operator that a user registered with a te computation."""

        def run(*operands: Any) -> Any:
            target = self._target or Target.current() or Target("llvm")
            _, results = select_implementation(
                call.op, call.attrs, _leaves(operands), call.checked_type_, target, False
            )
            return results[0] if len(results) == 1 else results

        name = str(call.op.name).rsplit(".", 1)[-1]
        return self._builder.emit_te(run, *args, primfunc_name_hint=name)

    def _scheduled_operator(self, call: Call, args: Sequence[Any], target: Target) -> Any:
        """An operator whose kernel is that of a strategy, under its schedule."""
        values = _flat(relax.Tuple(list(args))).fields
        infos = [value.struct_info for value in values]
        if any(isinstance(info, relax.TupleStructInfo) for info in infos):
            values = [leaf for value in values for leaf in self._fields_of(value)]
            infos = [value.struct_info for value in values]
        inputs = [
            te.placeholder(static_shape(info), str(info.dtype), f"p{k}")
            for k, info in enumerate(infos)
        ]
        implementation, outputs = select_implementation(
            call.op, call.attrs, inputs, call.checked_type_, target
        )
        schedule = implementation.schedule(call.attrs, outputs, target)
        name = str(call.op.name).rsplit(".", 1)[-1]
        func = schedule_to_module(schedule, [*inputs, *outputs], name=name)[name]
        kernel = self._builder.add_func(func, name)
        results = struct_info_of(call.checked_type_)
        given = list(results.fields) if isinstance(results, relax.TupleStructInfo) else results
        return self._builder.emit(relax.call_tir(kernel, relax.Tuple(values), given))

    def _fields_of(self, value: Any) -> list[Any]:
        """A value as tensors: itself, or the fields of a tuple."""
        if not isinstance(value.struct_info, relax.TupleStructInfo):
            return [value]
        return [
            leaf
            for k in range(len(value.struct_info.fields))
            for leaf in self._fields_of(self._builder.emit(relax.TupleGetItem(value, k)))
        ]


def _leaves(operands: Sequence[Any]) -> list[te.Tensor]:
    """Tensors of operands, of which some are lists."""
    return [
        leaf
        for operand in operands
        for leaf in ([operand] if isinstance(operand, te.Tensor) else _leaves(operand))
    ]


def to_relax(
    func: Function,
    mod: IRModule | None = None,
    name: str = "main",
    target: Target | None = None,
    kept: Kept = lambda call: False,
) -> IRModule:
    """A module of relax with a relay function, whose types are known and which is a graph.

    Parameters
    ----------
    target : operators for which a program registered a strategy become its kernels for it. Without
        one they are computed as the library does, and only others as their strategies say.
    kept : whether a call of an operator with a computation of its own is that kernel, which relax's
        passes leave as it is, instead of what the operator is written as in relax.

    Raises
    ------
    TypeError, ValueError : it is none; see :func:`is_graph`.
    """
    builder = relax.BlockBuilder()
    params = [relax.Var(str(p.name_hint), struct_info_of(p.checked_type_)) for p in func.params]
    with builder.function(name, params):
        with builder.dataflow():
            translator = _Translator(builder, mod, target, kept)
            translator.memo_map.update(zip(func.params, params))
            result = builder.emit_output(_flat(translator.visit(func.body)))
        builder.emit_func_output(result)
    return builder.get()


def _flat(value: Any) -> Any:
    """Nested tuples are results of one level only; their fields come one after the other."""
    if not isinstance(value, relax.Tuple):
        return value
    fields: list[Any] = []

    def add(item: Any) -> None:
        if isinstance(item, relax.Tuple):
            for field in item.fields:
                add(field)
        else:
            fields.append(item)

    add(value)
    return relax.Tuple(fields)
