"""What is known about a graph value before it is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import error, tir
from tvm._ffi import register_object
from tvm.ir import (
    FuncType,
    PrimExpr,
    PrimType,
    RelayExpr,
    TupleType,
    Type,
    VDevice,
    structural_equal,
    structural_hash,
)
from tvm.ir.expr import derive_struct_info
from tvm.ir.script_text import Scriptable
from tvm.runtime import Object

from . import _ffi_api
from .ty import DynTensorType, ObjectType, PackedFuncType, ShapeType

__all__ = [
    "FuncStructInfo",
    "ObjectStructInfo",
    "PrimStructInfo",
    "ShapeStructInfo",
    "StructInfo",
    "TensorStructInfo",
    "TupleStructInfo",
    "settled_shape",
    "static_shape",
    "tensor_fields",
]


@register_object("relax.StructInfo")
class StructInfo(Object, Scriptable):
    """Base of the kinds of struct info; ``==`` compares structure."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StructInfo) and structural_equal(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return structural_hash(self)

    def as_type(self) -> Type:
        """The type that remains when shapes and values are left out."""
        raise TypeError(f"{type(self).__name__} does not define as_type")


@register_object("relax.ObjectStructInfo")
class ObjectStructInfo(StructInfo):
    """Any value at all."""

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ObjectStructInfo)

    def as_type(self) -> Type:
        """The type that remains when shapes and values are left out."""
        return ObjectType()


@register_object("relax.PrimStructInfo")
class PrimStructInfo(StructInfo):
    """A scalar that is not a tensor.

    Parameters
    ----------
    dtype : element type; may be left out with a value that has one.
    value : what it is known to be. A plain number without ``dtype`` is an int64 or a float64.

    Raises
    ------
    ValueError : the value has another type than ``dtype``.
    TypeError : neither is given.
    """

    def __init__(self, dtype: Any = None, value: Any = None) -> None:
        if isinstance(dtype, PrimExpr) or (
            isinstance(dtype, (int, float)) and not isinstance(dtype, str)
        ):
            dtype, value = None, dtype
        if dtype is None and value is None:
            raise error.TypeError("PrimStructInfo: give the element type, the value or both")
        if value is not None and not isinstance(value, PrimExpr):
            literal = dtype or (
                "bool" if isinstance(value, bool)
                else "int64" if isinstance(value, int) else "float64"
            )  # fmt: skip
            value = tir.const(value, literal)
        if dtype is None:
            dtype = value.dtype
        self.__init_handle_by_constructor__(_ffi_api.PrimStructInfo, dtype, value)

    def as_type(self) -> Type:
        """The type that remains when shapes and values are left out."""
        return PrimType(self.dtype)


@register_object("relax.ShapeStructInfo")
class ShapeStructInfo(StructInfo):
    """A shape as a value; ``ndim`` alone when the extents are unknown."""

    def __init__(self, values: Sequence[Any] | None = None, ndim: int = -1) -> None:
        extents = None if values is None else [_extent(v) for v in values]
        self.__init_handle_by_constructor__(_ffi_api.ShapeStructInfo, extents, ndim)

    def as_type(self) -> Type:
        """The type that remains when shapes and values are left out."""
        return ShapeType(self.ndim)


@register_object("relax.TensorStructInfo")
class TensorStructInfo(StructInfo):
    """A tensor of a shape and element type.

    Parameters
    ----------
    shape : extents (any sequence of ints or expressions, ``torch.Size`` included), a ShapeExpr, a
        variable that holds a shape, or None when only the rank is known.
    dtype : element type, for instance "float32"; "" if it is unknown.
    vdevice : where the tensor lives, a VDevice or the text of its target; None for anywhere.
    ndim : rank; only needed without a shape, -1 for unknown.

    Raises
    ------
    ValueError : ``ndim`` contradicts the shape.
    """

    def __init__(
        self,
        shape: Sequence[Any] | Object | None = None,
        dtype: str | None = "float32",
        vdevice: VDevice | str | None = None,
        ndim: int = -1,
    ) -> None:
        if shape is not None and (not isinstance(shape, Object) or isinstance(shape, Sequence)):
            shape = _ffi_api.ShapeExpr([_extent(v) for v in shape])
        if isinstance(vdevice, str):
            vdevice = VDevice(*_vdevice_parts(vdevice))
        self.__init_handle_by_constructor__(
            _ffi_api.TensorStructInfo, shape, dtype or "void", ndim, vdevice
        )

    def as_type(self) -> Type:
        """The type that remains when shapes and values are left out."""
        return DynTensorType(self.ndim, str(self.dtype))


@register_object("relax.TupleStructInfo")
class TupleStructInfo(StructInfo):
    """A tuple, with the struct info of each field."""

    def __init__(self, fields: Sequence[StructInfo]) -> None:
        self.__init_handle_by_constructor__(_ffi_api.TupleStructInfo, list(fields))

    def as_type(self) -> Type:
        """The type that remains when shapes and values are left out."""
        return TupleType([field.as_type() for field in self.fields])


