"""Values of networks while they are traced: tensors with known type and shape, and parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm import error, tir
from tvm.ir import RelayExpr
from tvm.runtime import NDArray
from tvm.runtime.ndarray import array, from_dlpack

from ... import op as _op
from ...block_builder import BlockBuilder
from ...expr import DataflowVar, TupleGetItem, Var, const
from ...struct_info import ObjectStructInfo, TensorStructInfo, TupleStructInfo

__all__ = [
    "IntExpr",
    "Object",
    "Parameter",
    "Tensor",
    "get_default_dtype",
    "set_default_dtype",
    "wrap_nested",
]

IntExpr = int | tir.PrimExpr

_default_dtype = "float32"


def get_default_dtype() -> str:
    """Element type of parameters that name none."""
    return _default_dtype


def set_default_dtype(dtype: str) -> None:
    """Change the element type of parameters that name none."""
    global _default_dtype
    _default_dtype = dtype


def wrap_nested(expr: RelayExpr, name: str) -> Any:
    """Bind an expression in the function being built, and wrap what it gives.

    Parameters
    ----------
    name : of the variable; fields of a tuple get their number behind it.

    Returns
    -------
    A Tensor, a tuple of what its fields are, or an Object.

    Raises
    ------
    RuntimeError : no function is being built.
    """
    if not isinstance(expr, DataflowVar):
        builder = BlockBuilder.current()
        if builder is None:
            raise error.RuntimeError(
                f"nn: {name} is applied outside of a network; call it in `forward`, which "
                "Module.export_tvm traces"
            )
        expr = builder.emit(expr, name)
    info = expr.struct_info
    if isinstance(info, TensorStructInfo):
        return Tensor(_expr=expr)
    if isinstance(info, TupleStructInfo):
        return tuple(
            wrap_nested(TupleGetItem(expr, i), f"{name}.{i}") for i in range(len(info.fields))
        )
    if isinstance(info, ObjectStructInfo):
        return Object(_expr=expr, _name=name)
    raise error.TypeError(f"nn: {name} gives {info}, which is no tensor, tuple or object")


class Tensor:
    """A tensor of the network being traced; it has no values.

    Made by operators, by inputs of a method, by :meth:`from_const` and :meth:`placeholder`. Numbers
    in arithmetic with a tensor become constants of its element type.
    """

    def __init__(self, *, _expr: RelayExpr) -> None:
        info = _expr.struct_info
        if not isinstance(info, TensorStructInfo) or info.shape is None or info.ndim < 0:
            raise error.TypeError(
                f"nn.Tensor: {_expr} has {info}; tensors of networks have a known rank and shape"
            )
        self._expr = _expr

    @staticmethod
    def from_const(data: Any) -> Tensor:
        """A constant with the values of an array."""
        return Tensor(_expr=const(data))

    @staticmethod
    def from_scalar(data: float | int, dtype: str) -> Tensor:
        """A constant without dimensions."""
        return Tensor(_expr=const(data, dtype))

    @staticmethod
    def from_struct_info(struct_info: TensorStructInfo, name: str = "tensor") -> Tensor:
        """A variable of which this is known."""
        return Tensor(_expr=Var(name, struct_info))

    @staticmethod
    def placeholder(shape: Sequence[IntExpr], dtype: str, name: str = "tensor") -> Tensor:
        """A variable of a shape, whose symbolic extents are int64 expressions."""
        extents: list[IntExpr] = []
        for extent in shape:
            if isinstance(extent, int | tir.IntImm):
                if int(extent) < 0:
                    raise error.ValueError(f"nn.Tensor: {name} has the extent {int(extent)}")
                extents.append(int(extent))
            elif isinstance(extent, tir.PrimExpr) and str(extent.dtype) == "int64":
                extents.append(extent)
            else:
                raise error.TypeError(
                    f"nn.Tensor: an extent of {name} is a number or an int64 expression, got "
                    f"{extent!r}"
                )
        return Tensor(_expr=Var(name, TensorStructInfo(extents, dtype)))

    @property
    def shape(self) -> list[IntExpr]:
        """Extents, as Python numbers where they are fixed."""
        values = self._expr.struct_info.shape.struct_info.values
        return [int(v) if isinstance(v, tir.IntImm) else v for v in values]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return int(self._expr.struct_info.ndim)

    @property
    def dtype(self) -> str:
        """Element type."""
        return str(self._expr.struct_info.dtype)

    def __repr__(self) -> str:
        return f'Tensor({self.shape}, "{self.dtype}")'

    def _other(self, other: Any) -> RelayExpr:
        if isinstance(other, Tensor):
            return other._expr
        if isinstance(other, tir.IntImm | tir.FloatImm):
            other = other.value
        if isinstance(other, int | float):
            return const(other, self.dtype)
        raise error.TypeError(f"nn.Tensor: the other operand is a tensor or number, got {other!r}")

    def __add__(self, other: Any) -> Tensor:
        return wrap_nested(_op.add(self._expr, self._other(other)), "add")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Tensor:
        return wrap_nested(_op.subtract(self._expr, self._other(other)), "subtract")

    def __rsub__(self, other: Any) -> Tensor:
        return wrap_nested(_op.subtract(self._other(other), self._expr), "subtract")

    def __mul__(self, other: Any) -> Tensor:
        return wrap_nested(_op.multiply(self._expr, self._other(other)), "mul")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Tensor:
        return wrap_nested(_op.divide(self._expr, self._other(other)), "divide")

    def __lt__(self, other: Any) -> Tensor:
        return wrap_nested(_op.less(self._expr, self._other(other)), "less")

    def __le__(self, other: Any) -> Tensor:
        return wrap_nested(_op.less_equal(self._expr, self._other(other)), "less_equal")

    def __gt__(self, other: Any) -> Tensor:
        return wrap_nested(_op.greater(self._expr, self._other(other)), "greater")

    def __ge__(self, other: Any) -> Tensor:
        return wrap_nested(_op.greater_equal(self._expr, self._other(other)), "greater_equal")

    def astype(self, dtype: str) -> Tensor:
        """The elements in another type; itself where that is theirs."""
        if self.dtype == dtype:
            return self
        return wrap_nested(_op.astype(self._expr, dtype), "astype")

    def maximum(self, other: Any) -> Tensor:
        """The greater of both, element by element."""
        return wrap_nested(_op.maximum(self._expr, self._other(other)), "maximum")

    def minimum(self, other: Any) -> Tensor:
        """The smaller of both, element by element."""
        return wrap_nested(_op.minimum(self._expr, self._other(other)), "minimum")

    def reshape(self, *shape: Any) -> Tensor:
        """The elements in another shape, given as numbers or as one sequence."""
        return wrap_nested(_op.reshape(self._expr, _spread(shape)), "reshape")

    def permute_dims(self, *axes: Any) -> Tensor:
        """The dimensions in another order, reversed without one."""
        order = _spread(axes)
        return wrap_nested(_op.permute_dims(self._expr, order or None), "permute_dims")

    def repeat(self, repeats: int, axis: int | None = None) -> Tensor:
        """Each element several times along an axis, or of the flat tensor."""
        return wrap_nested(_op.repeat(self._expr, repeats, axis), "repeat")


def _spread(given: tuple[Any, ...]) -> list[Any]:
    if len(given) == 1 and isinstance(given[0], Sequence):
        return list(given[0])
    return list(given)


class Parameter(Tensor):
    """A weight of a network, with or without values.

    Parameters
    ----------
    shape : extents; symbolic ones are int64 variables.
    dtype : element type, :func:`get_default_dtype` by default.
    """

    def __init__(self, shape: Sequence[IntExpr], dtype: str | None = None) -> None:
        dtype = get_default_dtype() if dtype is None else dtype
        super().__init__(_expr=Tensor.placeholder(shape, dtype, "param")._expr)
        self._data: NDArray | None = None
        self.attrs: dict[str, Any] = {}

    @property
    def data(self) -> NDArray | None:
        """The values, or None.

        Set to an NDArray, an array of numpy or anything with ``__dlpack__`` such as a tensor of
        PyTorch; None forgets them.

        Raises
        ------
        TypeError : it is none of these.
        ValueError : shape or element type are not the parameter's.
        """
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        if data is None:
            self._data = None
            return
        if isinstance(data, np.ndarray):
            data = array(data)
        elif not isinstance(data, NDArray):
            if not hasattr(data, "__dlpack__"):
                raise error.TypeError(f"nn.Parameter: values are an array, got {type(data)}")
            data = from_dlpack(data.detach() if hasattr(data, "detach") else data)
        if tuple(data.shape) != tuple(self.shape):
            raise error.ValueError(
                f"nn.Parameter: Shape mismatch: expected {tuple(self.shape)}, got "
                f"{tuple(data.shape)}"
            )
        if str(data.dtype) != self.dtype:
            raise error.ValueError(
                f"nn.Parameter: Dtype mismatch: expected {self.dtype}, got {data.dtype}"
            )
        self._data = data

    def to(self, dtype: str | None = None) -> None:
        """Change the element type of a parameter that has no values yet.

        Raises
        ------
        ValueError : it has values; convert them and make the parameter anew.
        """
        if dtype is None:
            return
        if self._data is not None:
            raise error.ValueError(
                f"nn.Parameter: it has {self.dtype} values, which would be rounded; set `data` to "
                f"None, convert, and set it again"
            )
        self._expr = Tensor.placeholder(self.shape, dtype, "param")._expr


class Object:
    """A value that is no tensor, such as a cache, which functions of the runtime look into."""

    def __init__(self, *, _expr: RelayExpr, _name: str) -> None:
        if not isinstance(_expr, Var):
            builder = BlockBuilder.current()
            if builder is None:
                raise error.RuntimeError(f"nn.Object: {_name} is made outside of a network")
            _expr = builder.emit(_expr, _name)
        if not isinstance(_expr.struct_info, ObjectStructInfo):
            raise error.TypeError(f"nn.Object: {_name} has {_expr.struct_info}, which is no object")
        self._expr = _expr
        self._name = _name
