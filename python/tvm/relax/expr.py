"""Graph expressions: values, calls and functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import tvm
from tvm import error, tir
from tvm._ffi import register_object
from tvm.ir import BaseFunc, DictAttrs, GlobalVar, PrimExpr, RelayExpr, Type
from tvm.ir.script_text import Scriptable
from tvm.runtime import NDArray, Object
from tvm.runtime.bfloat16 import patterns_to_float32, to_patterns

from . import _ffi_api
from .struct_info import (
    FuncStructInfo,
    StructInfo,
    TensorStructInfo,
    static_shape,
)

__all__ = [
    "Binding",
    "BindingBlock",
    "Call",
    "Constant",
    "DataTypeImm",
    "DataflowBlock",
    "DataflowVar",
    "Expr",
    "ExprWithOp",
    "ExternFunc",
    "Function",
    "GlobalVar",
    "Id",
    "If",
    "MatchCast",
    "PrimValue",
    "SeqExpr",
    "ShapeExpr",
    "StringImm",
    "Tuple",
    "TupleGetItem",
    "Var",
    "VarBinding",
    "const",
    "extern",
    "dict_attrs",
    "get_shape_of",
    "rearranged",
]


def dict_attrs(attrs: Mapping[str, Any] | None) -> DictAttrs:
    """Settings as a ``DictAttrs``; entries that are None are left out."""
    return DictAttrs({k: v for k, v in (attrs or {}).items() if v is not None})


Expr = RelayExpr
"""A graph expression."""


class ExprWithOp(RelayExpr):
    """An expression whose value is a tensor, a tuple or a function.

    ``tvm.relax.op`` gives it Python's operators.
    """

    def __call__(self, *args: RelayExpr, attrs: Mapping[str, Any] | None = None) -> Call:
        """The call of this value, which is a function."""
        return Call(self, args, attrs)


class Id:
    """Who a variable is, whatever its name: equal of one variable only.

    Parameters
    ----------
    var : the variable.
    """

    def __init__(self, var: Var) -> None:
        self.var = var

    @property
    def name_hint(self) -> str:
        """The name of the variable."""
        return str(self.var.name_hint)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Id) and self.var.same_as(other.var)

    def __hash__(self) -> int:
        return hash(self.var)

    def __repr__(self) -> str:
        return f"Id({self.name_hint})"


@register_object("relax.expr.Var")
class Var(ExprWithOp):
    """A variable.

    Parameters
    ----------
    name_hint : name for printing; two variables of one name are still different.
    struct_info : what is known about the value.

    Raises
    ------
    TypeError : ``struct_info`` is something else, for instance a shape.
    """

    def __init__(self, name_hint: str, struct_info: StructInfo | None = None) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Var, name_hint, _checked_info("Var", struct_info)
        )

    @property
    def vid(self) -> Id:
        """Who the variable is."""
        return Id(self)


@register_object("relax.expr.DataflowVar")
class DataflowVar(Var):
    """A variable visible only inside its dataflow block."""

    def __init__(self, name_hint: str, struct_info: StructInfo | None = None) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.DataflowVar, name_hint, _checked_info("DataflowVar", struct_info)
        )


def _checked_info(what: str, info: Any) -> StructInfo | None:
    if info is None or isinstance(info, StructInfo):
        return info
    raise error.TypeError(
        f"relax.{what}: struct_info must be a StructInfo, got {type(info).__name__}; for a tensor "
        "of a shape write relax.TensorStructInfo(shape, dtype)"
    )


@register_object("relax.expr.Constant")
class Constant(ExprWithOp):
    """A tensor known when the graph is built."""

    def __init__(self, data: NDArray, struct_info: StructInfo | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Constant, data, struct_info)

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
class ShapeExpr(RelayExpr):
    """A shape as a value.

    Raises
    ------
    ValueError : an extent is not int64; plain numbers become that.
    """

    def __init__(self, values: Sequence[Any]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ShapeExpr, list(values))

    def __getitem__(self, index: int) -> PrimExpr:
        if not -len(self.values) <= index < len(self.values):
            raise error.IndexError(
                f"ShapeExpr index out of range: {index} of {len(self.values)} extents"
            )
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[PrimExpr]:
        return iter(self.values)


@register_object("relax.expr.PrimValue")
class PrimValue(RelayExpr):
    """A scalar of the host as a value; plain ints become int64, plain floats float64."""

    def __init__(self, value: PrimExpr | bool | int | float) -> None:
        if not isinstance(value, PrimExpr):
            kind = {bool: "bool", int: "int64", float: "float64"}[type(value)]
            value = tir.const(value, kind)
        self.__init_handle_by_constructor__(_ffi_api.PrimValue, value)


@register_object("relax.expr.StringImm")
class StringImm(RelayExpr):
    """A text as a value."""

    def __init__(self, value: str) -> None:
        self.__init_handle_by_constructor__(_ffi_api.StringImm, value)


@register_object("relax.expr.DataTypeImm")
class DataTypeImm(RelayExpr):
    """An element type as a value."""

    def __init__(self, value: str) -> None:
        self.__init_handle_by_constructor__(_ffi_api.DataTypeImm, value)


@register_object("relax.expr.Call")
class Call(ExprWithOp):
    """A call of an operator, a function of the module or a named runtime function.

    Raises
    ------
    ValueError : what is called is known to be no function.
    """

    def __init__(
        self,
        op: RelayExpr,
        args: Sequence[RelayExpr],
        attrs: DictAttrs | Mapping[str, Any] | None = None,
        sinfo_args: Sequence[StructInfo] | None = (),
        struct_info: StructInfo | None = None,
    ) -> None:
        if not isinstance(attrs, DictAttrs):
            attrs = dict_attrs(attrs)
        self.__init_handle_by_constructor__(
            _ffi_api.Call, op, list(args), attrs, list(sinfo_args or ()), struct_info
        )


@register_object("relax.expr.If")
class If(ExprWithOp):
    """The value of one of two branches, chosen by a scalar bool when it runs."""

    def __init__(
        self,
        cond: RelayExpr,
        true_branch: RelayExpr,
        false_branch: RelayExpr,
        struct_info: StructInfo | None = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.If, cond, true_branch, false_branch, struct_info
        )


@register_object("relax.expr.ExternFunc")
class ExternFunc(BaseFunc):
    """A function of the runtime's registry, called by name."""

    def __init__(self, global_symbol: str, struct_info: StructInfo | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ExternFunc, global_symbol, struct_info)

    def __call__(self, *args: RelayExpr, attrs: Mapping[str, Any] | None = None) -> Call:
        """The call of the function."""
        return Call(self, args, attrs)


