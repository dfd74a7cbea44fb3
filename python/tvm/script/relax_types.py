"""What ``R.Tensor`` and its kin are to Python, which evaluates annotations: struct info."""

from __future__ import annotations

import ast
import operator
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tvm import error, tir
from tvm.ir import PrimExpr, RelayExpr, VDevice
from tvm.relax import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)

from .ir_builder.ir import device_named

__all__ = [
    "Callable",
    "Object",
    "Prim",
    "Shape",
    "StructInfoMaker",
    "SymbolicNames",
    "Tensor",
    "Tuple",
    "info_of",
    "naming",
]

_ARITHMETIC: dict[type, Any] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
_FUNCTIONS = {"min": tir.min, "max": tir.max}


class SymbolicNames(dict[str, tir.Var]):
    """Symbolic extents by name, made when they are first named."""

    def __missing__(self, name: str) -> tir.Var:
        self[name] = tir.Var(name, "int64")
        return self[name]


class _Reading(threading.local):
    def __init__(self) -> None:
        self.names: list[SymbolicNames] = []


_reading = _Reading()


@contextmanager
def naming(names: SymbolicNames) -> Iterator[None]:
    """Let texts among extents mean the variables of one function."""
    _reading.names.append(names)
    try:
        yield
    finally:
        _reading.names.pop()


def _names() -> SymbolicNames:
    """Those of the function that is read; outside of one, texts have variables of their own."""
    return _reading.names[-1] if _reading.names else SymbolicNames()


def _symbolic(text: str, names: dict[str, tir.Var]) -> PrimExpr:
    """The extent that a text describes: names, integers, + - * // %, min and max."""

    def value(node: ast.AST) -> Any:
        match node:
            case ast.Name(id=name):
                return names[name]
            case ast.Constant(value=int() as number):
                return tir.const(number, "int64")
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                return _ARITHMETIC[type(op)](value(left), value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if (
                name in _FUNCTIONS
            ):
                return _FUNCTIONS[name](*(value(arg) for arg in args))
            case ast.Call(func=ast.Attribute(attr="int64"), args=[arg]):
                return value(arg)
        raise error.ValueError(f"R.Tensor: '{text}' is not an extent")

    try:
        return value(ast.parse(text, mode="eval").body)
    except SyntaxError:
        raise error.ValueError(f"R.Tensor: '{text}' is not an extent") from None


def _extents(values: Sequence[Any], names: dict[str, tir.Var]) -> list[Any]:
    return [_symbolic(v, names) if isinstance(v, str) else v for v in values]


class StructInfoMaker:
    """A name such as ``R.Tensor``: called it makes struct info; alone it says the kind only."""

    def __init__(self, name: str, make: Any) -> None:
        self._name = name
        self._make = make
        self.__doc__ = make.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> StructInfo:
        return self._make(*args, **kwargs)

    def __repr__(self) -> str:
        return self._name

    def plain(self) -> StructInfo:
        """What the name alone means as an annotation."""
        return self._make()


def info_of(value: Any) -> Any:
    """Struct info where a name such as ``R.Object`` may stand without parentheses."""
    return value.plain() if isinstance(value, StructInfoMaker) else value


def _tensor(
    shape: Any = None,
    dtype: Any = None,
    vdevice: VDevice | str | None = None,
    ndim: int = -1,
) -> TensorStructInfo:
    """A tensor: ``R.Tensor((1, "n"), "float32")``, ``R.Tensor("float32", ndim=2)``.

    Parameters
    ----------
    shape : extents; texts are expressions of symbolic ones. An element type may stand here.
    dtype : element type; unknown by default.
    vdevice : where it lives: a device, or ``kind:number`` of one that the module lists.
    """
    if isinstance(vdevice, str):
        vdevice = device_named(vdevice)
    if isinstance(shape, str) and dtype is None:
        shape, dtype = None, shape
    if shape is not None and not isinstance(shape, RelayExpr):
        shape = _extents(list(shape), _names())
    return TensorStructInfo(shape, dtype or "", vdevice, ndim)


def _shape(values: Sequence[Any] | None = None, ndim: int = -1) -> ShapeStructInfo:
    """A shape as a value."""
    if isinstance(values, ShapeExpr):
        values = list(values.values)
    return ShapeStructInfo(None if values is None else _extents(list(values), _names()), ndim)


def _tuple(*fields: Any) -> TupleStructInfo:
    """A tuple, with what is known of each field."""
    if len(fields) == 1 and isinstance(fields[0], (tuple, list)):
        fields = tuple(fields[0])
    return TupleStructInfo([info_of(field) for field in fields])


def _prim(dtype: str | None = None, value: Any = None) -> PrimStructInfo:
    """A scalar of the host, of an element type or of a known value."""
    if isinstance(value, str):
        value = _symbolic(value, _names())
    return PrimStructInfo(dtype, value)


def _object() -> ObjectStructInfo:
    """Any value at all."""
    return ObjectStructInfo()


def _callable(params: Any = None, ret: Any = None, purity: bool | None = None) -> FuncStructInfo:
    """A function value; without parameters, one of which nothing else is known."""
    if params is None:
        return FuncStructInfo.opaque_func(
            ret=info_of(ret) or ObjectStructInfo(), purity=bool(purity)
        )
    given = [params] if isinstance(params, (StructInfo, StructInfoMaker)) else list(params)
    result = TupleStructInfo([]) if ret is None else info_of(ret)
    return FuncStructInfo(
        [info_of(param) for param in given], result, True if purity is None else purity
    )


Tensor = StructInfoMaker("R.Tensor", _tensor)
Shape = StructInfoMaker("R.Shape", _shape)
Tuple = StructInfoMaker("R.Tuple", _tuple)
Prim = StructInfoMaker("R.Prim", _prim)
Object = StructInfoMaker("R.Object", _object)
Callable = StructInfoMaker("R.Callable", _callable)
