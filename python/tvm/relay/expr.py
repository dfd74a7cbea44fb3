"""Relay's expressions: what programs build, print and rewrite."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import tvm
from tvm import error
from tvm._ffi import register_object
from tvm.ir import DictAttrs, GlobalVar, IntImm, RelayExpr, Span, Type, TypeVar
from tvm.ir.function import BaseFunc
from tvm.runtime import NDArray
from tvm.runtime.bfloat16 import to_patterns
from tvm.target import VirtualDevice

from . import _ffi_api
from .ty import TensorType, type_of_annotation

__all__ = [
    "Call",
    "CallWithFields",
    "Constant",
    "ConstantWithFields",
    "Expr",
    "ExprWithOp",
    "Function",
    "FunctionWithFields",
    "GlobalVar",
    "If",
    "IfWithFields",
    "Let",
    "LetWithFields",
    "RefCreate",
    "RefCreateWithFields",
    "RefRead",
    "RefReadWithFields",
    "RefWrite",
    "RefWriteWithFields",
    "RelayExpr",
    "Tuple",
    "TupleGetItem",
    "TupleGetItemWithFields",
    "TupleWithFields",
    "TupleWrapper",
    "Var",
    "VarWithFields",
    "as_expr",
    "attrs_record",
    "const",
    "set_checked_type",
    "set_virtual_device",
    "var",
]

Expr = RelayExpr
"""An expression of a graph."""


def set_checked_type(expr: RelayExpr, type_: Type) -> RelayExpr:
    """Note the inferred type of an expression, which it returns."""
    _ffi_api.SetCheckedType(expr, type_)
    return expr


def set_virtual_device(expr: RelayExpr, device: VirtualDevice) -> RelayExpr:
    """Note where the value of an expression lives, which is returned."""
    _ffi_api.SetVirtualDevice(expr, device)
    return expr


def attrs_record(attrs: DictAttrs | Mapping[str, Any] | None) -> DictAttrs | None:
    """Settings as an attribute record; entries that are None stay."""
    if attrs is None or isinstance(attrs, DictAttrs):
        return attrs
    return DictAttrs({key: _attribute(value) for key, value in attrs.items()})


def _attribute(value: Any) -> Any:
    """An integer of the program as a number, as attributes that are read from text have it."""
    return int(value.value) if isinstance(value, IntImm) and value.dtype != "bool" else value


class _Placed(RelayExpr):
    """An expression with a device."""

    @property
    def virtual_device_(self) -> VirtualDevice:
        """Where the value lives, or what the function gives: anywhere, until something says it.

        It may be set, to a `tvm.target.VirtualDevice`, a device or its name.
        """
        known = self.known_device_
        return VirtualDevice() if known is None else known

    @virtual_device_.setter
    def virtual_device_(self, device: Any) -> None:
        set_virtual_device(self, VirtualDevice.of(device))


class ExprWithOp(_Placed):
    """An expression whose value may be operated on; ``relay.op`` gives it Python's operators."""

    def __call__(self, *args: RelayExpr) -> Call:
        """The call of this value, which is a function."""
        return Call(self, args)


@register_object("relay.Constant")
class Constant(ExprWithOp):
    """A tensor known when the program is built."""

    def __init__(self, data: NDArray, span: Span | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Constant, data)


@register_object("relay.Var")
class Var(ExprWithOp):
    """A variable, known by identity.

    Parameters
    ----------
    name_hint : name for printing; two variables of one name are still different.
    type_annotation : its type, or the element type of a scalar; None leaves it to inference.
    """

    def __init__(
        self, name_hint: str, type_annotation: Type | str | None = None, span: Span | None = None
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Var, name_hint, type_of_annotation(type_annotation)
        )

    @property
    def vid(self) -> Var:
        """What tells the variable from others: itself."""
        return self

    @property
    def name(self) -> str:
        """The name for printing."""
        return str(self.name_hint)