@register_object("relax.expr.Tuple")
class Tuple(ExprWithOp):
    """Several values as one."""

    def __init__(self, fields: Sequence[RelayExpr]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Tuple, list(fields))

    def __getitem__(self, index: int) -> RelayExpr:
        if not -len(self.fields) <= index < len(self.fields):
            raise error.IndexError(
                f"Tuple index out of range: {index} of {len(self.fields)} fields"
            )
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[RelayExpr]:
        return iter(self.fields)


@register_object("relax.expr.TupleGetItem")
class TupleGetItem(ExprWithOp):
    """One field of a tuple."""

    def __init__(self, tuple_value: RelayExpr, index: int) -> None:
        self.__init_handle_by_constructor__(_ffi_api.TupleGetItem, tuple_value, index)


@register_object("relax.expr.Binding")
class Binding(Object, Scriptable):
    """Base of the kinds of bindings: a value and the variable that names it."""


@register_object("relax.expr.VarBinding")
class VarBinding(Binding):
    """Gives the value of an expression a name."""

    def __init__(self, var: Var, value: RelayExpr) -> None:
        self.__init_handle_by_constructor__(_ffi_api.VarBinding, var, value)


@register_object("relax.expr.MatchCast")
class MatchCast(Binding):
    """Gives a value a name and says what is known of it, which is checked when it runs.

    Symbolic extents in ``struct_info`` that are new are bound to the extents of the value.
    """

    def __init__(self, var: Var, value: RelayExpr, struct_info: StructInfo) -> None:
        self.__init_handle_by_constructor__(_ffi_api.MatchCast, var, value, struct_info)


@register_object("relax.expr.BindingBlock")
class BindingBlock(Object, Scriptable):
    """Bindings carried out in order; they may have side effects."""

    def __init__(self, bindings: Sequence[Binding]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.BindingBlock, list(bindings))


@register_object("relax.expr.DataflowBlock")
class DataflowBlock(BindingBlock):
    """Bindings without side effects; plain variables bound in it are its outputs."""

    def __init__(self, bindings: Sequence[Binding]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.DataflowBlock, list(bindings))


