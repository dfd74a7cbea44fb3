"""Names of functions and constructors written as functions, and wide calls as several."""

from __future__ import annotations

from tvm import error
from tvm.ir import Constructor, GlobalVar, IRModule, RelayExpr, TensorType
from tvm.ir.transform import Pass

from .. import op
from ..expr import Call, Function, Tuple, Var
from ..expr_functor import PostOrderMutator
from ..op.annotation import stop_fusion
from ..op.registry import settings_of
from .base import expression_pass

__all__ = ["EtaExpand", "SplitArgs"]


class _Eta(PostOrderMutator):
    def __init__(self, mod: IRModule, constructors: bool, global_vars: bool) -> None:
        super().__init__()
        self._mod = mod
        self._constructors = constructors
        self._global_vars = global_vars

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        if isinstance(expr, Call) and isinstance(expr.op, (Constructor, GlobalVar)):
            return list(expr.args)
        return super().visited_first(expr)

    def visit(self, expr: RelayExpr) -> RelayExpr:
        # Each place gets a function of its own, since types may differ.
        named = isinstance(expr, (Constructor, GlobalVar))
        return self.dispatch(expr) if named else super().visit(expr)

    def visit_call(self, call: Call) -> RelayExpr:
        # What is called is a function already.
        if isinstance(call.op, (Constructor, GlobalVar)):
            args = [self.visit(arg) for arg in call.args]
            if all(new.same_as(old) for new, old in zip(args, call.args)):
                return call
            return Call(call.op, args, call.attrs, call.type_args, call.span)
        return super().visit_call(call)

    def visit_constructor(self, constructor: Constructor) -> RelayExpr:
        if not self._constructors:
            return constructor
        return _calling(constructor, len(constructor.inputs))

    def visit_global_var(self, gvar: GlobalVar) -> RelayExpr:
        func = self._mod[gvar] if self._global_vars and gvar in self._mod else None
        if not isinstance(func, Function):
            return gvar
        return _calling(gvar, len(func.params))


def _calling(name: RelayExpr, count: int) -> Function:
    """A function that calls one; its types are those of the place where it is used."""
    params = [Var(f"eta_expand_param_{k}") for k in range(count)]
    return Function(params, Call(name, params))


def EtaExpand(expand_constructor: bool = False, expand_global_var: bool = False) -> Pass:
    """Write names that are not called as functions that call them.

    Parameters
    ----------
    expand_constructor, expand_global_var : whether constructors of defined types, and functions
        of the module, are written so.
    """
    return expression_pass(
        lambda f, mod: _Eta(mod, expand_constructor, expand_global_var).visit(f), 1, "EtaExpand"
    )


def _tensors(value: RelayExpr) -> int:
    type_ = value.checked_type
    return 1 if isinstance(type_, TensorType) else len(type_.fields)


class _Split(PostOrderMutator):
    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def visit_call(self, call: Call) -> RelayExpr:
        new = super().visit_call(call)
        if not isinstance(new, Call) or str(getattr(call.op, "name", "")) != "concatenate":
            return new
        parts = new.args[0]
        if not isinstance(parts, Tuple) or _tensors(call.args[0]) <= self._most:
            return new
        axis = settings_of(call)["axis"]
        fields = list(parts.fields)
        while len(fields) > self._most:
            groups = [fields[k : k + self._most] for k in range(0, len(fields), self._most)]
            fields = [
                stop_fusion(op.concatenate(group, axis)) if len(group) > 1 else group[0]
                for group in groups
            ]
        return op.concatenate(fields, axis)


def SplitArgs(max_function_args: int) -> Pass:
    """Join many tensors by several calls of `concatenate`, none of which takes more than a number.

    Between them is `annotation.stop_fusion`, so that their kernels have no more arguments either.

    Raises
    ------
    ValueError : the number is less than 2.
    """
    if max_function_args < 2:
        raise error.ValueError(
            f"relay.SplitArgs: max_function_args is at least 2, got {max_function_args}"
        )
    return expression_pass(lambda f, mod: _Split(max_function_args).visit(f), 1, "SplitArgs")
