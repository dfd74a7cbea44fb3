"""What a function takes, without the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import tir
from tvm.ir import IRModule
from tvm.runtime import DataType
from tvm.tir.transform import RemoveWeightLayoutRewriteBlock

__all__ = ["ArgInfo", "TensorInfo"]


class ArgInfo:
    """An argument of a function; the kinds are subclasses."""

    def as_json(self) -> Any:
        """The form in which records keep it."""
        raise TypeError(f"{type(self).__name__} does not define as_json")

    @staticmethod
    def from_json(json_obj: Any) -> ArgInfo:
        """Inverse of `as_json`.

        Raises
        ------
        ValueError : the value is none.
        """
        return TensorInfo.from_json(json_obj)

    @staticmethod
    def from_prim_func(func: tir.PrimFunc) -> list[ArgInfo]:
        """The arguments of a function, in order.

        Raises
        ------
        ValueError : an argument is no buffer of constant shape.
        """
        found: list[ArgInfo] = []
        for param in func.params:
            buffer = func.buffer_map.get(param)
            if buffer is None:
                raise ValueError(f"meta_schedule: the parameter {param} is no buffer")
            found.append(
                TensorInfo(str(buffer.dtype), [_constant(n, buffer) for n in buffer.shape])
            )
        return found

    @staticmethod
    def from_entry_func(mod: IRModule, remove_preproc: bool = True) -> list[ArgInfo]:
        """The arguments of the function ``main`` of a module.

        Parameters
        ----------
        remove_preproc : take operands that the module lays out anew
            (``meta_schedule.layout_rewrite_preproc``) in their new layouts.
        """
        if remove_preproc:
            mod = RemoveWeightLayoutRewriteBlock(skip_ndarray_rewrite=True)(mod)
        return ArgInfo.from_prim_func(mod["main"])


def _constant(extent: Any, buffer: Any) -> int:
    if not isinstance(extent, tir.IntImm):
        raise ValueError(f"meta_schedule: the shape {list(buffer.shape)} is not constant")
    return int(extent.value)


class TensorInfo(ArgInfo):
    """A tensor: `dtype` and `shape`."""

    def __init__(self, dtype: str | DataType, shape: Sequence[int]) -> None:
        self.dtype = str(dtype)
        self.shape = [int(extent) for extent in shape]

    def as_json(self) -> list[Any]:
        return ["TENSOR", self.dtype, list(self.shape)]

    @staticmethod
    def from_json(json_obj: Any) -> TensorInfo:
        try:
            kind, dtype, shape = json_obj
            if kind != "TENSOR" or not isinstance(dtype, str):
                raise ValueError
            DataType(dtype)
            return TensorInfo(dtype, shape)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f'meta_schedule: expected ["TENSOR", dtype, shape], got {json_obj!r}'
            ) from error

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorInfo) and self.as_json() == other.as_json()

    def __hash__(self) -> int:
        return hash((self.dtype, tuple(self.shape)))

    def __str__(self) -> str:
        return f'TensorInfo("{self.dtype}", {self.shape})'

    __repr__ = __str__
