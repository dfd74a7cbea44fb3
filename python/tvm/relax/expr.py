"""Graph expressions: values, calls and functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import tvm
from tvm._ffi import register_object
from tvm.ir import BaseFunc, DictAttrs, GlobalVar, RelayExpr
from tvm.runtime import NDArray, Object
from tvm.runtime.bfloat16 import patterns_to_float32, to_patterns

from . import _ffi_api
from .struct_info import StructInfo, TensorStructInfo, static_shape

__all__ = [
    "BindingBlock",
    "Call",
    "Constant",
    "DataflowBlock",
    "DataflowVar",
    "Expr",
    "ExternFunc",
    "Function",
    "GlobalVar",
    "SeqExpr",
    "ShapeExpr",
    "Tuple",
    "TupleGetItem",
    "Var",
    "VarBinding",
    "const",
    "dict_attrs",
    "rearranged",
]


def dict_attrs(attrs: Mapping[str, Any] | None) -> DictAttrs:
    """Settings as a ``DictAttrs``; entries that are None are left out."""
    return DictAttrs({k: v for k, v in (attrs or {}).items() if v is not None})


@register_object("relax.Expr")
class Expr(RelayExpr):
    """A graph expression."""

    @property
    def struct_info(self) -> Any:
        """What is known about the value, a StructInfo; None before it has been inferred."""
        return self.struct_info_


@register_object("relax.expr.Var")
class Var(Expr):
    """A variable.

    Parameters
    ----------
    name_hint : name for printing; two variables of one name are still different.
    struct_info : what is known about the value.
    """

    def __init__(self, name_hint: str, struct_info: StructInfo | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Var, name_hint, struct_info)


@register_object("relax.expr.DataflowVar")
class DataflowVar(Var):
    """A variable visible only inside its dataflow block."""

    def __init__(self, name_hint: str, struct_info: StructInfo | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.DataflowVar, name_hint, struct_info)


@register_object("relax.expr.Constant")
class Constant(Expr):
    """A tensor known when the graph is built."""

    def __init__(self, data: NDArray) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Constant, data)

    def values(self) -> np.ndarray:
        """A copy as a NumPy array; bfloat16 comes as float32."""
        array = self.data.numpy()
        return patterns_to_float32(array) if self.data.dtype == "bfloat16" else array

    def astype(self, dtype: str) -> Constant:
        """The constant converted to another element type."""
        return self if self.data.dtype == dtype else const(self.values(), dtype)

    def rearranged(self, function: Callable[[np.ndarray], np.ndarray]) -> Constant:
        """The constant that a function makes of it which only moves elements, whatever type."""
        return Constant(rearranged(self.data, function))


@register_object("relax.expr.ShapeExpr")
class ShapeExpr(Expr):
    """A shape as a value."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ShapeExpr, list(values))


@register_object("relax.expr.Call")
class Call(Expr):
    """A call of an operator, a function of the module or a named runtime function."""

    def __init__(
        self,
        op: RelayExpr,
        args: Sequence[RelayExpr],
        attrs: DictAttrs | Mapping[str, Any] | None = None,
        sinfo_args: Sequence[StructInfo] = (),
        struct_info: StructInfo | None = None,
    ) -> None:
        if not isinstance(attrs, DictAttrs):
            attrs = dict_attrs(attrs)
        self.__init_handle_by_constructor__(
            _ffi_api.Call, op, list(args), attrs, list(sinfo_args), struct_info
        )


@register_object("relax.expr.ExternFunc")
class ExternFunc(Expr):
    """A function of the runtime's registry, called by name."""

    def __init__(self, global_symbol: str) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ExternFunc, global_symbol)


@register_object("relax.expr.Tuple")
class Tuple(Expr):
    """Several values as one."""

    def __init__(self, fields: Sequence[RelayExpr]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Tuple, list(fields))


@register_object("relax.expr.TupleGetItem")
class TupleGetItem(Expr):
    """One field of a tuple."""

    def __init__(self, tuple_value: RelayExpr, index: int) -> None:
        self.__init_handle_by_constructor__(_ffi_api.TupleGetItem, tuple_value, index)


@register_object("relax.expr.VarBinding")
class VarBinding(Object):
    """Gives the value of an expression a name."""

    def __init__(self, var: Var, value: RelayExpr) -> None:
        self.__init_handle_by_constructor__(_ffi_api.VarBinding, var, value)


@register_object("relax.expr.BindingBlock")
class BindingBlock(Object):
    """Bindings carried out in order; they may have side effects."""

    def __init__(self, bindings: Sequence[VarBinding]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.BindingBlock, list(bindings))


@register_object("relax.expr.DataflowBlock")
class DataflowBlock(BindingBlock):
    """Bindings without side effects; plain variables bound in it are its outputs."""

    def __init__(self, bindings: Sequence[VarBinding]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.DataflowBlock, list(bindings))


@register_object("relax.expr.SeqExpr")
class SeqExpr(Expr):
    """Blocks of bindings, then a result."""

    def __init__(self, blocks: Sequence[BindingBlock], body: RelayExpr) -> None:
        self.__init_handle_by_constructor__(_ffi_api.SeqExpr, list(blocks), body)


@register_object("relax.expr.Function")
class Function(BaseFunc):
    """A graph function; attribute "Primitive" marks one that becomes a single kernel."""

    def __init__(
        self,
        params: Sequence[Var],
        body: RelayExpr,
        ret_struct_info: StructInfo | None = None,
        is_pure: bool = True,
        attrs: DictAttrs | Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(attrs, DictAttrs):
            attrs = dict_attrs(attrs)
        self.__init_handle_by_constructor__(
            _ffi_api.Function, list(params), body, ret_struct_info, is_pure, attrs
        )


def rearranged(data: NDArray, function: Callable[[np.ndarray], np.ndarray]) -> NDArray:
    """The array, of the same type, that a function makes of it which only moves elements.

    The function gets the 16-bit patterns of bfloat16, which it moves like any numbers.
    """
    array = np.ascontiguousarray(function(data.numpy()))
    return tvm.nd.empty(array.shape, data.dtype).copyfrom(array)


def const(
    value: bool | int | float | np.ndarray | NDArray, dtype: str | TensorStructInfo | None = None
) -> Constant:
    """A constant tensor.

    Parameters
    ----------
    value : a number, an array or an NDArray.
    dtype : element type, or a TensorStructInfo whose shape and type the value must have after
        conversion. Numbers without one become float32, int32 or bool; arrays keep theirs.

    Raises
    ------
    ValueError : the value has another shape than the struct info says.
    """
    info = dtype if isinstance(dtype, TensorStructInfo) else None
    name = str(info.dtype) if info is not None else dtype
    if isinstance(value, NDArray) and name in (None, str(value.dtype)):
        data = value
    else:
        array = Constant(value).values() if isinstance(value, NDArray) else np.asarray(value)
        if name is None and isinstance(value, (int, float)) and not isinstance(value, bool):
            name = "float32" if isinstance(value, float) else "int32"
        if name == "bfloat16":
            data = tvm.nd.empty(array.shape, name).copyfrom(to_patterns(array))
        else:
            data = tvm.nd.array(np.asarray(array, dtype=name, order="C"))
    if info is not None and info.shape is not None and tuple(data.shape) != static_shape(info):
        raise ValueError(
            f"relax.const: the value has shape {tuple(data.shape)}, the struct info says "
            f"{static_shape(info)}"
        )
    return Constant(data)
