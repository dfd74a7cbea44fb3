"""Expressions that scripts write differently from ``tvm.tir``, and all intrinsics by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from tvm import error, ir, tir
from tvm.tir import _ffi_api

from .buffers import ScalarType, is_dtype
from .literals import expression, expressions, fit, is_number

__all__ = [
    "Broadcast",
    "cast",
    "Cast",
    "Let",
    "Ramp",
    "Select",
    "Shuffle",
    "Tuple",
    "call_intrin",
    "checked_call",
    "comm_reducer",
    "index_map",
    "intrinsic",
    "meta_var",
    "operands",
    "typed_call",
]

# Calls whose first argument, if it is the name of a type, is that of their result.
_TYPE_FIRST = (
    "create_barriers",
    "get_active_lane_mask",
    "reinterpret",
    "tvm_struct_get",
    "type_annotation",
)
_TYPE_FIRST_PREFIXES = (
    "call_",
    "mma_",
    "ptx_",
    "tvm_call_cpacked",
    "tvm_call_packed",
    "tvm_stack_alloca",
)


class meta_var:
    """A value of Python as it is, which assigning it to a name does not make a variable."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __iter__(self) -> Any:
        return (meta_var(item) for item in self.value)


def operands(left: Any, right: Any) -> tuple[tir.PrimExpr, tir.PrimExpr]:
    """Both operands as expressions; a plain number takes the type of the other one."""
    if is_number(left) and not is_number(right):
        right = expression(right)
        return fit(left, right), right
    left = expression(left)
    return left, expression(right, left)


def dtype_name(value: Any) -> str:
    """The name of an element type, from its name or from ``T.float32``; ``""`` is no value."""
    text = value.dtype if isinstance(value, ScalarType) else value
    if text == "":
        return "void"
    if not isinstance(text, str) or not is_dtype(text):
        raise error.ValueError(f'there is no element type {text!r}; for example "float32"')
    return str(text)


def Cast(dtype: Any, value: Any) -> tir.PrimExpr:
    """A conversion, also to the type that the value has; ``T.cast`` leaves that one out."""
    if not isinstance(dtype, str | ScalarType) and isinstance(value, str | ScalarType):
        dtype, value = value, dtype
    return tir.Cast(dtype_name(dtype), expression(value))


def cast(value: Any, dtype: Any) -> tir.PrimExpr:
    """The value in another type: itself where it has that type, a constant where it is one."""
    return expression(value).astype(dtype_name(dtype))


def Select(condition: Any, true_value: Any, false_value: Any) -> tir.PrimExpr:
    """One of two values, both of which are computed."""
    true, false = operands(true_value, false_value)
    return tir.Select(expression(condition), true, false)


def Ramp(base: Any, stride: Any, lanes: Any) -> tir.PrimExpr:
    """``base, base + stride, ...`` as a vector."""
    first = expression(base)
    return tir.Ramp(first, expression(stride, first), lanes)


def Broadcast(value: Any, lanes: Any) -> tir.PrimExpr:
    """A value in all lanes of a vector."""
    return tir.Broadcast(expression(value), lanes)


def Shuffle(vectors: Sequence[Any], indices: Sequence[Any]) -> tir.PrimExpr:
    """Elements of vectors, picked by their positions in all of them."""
    return tir.Shuffle(expressions(list(vectors)), expressions(list(indices)))


def Let(expr: Any, where: Mapping[tir.Var, Any]) -> tir.PrimExpr:
    """An expression in which variables have values."""
    result = expression(expr)
    for var, value in reversed(list(where.items())):
        result = tir.Let(var, expression(value, var), result)
    return result


def Tuple(*items: Any) -> list[Any]:
    """Several values."""
    return list(items)


def comm_reducer(combiner: Callable[..., Any], identity: Sequence[Any]) -> tir.CommReducer:
    """A reduction by its operator, ``lambda x, y: x + y``, and what changes nothing.

    Parameters
    ----------
    combiner : takes two variables for each value and gives one expression for each.
    """
    neutral = expressions(list(identity))
    names = list(inspect.signature(combiner).parameters)
    if len(names) != 2 * len(neutral):
        raise error.ValueError(
            f"T.comm_reducer: a lambda of {2 * len(neutral)} variables is needed, two per value"
        )
    variables = [tir.Var(n, str(v.dtype)) for n, v in zip(names, [*neutral, *neutral])]
    result = combiner(*variables)
    results = list(result) if isinstance(result, list | tuple) else [result]
    half = len(neutral)
    values = [expression(item, like) for item, like in zip(results, neutral)]
    return tir.CommReducer(variables[:half], variables[half:], values, neutral)


def index_map(mapping: Callable[..., Any], *, inverse_index_map: Any = None) -> tir.IndexMap:
    """A map of indices by the function that computes them, ``lambda i: (i // 4, i % 4)``."""
    return tir.IndexMap.from_func(mapping, inverse_index_map=inverse_index_map)


def call_intrin(dtype: Any, func_name: Any, *args: Any) -> tir.Call:
    """A call of an intrinsic by its name, such as "tir.exp"."""
    return tir.Call(dtype_name(dtype), func_name, [expression(arg) for arg in args])


def typed_call(function: Callable[..., tir.PrimExpr]) -> Callable[..., tir.PrimExpr]:
    """A function of ``tvm.tir`` with its first argument, the type, also as ``dtype=``."""

    def call(*args: Any, dtype: Any = None) -> tir.PrimExpr:
        if dtype is None:
            dtype, args = args[0], args[1:]
        return function(dtype_name(dtype), *args)

    call.__name__ = call.__qualname__ = function.__name__
    call.__doc__ = function.__doc__
    return call


@cache
def checked_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ``tvm.tir``; ``dtype=`` says what its result has to be.

    Raises
    ------
    TypeError : the result is of another type.
    """

    @functools.wraps(function)
    def call(*args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if dtype is not None and str(result.dtype) != dtype_name(dtype):
            raise error.TypeError(
                f"T.{function.__name__} gives {result.dtype} here, not {dtype_name(dtype)}"
            )
        return result

    return call


def intrinsic_call(name: str, args: list[tir.PrimExpr], dtype: str | None) -> tir.Call:
    """A call of an intrinsic as it is written; its type follows from the operands if it can."""
    op = ir.Op.get(f"tir.{name}")
    expected = op.num_inputs
    if expected >= 0 and len(args) != expected:
        raise error.ValueError(f"T.{name} takes {expected} operands, here are {len(args)}")
    return tir.Call(dtype or str(_ffi_api.CallDType(op, args)), op, args)


def intrinsic(name: str) -> Callable[..., tir.Call]:
    """The function that calls an intrinsic: ``T.tvm_access_ptr(...)``.

    The type of the result is the argument `dtype`, or where nothing else tells it the first one.
    """
    type_first = name in _TYPE_FIRST or name.startswith(_TYPE_FIRST_PREFIXES)

    def call(*args: Any, dtype: Any = None) -> tir.Call:
        values = list(args)
        if dtype is None and type_first and values:
            first = values[0]
            if isinstance(first, ScalarType) or isinstance(first, str) and is_dtype(first):
                dtype = values.pop(0)
            elif name == "tvm_struct_get" and len(values) == 4:
                dtype = values.pop()
        if dtype is None and type_first and name.startswith("tvm_call_"):
            dtype = "int32"
        made = [expression(value) for value in values]
        return intrinsic_call(name, made, None if dtype is None else dtype_name(dtype))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"A call of the intrinsic ``tir.{name}``."
    return call
