"""Builds graph functions one binding at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tvm import te, tir
from tvm.ir import BaseFunc, GlobalVar, IRModule, RelayExpr

from .expr import (
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    ExternFunc,
    Function,
    SeqExpr,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
    dict_attrs,
)
from .op import call_tir, has_op, infer_struct_info
from .struct_info import StructInfo, TensorStructInfo, TupleStructInfo, static_shape

__all__ = ["BlockBuilder", "NameSupply"]


class NameSupply:
    """Names that have not been used: ``add``, then ``add1``, ``add2``."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._next: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """The hint itself the first time, then with a number."""
        name = hint
        while name in self._used:
            self._next[hint] = self._next.get(hint, 0) + 1
            name = f"{hint}{self._next[hint]}"
        self._used.add(name)
        return name


@dataclass
class _Block:
    is_dataflow: bool
    bindings: list[VarBinding] = field(default_factory=list)

    def finish(self) -> BindingBlock:
        return DataflowBlock(self.bindings) if self.is_dataflow else BindingBlock(self.bindings)


@dataclass
class _Scope:
    """A function being built."""

    name: str
    params: list[Var] | None
    attrs: dict[str, Any]
    names: NameSupply = field(default_factory=NameSupply)
    blocks: list[_Block] = field(default_factory=list)
    in_dataflow: bool = False
    is_pure: bool = True
    output: RelayExpr | None = None


class BlockBuilder:
    """Builds a module of graph functions.

    >>> bb = relax.BlockBuilder()
    >>> x = relax.Var("x", relax.TensorStructInfo((4, 8), "float32"))
    >>> with bb.function("main", [x]):
    ...     with bb.dataflow():
    ...         y = bb.emit(relax.op.nn.relu(x))
    ...         out = bb.emit_output(relax.op.add(y, x))
    ...     bb.emit_func_output(out)
    >>> mod = bb.get()
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self._functions: dict[GlobalVar, BaseFunc] = {}
        self._global_names = NameSupply()
        self._scope: _Scope | None = None
        for gvar, func in mod.functions.items() if mod is not None else ():
            self._functions[gvar] = func
            self._global_names.fresh(str(gvar.name_hint))

    @contextmanager
    def function(
        self, name: str, params: Sequence[Var] | None = None, attrs: dict[str, Any] | None = None
    ) -> Iterator[None]:
        """Scope of one function; ``emit_func_output`` inside it ends the function.

        Parameters
        ----------
        params : the parameters, unless they are given to ``emit_func_output``.

        Raises
        ------
        ValueError : functions are nested, or the scope ends without an output.
        """
        if self._scope is not None:
            raise ValueError(
                f"BlockBuilder.function: '{name}' is inside '{self._scope.name}'; end that first"
            )
        scope = _Scope(name, None if params is None else list(params), dict(attrs or {}))
        for param in scope.params or ():
            scope.names.fresh(str(param.name_hint))
        self._scope = scope
        try:
            yield
        finally:
            self._scope = None
        if scope.output is None:
            raise ValueError(
                f"BlockBuilder.function: '{name}' has no output; call emit_func_output in its scope"
            )
        self.add_func(self._finish(scope), name)

    @staticmethod
    def _finish(scope: _Scope) -> Function:
        assert scope.output is not None
        blocks = [block.finish() for block in scope.blocks if block.bindings]
        return Function(
            scope.params or [],
            SeqExpr(blocks, scope.output),
            is_pure=scope.is_pure,
            attrs=dict_attrs({"global_symbol": scope.name, **scope.attrs}),
        )

    @contextmanager
    def dataflow(self) -> Iterator[None]:
        """Scope of one dataflow block: bindings without side effects."""
        scope = self._current("dataflow")
        if scope.in_dataflow:
            raise ValueError("BlockBuilder.dataflow: dataflow blocks do not nest")
        scope.blocks.append(_Block(is_dataflow=True))
        scope.in_dataflow = True
        try:
            yield
        finally:
            scope.in_dataflow = False

    def emit(self, expr: RelayExpr, name_hint: str = "") -> Var:
        """Bind an expression to a new variable; nested calls get variables of their own."""
        return self._bind(expr, name_hint, is_output=False)

    def emit_output(self, expr: RelayExpr, name_hint: str = "") -> Var:
        """Bind an expression to a variable that stays visible after the dataflow block."""
        if not self._current("emit_output").in_dataflow:
            raise ValueError("BlockBuilder.emit_output: only inside a dataflow block; use emit")
        return self._bind(expr, name_hint, is_output=True)

    def emit_te(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
        """Bind the result of a te function as one kernel, named after the function.

        Parameters
        ----------
        fn : from te tensors to a te tensor or a list of them. Positional graph expressions become
            placeholders, everything else is passed on.
        """
        # The schedules build on graph functions, so they cannot be imported before them.
        from .default_schedule import default_prim_func

        scope = self._current("emit_te")
        operands = [self._normalize(a, scope) if isinstance(a, RelayExpr) else a for a in args]
        graph = [a for a in operands if isinstance(a, RelayExpr)]
        inputs = [
            te.placeholder(static_shape(a.struct_info), str(a.struct_info.dtype), f"p{i}")
            for i, a in enumerate(graph)
        ]
        supply = iter(inputs)
        result = fn(*(next(supply) if isinstance(a, RelayExpr) else a for a in operands), **kwargs)
        outputs = [result] if isinstance(result, te.Tensor) else list(result)
        hint = getattr(fn, "__name__", "te")
        gvar = self.add_func(default_prim_func(inputs, outputs, hint), hint)
        infos = [TensorStructInfo(list(t.shape), str(t.dtype)) for t in outputs]
        return self.emit(call_tir(gvar, graph, infos[0] if len(infos) == 1 else infos))

    def emit_func_output(
        self, output: RelayExpr | Sequence[RelayExpr], params: Sequence[Var] | None = None
    ) -> None:
        """End the function with a result.

        Parameters
        ----------
        output : an expression, or several for a tuple. A value local to a dataflow block is made
            an output of that block.
        params : the parameters, unless ``function`` has them.

        Raises
        ------
        ValueError : the parameters are given twice or not at all.
        """
        scope = self._current("emit_func_output")
        if params is not None:
            if scope.params is not None:
                raise ValueError(
                    f"BlockBuilder.emit_func_output: '{scope.name}' has its parameters already"
                )
            scope.params = list(params)
        if scope.params is None:
            raise ValueError(
                f"BlockBuilder.emit_func_output: '{scope.name}' has no parameters; give params "
                "here or to function (an empty list for none)"
            )
        if not isinstance(output, RelayExpr):
            output = Tuple([self._visible(item, scope) for item in output])
        elif isinstance(output, Tuple):
            output = Tuple([self._visible(item, scope) for item in output.fields])
        else:
            output = self._visible(output, scope)
        scope.output = output

    def add_func(self, func: BaseFunc, name: str) -> GlobalVar:
        """Add a function under the name, numbered if it is taken."""
        gvar = GlobalVar(self._global_names.fresh(name))
        if isinstance(func, tir.PrimFunc):
            # The symbol in the compiled library must be as unique as the name in the module.
            func = func.with_attr("global_symbol", str(gvar.name_hint))
        self._functions[gvar] = func
        return gvar

    def get(self) -> IRModule:
        """The module built so far."""
        return IRModule(self._functions)

    def _current(self, method: str) -> _Scope:
        if self._scope is None:
            raise ValueError(f"BlockBuilder.{method}: only inside bb.function(...)")
        return self._scope

    def _visible(self, expr: RelayExpr, scope: _Scope) -> RelayExpr:
        """The value as something usable outside the dataflow blocks."""
        expr = self._normalize(expr, scope)
        if not isinstance(expr, DataflowVar):
            return expr
        for block in scope.blocks:
            if any(binding.var.same_as(expr) for binding in block.bindings):
                var = Var(scope.names.fresh("gv"), expr.struct_info)
                block.bindings.append(VarBinding(var, expr))
                return var
        raise ValueError(
            f"BlockBuilder.emit_func_output: '{expr.name_hint}' is not bound in '{scope.name}'"
        )

    def _bind(self, expr: RelayExpr, name_hint: str, is_output: bool) -> Var:
        scope = self._current("emit")
        value = self._normalize_value(expr, scope)
        local = scope.in_dataflow and not is_output
        if not scope.blocks or (not scope.in_dataflow and scope.blocks[-1].is_dataflow):
            scope.blocks.append(_Block(is_dataflow=False))
        if isinstance(value, Call) and isinstance(value.op, ExternFunc):
            if scope.in_dataflow:
                raise ValueError(
                    f"BlockBuilder.emit: '{value.op.global_symbol}' may have side effects and "
                    "cannot be called in a dataflow block; emit it outside, or use call_dps_packed"
                )
            scope.is_pure = False
        make = DataflowVar if local else Var
        var = make(scope.names.fresh(name_hint or ("lv" if local else "gv")), value.struct_info)
        scope.blocks[-1].bindings.append(VarBinding(var, value))
        return var

    def _normalize(self, expr: RelayExpr, scope: _Scope) -> RelayExpr:
        """The expression as an argument: calls and projections are bound first."""
        if isinstance(expr, (Var, Constant, ShapeExpr, GlobalVar, ExternFunc)):
            return expr
        if isinstance(expr, Tuple):
            fields = [self._normalize(item, scope) for item in expr.fields]
            same = all(a.same_as(b) for a, b in zip(fields, expr.fields))
            return expr if same else Tuple(fields)
        return self.emit(expr)

    def _normalize_value(self, expr: RelayExpr, scope: _Scope) -> RelayExpr:
        """The expression with normal arguments and its struct info filled in."""
        if isinstance(expr, Call):
            args = [self._normalize(arg, scope) for arg in expr.args]
            info = expr.struct_info
            if info is None:
                info = self._result_info(Call(expr.op, args, expr.attrs, expr.sinfo_args))
            return Call(expr.op, args, expr.attrs, expr.sinfo_args, info)
        if isinstance(expr, TupleGetItem):
            return TupleGetItem(self._normalize(expr.tuple_value, scope), expr.index)
        return self._normalize(expr, scope)

    def _result_info(self, call: Call) -> StructInfo:
        if len(call.sinfo_args) == 1:
            return call.sinfo_args[0]
        if len(call.sinfo_args):
            return TupleStructInfo(call.sinfo_args)
        if has_op(call.op):
            return infer_struct_info(call)
        if isinstance(call.op, GlobalVar):
            callee = self._functions.get(call.op)
            if isinstance(callee, Function):
                return callee.ret_struct_info
        raise ValueError(
            f"BlockBuilder.emit: nothing says what a call of {call.op} returns; give sinfo_args"
        )