@register_object("relay.Call")
class Call(ExprWithOp):
    """A call of an operator, a function, or a value that is one."""

    def __init__(
        self,
        op: RelayExpr,
        args: Sequence[RelayExpr],
        attrs: DictAttrs | Mapping[str, Any] | None = None,
        type_args: Sequence[Type] | None = None,
        span: Span | None = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Call, op, list(args), attrs_record(attrs), list(type_args or ())
        )


@register_object("relay.Tuple")
class Tuple(ExprWithOp):
    """Several values as one."""

    def __init__(self, fields: Sequence[RelayExpr], span: Span | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Tuple, [as_expr(f) for f in fields])

    def __getitem__(self, index: int) -> RelayExpr:
        if not -len(self.fields) <= index < len(self.fields):
            raise error.IndexError(f"Tuple: index {index} of {len(self.fields)} fields")
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[RelayExpr]:
        return iter(self.fields)

    def astype(self, dtype: str, span: Span | None = None) -> RelayExpr:
        """Refused: a tuple has no element type."""
        raise error.TypeError("astype cannot be used on tuple")


@register_object("relay.TupleGetItem")
class TupleGetItem(ExprWithOp):
    """One field of a tuple."""

    def __init__(self, tuple_value: RelayExpr, index: int, span: Span | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.TupleGetItem, tuple_value, index)


@register_object("relay.Let")
class Let(ExprWithOp):
    """Gives a value a name in a body. A function may call itself by it."""

    def __init__(
        self, variable: Var, value: RelayExpr, body: RelayExpr, span: Span | None = None
    ) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Let, variable, value, body)


@register_object("relay.If")
class If(ExprWithOp):
    """The value of one of two branches, chosen by a boolean scalar."""

    def __init__(
        self,
        cond: RelayExpr,
        true_branch: RelayExpr,
        false_branch: RelayExpr,
        span: Span | None = None,
    ) -> None:
        self.__init_handle_by_constructor__(_ffi_api.If, cond, true_branch, false_branch)


@register_object("relay.RefCreate")
class RefCreate(ExprWithOp):
    """A new cell that holds a value."""

    def __init__(self, value: RelayExpr, span: Span | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.RefCreate, value)


@register_object("relay.RefRead")
class RefRead(ExprWithOp):
    """The value that a cell holds."""

    def __init__(self, ref: RelayExpr, span: Span | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.RefRead, ref)


@register_object("relay.RefWrite")
class RefWrite(ExprWithOp):
    """Puts a value into a cell; its own value is the empty tuple."""

    def __init__(self, ref: RelayExpr, value: RelayExpr, span: Span | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.RefWrite, ref, value)


@register_object("relay.Function")
class Function(_Placed, BaseFunc):
    """A function.

    Parameters
    ----------
    params, body : its parameters and its result.
    ret_type : type of the result; None leaves it to inference.
    type_params : type parameters of a generic function.
    attrs : "Primitive", "Composite", "Compiler" and the like.
    """

    def __init__(
        self,
        params: Sequence[Var],
        body: RelayExpr,
        ret_type: Type | None = None,
        type_params: Sequence[TypeVar] | None = None,
        attrs: DictAttrs | Mapping[str, Any] | None = None,
        span: Span | None = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Function,
            list(params),
            as_expr(body),
            ret_type,
            list(type_params or ()),
            attrs_record(attrs),
        )

    def __call__(self, *args: RelayExpr) -> Call:
        """The call of the function."""
        return Call(self, args)

    def with_attr(self, key: str | Mapping[str, Any], value: Any = None) -> Any:
        """A copy with one attribute set, or with all of a mapping."""
        given = key if isinstance(key, Mapping) else {key: value}
        return super().with_attr({name: _attribute(item) for name, item in given.items()})


class TupleWrapper:
    """The results of an operator that gives several: its call, which can be unpacked.

    Attributes
    ----------
    tuple_value : the call. size : number of results.
    """

    def __init__(self, tuple_value: RelayExpr, size: int) -> None:
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> RelayExpr:
        """The call itself, for use as an argument."""
        return self.tuple_value

    def astext(self) -> str:
        """The text of the call."""
        return self.tuple_value.astext()

    def __getitem__(self, index: int) -> TupleGetItem:
        if not -self.size <= index < self.size:
            raise error.IndexError(f"TupleWrapper: index {index} of {self.size} results")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[TupleGetItem]:
        return (self[i] for i in range(self.size))

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value!r}, {self.size})"

    def astype(self, dtype: str) -> RelayExpr:
        """Refused: a tuple has no element type."""
        raise error.TypeError("astype cannot be used on tuple")


