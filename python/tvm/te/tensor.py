"""Tensors, their operations, and indexing of tensors in expressions."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm._ffi
from tvm.runtime import Object
from tvm.tir import DataProducer, PrimExpr, convert

from . import _ffi_api

__all__ = [
    "ComputeOp",
    "ExternOp",
    "HybridOp",
    "Operation",
    "PlaceholderOp",
    "ScanOp",
    "Tensor",
    "TensorComputeOp",
    "TensorSlice",
]


class TensorSlice:
    """A tensor with indices for some axes, as in ``A[i]``, or with ranges, as in ``A[0:4, j]``."""

    def __init__(self, tensor: Tensor, indices: Sequence[Any]) -> None:
        self.tensor = tensor
        self.indices = tuple(indices)

    def __getitem__(self, indices: Any) -> Any:
        more = indices if isinstance(indices, tuple) else (indices,)
        return self.tensor[self.indices + more]

    # Indexing never runs out, so iteration by index would not end.
    __iter__ = None

    def asobject(self) -> PrimExpr:
        """The element, when every axis has an index; ValueError says which are missing."""
        if any(isinstance(i, slice) for i in self.indices):
            raise ValueError(f"{self!r} is a region; only tensor intrinsics take regions")
        return self.tensor(*self.indices)

    @property
    def dtype(self) -> str:
        """Type of an element."""
        return self.tensor.dtype

    def __repr__(self) -> str:
        return f"TensorSlice({self.tensor.name}, {self.indices})"


# What Python's operators on tensors do, by the name of the operator in the library above.
_operators: dict[str, Callable[..., Any]] = {}


def define_operators(operators: Mapping[str, Callable[..., Any]]) -> None:
    """Say what Python's operators on tensors do; an operator library does when it is imported."""
    _operators.update(operators)


def _operator(name: str) -> Callable[..., Any]:
    if name not in _operators:
        raise TypeError(
            f"te.Tensor: whole tensors have no '{name}' until an operator library is imported; "
            "import tvm.topi, or write the elements in a te.compute"
        )
    return _operators[name]


class _TensorArithmetic:
    """Python's operators on whole tensors, which make further tensors."""

    # NumPy would take a tensor for a scalar and make an array of tensors.
    __array_ufunc__ = None

    def _apply(self, operator: str, left: Any, right: Any) -> Any:
        other = right if left is self else left
        if not isinstance(other, (Tensor, PrimExpr, numbers.Number)):
            return NotImplemented
        return _operator(operator)(left, right)

    def __add__(self, other: Any) -> Any:
        return self._apply("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return self._apply("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return self._apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._apply("subtract", other, self)

    def __mul__(self, other: Any) -> Any:
        return self._apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._apply("multiply", other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._apply("divide", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return self._apply("floor_divide", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._apply("floor_divide", other, self)

    def __mod__(self, other: Any) -> Any:
        return self._apply("floor_mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return self._apply("floor_mod", other, self)

    def __neg__(self) -> Any:
        return _operator("negative")(self)

    def astype(self, dtype: str) -> Any:
        """The tensor with its elements converted to another type."""
        return _operator("cast")(self, dtype)


@tvm._ffi.register_object("te.Tensor")
class Tensor(_TensorArithmetic, DataProducer):
    """A result of an operation.

    ``A[i, j]`` and ``A[i][j]`` are the element at (i, j), for use in the body of a compute.
    ``A + B``, ``A * 2`` and the like are tensors again, with the
    broadcasting of `tvm.topi`, once that is imported. Two
    tensors are equal when they are the same output of the same operation.
    """

    def __call__(self, *indices: Any) -> PrimExpr:
        return _ffi_api.TensorLoad(self, [convert(i) for i in indices])

    def __getitem__(self, indices: Any) -> Any:
        if not isinstance(indices, tuple):
            indices = (indices,)
        if len(indices) < self.ndim or any(isinstance(i, slice) for i in indices):
            return TensorSlice(self, indices)
        return self(*indices)

    # Indexing never runs out, so iteration by index would not end.
    __iter__ = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tensor) and bool(_ffi_api.TensorEqual(self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return _ffi_api.TensorHash(self)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def name(self) -> str:
        """Name of the operation, with the output's number where there are several."""
        op = self.op
        return str(op.name) if op.num_outputs == 1 else f"{op.name}.v{self.value_index}"

    @property
    def axis(self) -> Any:
        """Spatial axes of the operation."""
        return self.op.axis


class Operation(Object):
    """A node of the dataflow graph."""

    def output(self, index: int) -> Tensor:
        """The result number ``index``; IndexError when there are not that many."""
        return _ffi_api.OpGetOutput(self, index)

    @property
    def num_outputs(self) -> int:
        """Number of results."""
        return _ffi_api.OpNumOutputs(self)

    @property
    def input_tensors(self) -> Any:
        """Tensors the operation reads, in order of first use."""
        return _ffi_api.OpInputTensors(self)


@tvm._ffi.register_object("te.PlaceholderOp")
class PlaceholderOp(Operation):
    """An input of the program."""


@tvm._ffi.register_object("te.ComputeOp")
class ComputeOp(Operation):
    """Tensors given element by element; see :func:`tvm.te.compute`."""


@tvm._ffi.register_object("te.ExternOp")
class ExternOp(Operation):
    """Tensors written by a statement; see :func:`tvm.te.extern`."""


@tvm._ffi.register_object("te.ScanOp")
class ScanOp(Operation):
    """A recurrence over the first axis; see :func:`tvm.te.scan`."""


@tvm._ffi.register_object("te.TensorComputeOp")
class TensorComputeOp(Operation):
    """Tensors given block by block by a tensor intrinsic; see :func:`tvm.te.compute`."""


@tvm._ffi.register_object("te.HybridOp")
class HybridOp(Operation):
    """Tensors written by a loop program; see :mod:`tvm.te.hybrid`."""
