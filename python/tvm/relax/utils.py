"""What programs that make graphs ask for now and then."""

from __future__ import annotations

import ast
import functools
import inspect
import typing
from collections.abc import Callable, Sequence
from types import UnionType
from typing import Any

from tvm import error, tir
from tvm.ir import RelayExpr

from .analysis import defined_symbolic_vars
from .expr import Function, PrimValue, ShapeExpr, StringImm, Tuple
from .fresh_variables import FreshVariables
from .te_calls import gen_call_tir_inputs
from .transform.bind import bind_function

__all__ = [
    "args_converter",
    "convert_to_expr",
    "copy_with_new_vars",
    "gen_call_tir_inputs",
    "metadata_partitioner",
]


def copy_with_new_vars(func: Function) -> Function:
    """The function with parameters, variables and symbolic extents of its own.

    Both may then stand in one module, or in each other.
    """
    extents = {var: tir.Var(str(var.name), str(var.dtype)) for var in defined_symbolic_vars(func)}
    return FreshVariables().visit_expr(bind_function(func, {}, extents))


def convert_to_expr(value: Any) -> RelayExpr:
    """A value of Python as a graph expression.

    Integers and scalar expressions become ``PrimValue``, texts ``StringImm``; lists and tuples
    become shapes where all of them are extents, and tuples otherwise. Graph expressions stay.

    Raises
    ------
    TypeError : it is something else.
    """
    if isinstance(value, RelayExpr) and not isinstance(value, tir.PrimExpr):
        return value
    if isinstance(value, (bool, int, float, tir.PrimExpr)):
        return PrimValue(value)
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, (list, tuple)):
        is_shape = all(
            isinstance(v, (int, tir.PrimExpr)) and not isinstance(v, bool) for v in value
        )
        if is_shape and len(value):
            return ShapeExpr(list(value))
        return Tuple([convert_to_expr(v) for v in value])
    raise error.TypeError(
        f"convert_to_expr: {type(value).__name__} is no graph value; use relax.const for arrays"
    )


def _convert_list(value: Any) -> list[RelayExpr]:
    if not isinstance(value, (list, tuple)):
        raise error.TypeError(f"it must be a list or tuple, got {type(value).__name__}")
    return [convert_to_expr(item) for item in value]


_Convert = Callable[[Any], Any]


def _converting(func: Callable[..., Any], ways: dict[str, _Convert]) -> Callable[..., Any]:
    """The function, which converts what it gets for these parameters; None stays."""
    signature = inspect.signature(func)
    unknown = [name for name in ways if name not in signature.parameters]
    if unknown:
        raise error.ValueError(
            f"args_converter: {func.__name__} has no parameter {', '.join(unknown)}; it has "
            f"{', '.join(signature.parameters)}"
        )

    def converted(name: str, value: Any) -> Any:
        if value is None or name not in ways:
            return value
        kind = signature.parameters[name].kind
        try:
            if kind is inspect.Parameter.VAR_POSITIONAL:
                return tuple(ways[name](item) for item in value)
            if kind is inspect.Parameter.VAR_KEYWORD:
                return {key: ways[name](item) for key, item in value.items()}
            return ways[name](value)
        except error.TypeError as problem:
            raise error.TypeError(f"{func.__name__}: argument {name}: {problem}") from None

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            bound.arguments[name] = converted(name, value)
        return func(*bound.args, **bound.kwargs)

    return call


def _way_of(annotation: Any) -> _Convert | None:
    """How a parameter of a type is converted: an expression, a list of them, or either or None."""
    if typing.get_origin(annotation) in (typing.Union, UnionType):
        kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
        return _way_of(kinds[0]) if len(kinds) == 1 else None
    if annotation is RelayExpr:
        return convert_to_expr
    is_list = typing.get_origin(annotation) in (list, tuple, Sequence)
    items = [kind for kind in typing.get_args(annotation) if kind is not Ellipsis]
    return _convert_list if is_list and items and all(k is RelayExpr for k in items) else None


class _ArgsConverter:
    """Decorators of functions that take graph expressions, which their callers may write as values
    of Python (see :func:`convert_to_expr`)."""

    @staticmethod
    def convert(
        args_to_expr: Sequence[str], args_to_list_expr: Sequence[str]
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Convert some parameters to expressions, and others to lists of expressions.

        Raises
        ------
        ValueError : the function has no such parameter.
        TypeError : when it is called, with what cannot be converted.
        """
        ways: dict[str, _Convert] = dict.fromkeys(args_to_expr, convert_to_expr)
        ways.update(dict.fromkeys(args_to_list_expr, _convert_list))
        return lambda func: _converting(func, ways)

    @staticmethod
    def to_expr(*arg_names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Convert these parameters to expressions."""
        return _ArgsConverter.convert(arg_names, ())

    @staticmethod
    def to_list_expr(*arg_names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Convert these parameters to lists of expressions."""
        return _ArgsConverter.convert((), arg_names)

    @staticmethod
    def auto(func: Callable[..., Any]) -> Callable[..., Any]:
        """Convert the parameters that are annotated as expressions or lists of them."""
        hints = typing.get_type_hints(func)
        ways = {name: _way_of(hint) for name, hint in hints.items() if name != "return"}
        return _converting(func, {name: way for name, way in ways.items() if way is not None})


args_converter = _ArgsConverter()


def metadata_partitioner(rx_txt: str) -> list[str]:
    """The text of a program, and the JSON of the objects that it refers to.

    Parameters
    ----------
    rx_txt : what ``mod.script(show_meta=True)`` or ``mod.astext()`` gives.

    Raises
    ------
    ValueError : the text has no metadata.
    """
    for line in ast.parse(rx_txt).body:
        match line:
            case ast.Assign(
                targets=[ast.Name("metadata")], value=ast.Call(args=[ast.Constant(value=str(kept))])
            ):
                below = rx_txt.splitlines()[line.end_lineno :]
                return ["\n".join(below).lstrip("\n"), kept]
    raise error.ValueError("metadata_partitioner: the metadata section was not found")