@register_object("relax.FuncStructInfo")
class FuncStructInfo(StructInfo):
    """A function value.

    Parameters
    ----------
    params : what it takes.
    ret : what it gives.
    purity : whether calls have no effect beside their result.
    """

    def __init__(self, params: Sequence[StructInfo], ret: StructInfo, purity: bool = True) -> None:
        self.__init_handle_by_constructor__(_ffi_api.FuncStructInfo, list(params), ret, purity)

    @staticmethod
    def opaque_func(
        *, ret: StructInfo | None = None, derive_func: str | None = None, purity: bool = False
    ) -> FuncStructInfo:
        """A function that takes anything.

        Parameters
        ----------
        ret : what it gives; an object by default.
        derive_func : name of a registered function from a call and a BlockBuilder to the struct
            info of that call's result.
        """
        return _ffi_api.FuncStructInfo(None, ret or ObjectStructInfo(), purity, derive_func)

    def as_type(self) -> Type:
        """The type that remains when shapes and values are left out."""
        if self.params is None:
            return PackedFuncType()
        return FuncType([param.as_type() for param in self.params], self.ret.as_type())


def _extent(value: Any) -> Any:
    """Extents arrive as NumPy or torch integers too; those are plain ints here."""
    return value if isinstance(value, Object) else int(value)


def _vdevice_parts(text: str) -> tuple[str, int, str]:
    """``target:number:scope``, of which number and scope may be left out."""
    target, *rest = text.split(":")
    number = int(rest[0]) if rest and rest[0] else 0
    return target, number, rest[1] if len(rest) > 1 else "global"


@derive_struct_info(tir.PrimFunc)
def _prim_func_struct_info(func: tir.PrimFunc) -> FuncStructInfo:
    """What a graph may know about a tensor program: its parameters and whether it is pure."""
    params: list[StructInfo] = []
    for param in func.params:
        if param in func.buffer_map:
            buffer = func.buffer_map[param]
            # Graphs count in int64, programs in whatever they are written with.
            shape = [
                extent if isinstance(extent, tir.IntImm) else extent.astype("int64")
                for extent in buffer.shape
            ]
            params.append(TensorStructInfo(shape, str(buffer.dtype)))
        elif str(param.dtype) == "handle":
            params.append(ObjectStructInfo())
        else:
            params.append(PrimStructInfo(str(param.dtype)))
    kind = func.ret_type
    ret = PrimStructInfo(str(kind.dtype)) if isinstance(kind, PrimType) else TupleStructInfo([])
    return FuncStructInfo(params, ret, tir.analysis.is_pure_function(func))


def static_shape(info: StructInfo) -> tuple[int, ...]:
    """The shape of a tensor whose extents are all known.

    Raises
    ------
    TypeError : not the struct info of a tensor.
    ValueError : the shape is unknown or symbolic.
    """
    if not isinstance(info, TensorStructInfo):
        raise error.TypeError(f"relax: expected a tensor, got {info}")
    known = None if info.shape is None else info.shape.struct_info.values
    if known is None:
        raise error.ValueError("relax: the tensor's shape is unknown; give it a fixed shape")
    extents = []
    for extent in known:
        literal = extent if isinstance(extent, int) else getattr(extent, "value", None)
        if not isinstance(literal, int):
            raise error.ValueError(
                f"relax: extent {extent} is symbolic; give the tensor a fixed shape"
            )
        extents.append(literal)
    return tuple(extents)


def open_shape(info: StructInfo) -> tuple[int | PrimExpr, ...]:
    """The shape of a tensor: numbers, and expressions for extents that are symbolic.

    Raises
    ------
    TypeError : not the struct info of a tensor.
    ValueError : the shape is unknown.
    """
    if not isinstance(info, TensorStructInfo):
        raise error.TypeError(f"relax: expected a tensor, got {info}")
    known = None if info.shape is None else info.shape.struct_info.values
    if known is None:
        raise error.ValueError("relax: the tensor's shape is unknown; only its rank may be")
    return tuple(
        extent if isinstance(extent, int) else getattr(extent, "value", extent) for extent in known
    )


def settled_shape(value: RelayExpr) -> tuple[int, ...] | None:
    """The shape of a tensor, None where the value is none or an extent is not known."""
    if not isinstance(value.struct_info, TensorStructInfo):
        return None
    try:
        return static_shape(value.struct_info)
    except ValueError:
        return None


def tensor_fields(info: StructInfo) -> list[TensorStructInfo]:
    """The tensors of a value: itself, or the fields of a tuple, nested ones in order."""
    if isinstance(info, TupleStructInfo):
        return [tensor for field in info.fields for tensor in tensor_fields(field)]
    if not isinstance(info, TensorStructInfo):
        raise error.TypeError(f"relax: expected tensors, got {info}")
    return [info]