@register_object("relax.expr.SeqExpr")
class SeqExpr(ExprWithOp):
    """Blocks of bindings, then a result."""

    def __init__(self, blocks: Sequence[BindingBlock], body: RelayExpr) -> None:
        self.__init_handle_by_constructor__(_ffi_api.SeqExpr, list(blocks), body)

    @property
    def struct_info(self) -> Any:
        """What is known about the result."""
        return self.body.struct_info


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

    @staticmethod
    def create_empty(
        params: Sequence[Var],
        ret_struct_info: StructInfo,
        is_pure: bool = True,
        attrs: Mapping[str, Any] | None = None,
    ) -> Function:
        """A function that is only declared: what is known of its result is all that it says."""
        body = SeqExpr([], ExternFunc("_body_placeholder"))
        return Function(params, body, ret_struct_info, is_pure, attrs)

    @property
    def struct_info(self) -> FuncStructInfo:
        """What the function takes and gives."""
        infos = [param.struct_info for param in self.params]
        return FuncStructInfo(infos, self.ret_struct_info, self.is_pure)

    @property
    def checked_type(self) -> Type:
        """The function's type."""
        return self.struct_info.as_type()

    def __call__(self, *args: RelayExpr) -> Call:
        """The call of the function."""
        return Call(self, args)

    def bind_params(self, binding_map: Mapping[str | Var, Any]) -> Function:
        """The function with constants or expressions in place of parameters.

        Parameters
        ----------
        binding_map : by parameter or its name, a number, an array or an expression.

        Raises
        ------
        ValueError : there is no such parameter, or more than one has the name.
        """
        from_names = {}
        for key, value in binding_map.items():
            found = [p for p in self.params if p.same_as(key) or str(p.name_hint) == key]
            if len(found) != 1:
                known = [str(p.name_hint) for p in self.params]
                raise error.ValueError(f"Function.bind_params: '{key}' is not one of {known}")
            kind = str(value.dtype) if isinstance(value, np.ndarray) else None
            from_names[found[0]] = value if isinstance(value, RelayExpr) else const(value, kind)
        return tvm.get_global_func("relax.FunctionBindParams")(self, from_names)

    def bind_symbolic_vars(self, binding_map: Mapping[str | tir.Var, Any]) -> Function:
        """The function with expressions in place of symbolic extents.

        Parameters
        ----------
        binding_map : by extent or its name, an int or an expression.

        Raises
        ------
        ValueError : there is no such extent, more than one has the name, or one is given twice.
        """
        return tvm.get_global_func("relax.FunctionBindSymbolicVars")(self, dict(binding_map))

    def inline_functions(self, function_map: Mapping[str | GlobalVar, Function]) -> Function:
        """The function with the bodies of others in the place of calls of them.

        Parameters
        ----------
        function_map : by name or GlobalVar, what is called. Calls in what is inlined are inlined
            as well.

        Raises
        ------
        TypeError : one is no graph function.
        ValueError : one is given twice, or they call each other in a circle.
        """
        return tvm.get_global_func("relax.FunctionInlineFunctions")(self, dict(function_map))


def rearranged(data: NDArray, function: Callable[[np.ndarray], np.ndarray]) -> NDArray:
    """The array, of the same type, that a function makes of it which only moves elements.

    The function gets the 16-bit patterns of bfloat16, which it moves like any numbers.
    """
    array = np.asarray(function(data.numpy()), order="C")
    return tvm.nd.empty(array.shape, data.dtype).copyfrom(array)


def const(
    value: bool | int | float | np.ndarray | NDArray, dtype: str | TensorStructInfo | None = None
) -> Constant:
    """A constant tensor.

    Parameters
    ----------
    value : a number, an array or an NDArray.
    dtype : element type, or a TensorStructInfo whose shape and type the value must have after
        conversion. Without one, numbers, lists of them, and NumPy's arrays of float64 and int64
        become float32, int32 or bool; other arrays keep theirs, and so does an NDArray.

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
        if name is None and not isinstance(value, NDArray):
            name = {"int64": "int32", "float64": "float32"}.get(str(array.dtype))
        if name == "bfloat16":
            data = tvm.nd.empty(array.shape, name).copyfrom(to_patterns(array))
        else:
            data = tvm.nd.array(np.asarray(array, dtype=name, order="C"))
    if info is not None and info.shape is not None and tuple(data.shape) != static_shape(info):
        raise error.ValueError(
            f"relax.const: the value has shape {tuple(data.shape)}, the struct info says "
            f"{static_shape(info)}"
        )
    return Constant(data)


def extern(name: str, struct_info: StructInfo | None = None) -> ExternFunc:
    """A function of the runtime's registry, by name; see :class:`ExternFunc`."""
    return ExternFunc(name, struct_info)


def get_shape_of(expr: RelayExpr) -> RelayExpr:
    """The shape of a tensor: known extents, or the operator that asks when it runs.

    Raises
    ------
    ValueError : the expression is not known to be a tensor.
    """
    info = expr.struct_info
    if not isinstance(info, TensorStructInfo):
        raise error.ValueError(f"relax.get_shape_of: expected a tensor, got {info}")
    if info.shape is not None:
        return info.shape
    return Call(tvm.ir.Op.get("relax.shape_of"), [expr])