def as_expr(value: Any) -> RelayExpr:
    """What stands for an expression as one: the results of an operator, lists, numbers."""
    if isinstance(value, TupleWrapper):
        return value.tuple_value
    if isinstance(value, RelayExpr):
        return value
    if isinstance(value, (bool, int, float, np.ndarray, np.generic, NDArray)):
        return const(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return Tuple([as_expr(item) for item in value])
    raise error.TypeError(f"relay: expected an expression, got {type(value).__name__}")


def var(
    name_hint: str,
    type_annotation: Type | str | None = None,
    shape: Sequence[Any] | None = None,
    dtype: str = "float32",
    span: Span | None = None,
) -> Var:
    """A new variable.

    Parameters
    ----------
    type_annotation : its type, or the element type of a scalar.
    shape, dtype : instead of an annotation, what a tensor is.

    Raises
    ------
    ValueError : both an annotation and a shape are given.
    """
    if type_annotation is not None and shape is not None:
        raise error.ValueError(
            f"relay.var('{name_hint}'): give type_annotation or shape and dtype, not both"
        )
    if shape is not None:
        type_annotation = TensorType(shape, dtype)
    return Var(name_hint, type_annotation, span)


def exact_const(value: Any) -> Constant:
    """As `const`, with the element type that an array has, whatever that is."""
    return const(value, str(value.dtype) if isinstance(value, (np.ndarray, np.generic)) else None)


def const(value: Any, dtype: str | None = None, span: Span | None = None) -> Constant:
    """A constant tensor.

    Parameters
    ----------
    value : a number, a list of numbers, an array or an NDArray.
    dtype : element type. Without one, Python's numbers, lists of them, and NumPy's arrays of
        int64 and float64 become int32, float32 or bool; other arrays keep theirs, and so does an
        NDArray.

    Raises
    ------
    ValueError : the value is no number or array.
    """
    if isinstance(value, Constant):
        return value
    if isinstance(value, NDArray) and dtype in (None, str(value.dtype)):
        return Constant(value, span)
    array = value.numpy() if isinstance(value, NDArray) else np.asarray(value)
    if array.dtype == object or array.dtype.kind in "US":
        raise error.ValueError(f"relay.const: not a number or an array: {value!r}")
    if dtype is None and not isinstance(value, NDArray):
        dtype = {"int64": "int32", "float64": "float32"}.get(str(array.dtype))
    if dtype == "bfloat16":
        return Constant(tvm.nd.empty(array.shape, dtype).copyfrom(to_patterns(array)), span)
    return Constant(tvm.nd.array(np.asarray(array, dtype=dtype, order="C")), span)


def _remade(old: Any, given: Mapping[str, Any], device: Any, span: Span | None) -> Any:
    """An expression with other parts, itself if there are none.

    given : parts by the name of the field, in the order of the constructor; None for what stays.
    """
    if device is None and span is None and all(value is None for value in given.values()):
        return old
    parts = [getattr(old, name) if value is None else value for name, value in given.items()]
    new = type(old)(*parts, span=old.span if span is None else span)
    known = old.virtual_device_ if device is None else VirtualDevice.of(device)
    return new if known.is_unconstrained else set_virtual_device(new, known)


def ConstantWithFields(
    constant: Constant, data: NDArray | None = None, virtual_device: Any = None,
    span: Span | None = None,
) -> Constant:  # fmt: skip
    """The constant with other data or another place in a source; what is None stays."""
    return _remade(constant, {"data": data}, virtual_device, span)


def TupleWithFields(
    tuple_expr: Tuple, fields: Sequence[RelayExpr] | None = None, virtual_device: Any = None,
    span: Span | None = None,
) -> Tuple:  # fmt: skip
    """The tuple with other fields or another place in a source; what is None stays."""
    return _remade(tuple_expr, {"fields": fields}, virtual_device, span)


def VarWithFields(
    variable: Var, vid: Var | str | None = None, type_annotation: Type | None = None,
    virtual_device: Any = None, span: Span | None = None,
) -> Var:  # fmt: skip
    """A variable with another name (or that of `vid`), type or place; a new one if any is given."""
    name = str(vid.name_hint) if isinstance(vid, Var) and vid is not variable else vid
    name = None if isinstance(name, Var) else name
    given = {"name_hint": name, "type_annotation": type_annotation}
    return _remade(variable, given, virtual_device, span)


def CallWithFields(
    call: Call, op: RelayExpr | None = None, args: Sequence[RelayExpr] | None = None,
    attrs: DictAttrs | Mapping[str, Any] | None = None, type_args: Sequence[Type] | None = None,
    virtual_device: Any = None, span: Span | None = None,
) -> Call:  # fmt: skip
    """The call with other parts or another place in a source; what is None stays."""
    given = {"op": op, "args": args, "attrs": attrs, "type_args": type_args}
    return _remade(call, given, virtual_device, span)


def LetWithFields(
    let: Let, variable: Var | None = None, value: RelayExpr | None = None,
    body: RelayExpr | None = None, virtual_device: Any = None, span: Span | None = None,
) -> Let:  # fmt: skip
    """The binding with other parts or another place in a source; what is None stays."""
    return _remade(let, {"var": variable, "value": value, "body": body}, virtual_device, span)


def IfWithFields(
    if_expr: If, cond: RelayExpr | None = None, true_branch: RelayExpr | None = None,
    false_branch: RelayExpr | None = None, virtual_device: Any = None, span: Span | None = None,
) -> If:  # fmt: skip
    """The choice with other parts or another place in a source; what is None stays."""
    given = {"cond": cond, "true_branch": true_branch, "false_branch": false_branch}
    return _remade(if_expr, given, virtual_device, span)


def TupleGetItemWithFields(
    tuple_get_item: TupleGetItem, tuple_value: RelayExpr | None = None, index: int | None = None,
    virtual_device: Any = None, span: Span | None = None,
) -> TupleGetItem:  # fmt: skip
    """The field with other parts or another place in a source; what is None stays."""
    given = {"tuple_value": tuple_value, "index": index}
    return _remade(tuple_get_item, given, virtual_device, span)


def RefCreateWithFields(
    ref_create: RefCreate, value: RelayExpr | None = None, virtual_device: Any = None,
    span: Span | None = None,
) -> RefCreate:  # fmt: skip
    """The new cell with another value or place in a source; what is None stays."""
    return _remade(ref_create, {"value": value}, virtual_device, span)


def RefReadWithFields(
    ref_read: RefRead, ref: RelayExpr | None = None, virtual_device: Any = None,
    span: Span | None = None,
) -> RefRead:  # fmt: skip
    """The value of another cell, or with another place in a source; what is None stays."""
    return _remade(ref_read, {"ref": ref}, virtual_device, span)


def RefWriteWithFields(
    ref_write: RefWrite, ref: RelayExpr | None = None, value: RelayExpr | None = None,
    virtual_device: Any = None, span: Span | None = None,
) -> RefWrite:  # fmt: skip
    """The write with another cell, value or place in a source; what is None stays."""
    return _remade(ref_write, {"ref": ref, "value": value}, virtual_device, span)


def FunctionWithFields(
    function: Function, params: Sequence[Var] | None = None, body: RelayExpr | None = None,
    ret_type: Type | None = None, ty_params: Sequence[TypeVar] | None = None,
    attrs: DictAttrs | Mapping[str, Any] | None = None, virtual_device: Any = None,
    span: Span | None = None,
) -> Function:  # fmt: skip
    """The function with other parts or another place in a source; what is None stays."""
    given = {
        "params": params, "body": body, "ret_type": ret_type, "type_params": ty_params,
        "attrs": attrs,
    }  # fmt: skip
    return _remade(function, given, virtual_device, span)
