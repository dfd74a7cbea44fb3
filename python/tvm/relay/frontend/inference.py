"""What importers of one's own need: types and values on the way, and places in a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tvm import error
from tvm.ir import IRModule, RelayExpr, Span, TensorType

from .. import op as ops
from ..analysis.infer import infer_module
from ..analysis.variables import free_vars
from ..binding import bind
from ..build_module import create_executor
from ..expr import (
    Call,
    CallWithFields,
    Constant,
    ConstantWithFields,
    Function,
    Tuple,
    TupleGetItem,
    TupleGetItemWithFields,
    TupleWithFields,
    TupleWrapper,
    Var,
    const,
    var,
)
from ..transform import FoldConstantExpr

__all__ = [
    "fold_constant",
    "get_name",
    "get_relay_op",
    "infer_channels",
    "infer_shape",
    "infer_type",
    "infer_value",
    "infer_value_simulated",
    "new_var",
    "set_span",
    "try_infer_value",
    "try_resolve_var_to_const",
]


def new_var(
    name_hint: str, type_annotation: Any = None, shape: Any = None, dtype: str = "float32"
) -> Var:
    """A variable; see `relay.var`."""
    return var(name_hint, type_annotation, shape, dtype)


def get_relay_op(op_name: str) -> Any:
    """The function that makes calls of an operator: "conv2d", "nn.conv2d" or "vision.roi_pool".

    Raises
    ------
    AttributeError : there is none.
    """
    for place in ("", "nn.", "image.", "vision."):
        found: Any = ops
        for part in (place + op_name).split("."):
            found = getattr(found, part, None)
        if found is not None:
            return found
    raise error.AttributeError(f"relay: there is no operator '{op_name}'")


def infer_type(node: RelayExpr, mod: IRModule | None = None) -> RelayExpr:
    """The expression with the type of each part known.

    Parameters
    ----------
    mod : functions that it may call.

    Raises
    ------
    TypeError, ValueError : its parts do not fit together.
    """
    module = IRModule() if mod is None else mod.clone()
    is_function = isinstance(node, Function)
    name = "__inferred__"
    module[name] = node if is_function else Function(free_vars(node), node)
    typed = infer_module(module)[name]
    return typed if is_function else typed.body


def infer_shape(inputs: RelayExpr, mod: IRModule | None = None) -> tuple[Any, ...]:
    """The extents of a tensor: numbers, and `relay.Any` for what is not known."""
    found = inputs.checked_type_ if isinstance(inputs, RelayExpr) else None
    if found is None:
        found = infer_type(inputs, mod).checked_type
    if not isinstance(found, TensorType):
        raise error.TypeError(f"relay.frontend: a value of type {found} has no shape")
    return tuple(int(e) if hasattr(e, "value") else e for e in found.shape)


def infer_channels(inputs: RelayExpr, transpose: bool = False) -> int:
    """How many channels a convolution makes with a weight: its first extent, or its second if it is
    a transposed one's."""
    return int(infer_shape(inputs)[1 if transpose else 0])


def infer_value(
    input_val: RelayExpr, params: Mapping[str, Any], mod: IRModule | None = None
) -> Any:
    """The value of an expression whose variables are parameters that are known.

    Returns
    -------
    NDArray, or a list of them.

    Raises
    ------
    ValueError : it depends on something else.
    """
    known = {v: const(params[name]) for v in free_vars(input_val) if (name := _name(v)) in params}
    closed = bind(input_val, known)
    unknown = [_name(v) for v in free_vars(closed)]
    if unknown:
        raise error.ValueError(f"relay.frontend: the value depends on {unknown}, not on parameters")
    module = IRModule() if mod is None else mod.clone()
    return create_executor("debug", module).evaluate(closed)


def infer_value_simulated(input_val: RelayExpr, params: Mapping[str, Any]) -> Any:
    """As :func:`infer_value`, with random numbers for the variables that have no value.

    For values that depend on nothing but shapes.

    Raises
    ------
    TypeError : such a variable has no shape that is known.
    """
    values = dict(params)
    for variable in free_vars(input_val):
        if _name(variable) not in values:
            found = infer_type(variable).checked_type
            drawn = np.random.default_rng(0).random(infer_shape(variable))
            values[_name(variable)] = np.asarray(drawn, str(found.dtype))
    return infer_value(input_val, values)


def try_infer_value(
    val: RelayExpr,
    on_success: Callable[[Any], Any] | None = None,
    on_failure: Callable[[], Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[Any, bool]:
    """The value of an expression as NumPy's array and True, or the expression and False where it
    depends on what is not known.

    Parameters
    ----------
    on_success, on_failure : what is made of the value, and what stands for it where there is none.
    parameters : values of variables.
    """
    try:
        found = infer_value(val, parameters or {}).numpy()
    except (error.TypeError, error.ValueError):
        return (val if on_failure is None else on_failure()), False
    return (found if on_success is None else on_success(found)), True


def try_resolve_var_to_const(x: RelayExpr, graph_params: Mapping[str, Any]) -> RelayExpr:
    """The constant for a variable that is one of the parameters, otherwise the expression."""
    if isinstance(x, Var) and _name(x) in graph_params:
        value = graph_params[_name(x)]
        return const(value, str(value.dtype))
    return x


def get_name(node: RelayExpr) -> str:
    """The name of a variable, "" for what has none."""
    return str(node.name_hint) if hasattr(node, "name_hint") else ""


def _name(variable: Var) -> str:
    return str(variable.name_hint)


def fold_constant(node: RelayExpr, mod: IRModule | None = None) -> RelayExpr:
    """The expression with what constants alone decide computed."""
    return FoldConstantExpr(node, IRModule() if mod is None else mod)


def set_span(sym: Any, node_name: str | Span) -> Any:
    """The expression with a place in a source, and all its operands that have none.

    Parameters
    ----------
    sym : an expression, or the results of an operator.
    node_name : the place, or what the node is called in the network that it comes from.
    """
    span = node_name if isinstance(node_name, Span) else Span(node_name, 0, 0, 0, 0)
    if isinstance(sym, TupleWrapper):
        return TupleWrapper(_placed(sym.tuple_value, span), sym.size)
    return _placed(sym, span)


def _placed(expr: Any, span: Span) -> Any:
    if not isinstance(expr, RelayExpr) or expr.span is not None:
        return expr
    if isinstance(expr, Call):
        return CallWithFields(expr, args=[_placed(a, span) for a in expr.args], span=span)
    if isinstance(expr, Tuple):
        return TupleWithFields(expr, [_placed(f, span) for f in expr.fields], span=span)
    if isinstance(expr, TupleGetItem):
        return TupleGetItemWithFields(expr, _placed(expr.tuple_value, span), span=span)
    if isinstance(expr, Constant):
        return ConstantWithFields(expr, span=span)
    # A variable would become another one.
    return expr
