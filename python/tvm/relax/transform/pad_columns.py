"""Products whose columns fill no vectors, with columns of zeros beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Constant, Function, Var
from ..op import OpPattern
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import settled_shape
from .graph_pass import graph_pass

__all__ = ["PadColumns"]

# Columns are filled up to whole vectors of the widest registers where those of half their width
# leave a remainder.
_COLUMNS, _PART = 16, 8
# Multiply-adds of which the copies that come with it are a small part.
_LEAST_PRODUCTS = 1 << 17
# Steps of a matrix product beside which the copies count, and the part of its columns that pieces
# of the last vector may take longer by.
_FEW_STEPS, _MOST_MORE = 256, 1 / 3
# Rows of weights are read where they are for fewer columns, which are inner products.
_LEAST_DENSE = 32
_BROADCAST = frozenset(
    f"relax.{name}" for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")
)


class _Padder(FunctionRewriter):
    def __init__(self, func: Function, ends_inside: bool) -> None:
        super().__init__(func)
        self._ends_inside = ends_inside

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, Call) or not op.has_op(value.op):
            return value
        name = str(value.op.name)
        if name == "relax.nn.conv2d":
            return self._convolution(value) or value
        if name == "relax.matmul":
            return self._matmul(value) or value
        if name == "relax.nn.dense":
            return self._dense(value) or value
        return self._elementwise(value) or value

    def _convolution(self, call: Call) -> RelayExpr | None:
        settings = op.attrs_of(call)
        data, weight = call.args
        shape, kernel = settled_shape(call), settled_shape(weight)
        layouts = [settings["data_layout"], settings["kernel_layout"]]
        if layouts == ["NHWC", "HWOI"]:
            return self._depthwise(call)
        if layouts != ["NHWC", "HWIO"] or int(settings["groups"]) != 1:
            return None
        if (settings.get("out_layout") or "NHWC") != "NHWC" or shape is None or kernel is None:
            return None
        if not _pays(shape, math.prod(kernel[:3])):
            return None
        wide = self._longer(weight, 3, _wide(kernel[3]))
        return self._cut(op.nn.conv2d(data, wide, **settings), shape)

    def _longer(self, value: RelayExpr, axis: int, extent: int) -> RelayExpr:
        """A tensor with zeros at the end of a dimension."""
        shape = settled_shape(value)
        assert shape is not None
        missing = extent - shape[axis]
        if isinstance(value, Constant):
            amounts = [(0, missing if k == axis else 0) for k in range(len(shape))]
            return value.rearranged(lambda array: np.pad(array, amounts))
        return self.emit(
            op.nn.pad(value, [n for k in range(len(shape)) for n in (0, missing * (k == axis))])
        )

    def _depthwise(self, call: Call) -> RelayExpr | None:
        """A filter for each channel: channels of the data are columns of the result."""
        settings = op.attrs_of(call)
        data, weight = call.args
        shape, kernel, source = (settled_shape(value) for value in (call, weight, data))
        if shape is None or kernel is None or source is None:
            return None
        plain = (settings.get("out_layout") or "NHWC") == "NHWC" and kernel[3] == 1
        channels = kernel[2]
        if not plain or int(settings["groups"]) != channels:
            return None
        if not _pays(shape, math.prod(kernel[:2])):
            return None
        wide = self._known(data, source)
        if wide is None:
            wide = self._longer(data, 3, _wide(channels))
        settings["groups"] = _wide(channels)
        longer = self._longer(weight, 2, _wide(channels))
        return self._cut(op.nn.conv2d(wide, longer, **settings), shape)

    def _dense(self, call: Call) -> RelayExpr | None:
        """A product whose weights have a row for each column of the result."""
        data, weight = call.args
        shape, factors = settled_shape(call), settled_shape(weight)
        if shape is None or factors is None or not isinstance(weight, Constant):
            return None
        if shape[-1] < _LEAST_DENSE or not _pays(shape, factors[1]):
            return None
        longer = self._longer(weight, 0, _wide(factors[0]))
        return self._cut(op.make_call("nn.dense", data, longer, **op.attrs_of(call)), shape)

    def _matmul(self, call: Call) -> RelayExpr | None:
        left, right = call.args
        shape, factors = settled_shape(call), settled_shape(right)
        if shape is None or factors is None or len(factors) < 2 or len(shape) < 2:
            return None
        if not _pays(shape, factors[-2]):
            return None
        if self._ends_inside and factors[-2] < _FEW_STEPS and _ends_well(shape[-1]):
            return None
        wide = self._longer(right, len(factors) - 1, _wide(factors[-1]))
        return self._cut(op.make_call("matmul", left, wide, **op.attrs_of(call)), shape)

    def _elementwise(self, call: Call) -> RelayExpr | None:
        """A call on a product, computed on all columns of it that there are."""
        pattern = op.op_spec(call.op).pattern
        if pattern != OpPattern.ELEMWISE and str(call.op.name) not in _BROADCAST:
            return None
        shape = settled_shape(call)
        if shape is None or not any(self._known(arg, shape) for arg in call.args):
            return None
        operands = []
        for arg in call.args:
            operand = self._operand(arg, shape)
            if operand is None:
                return None
            operands.append(operand)
        name = str(call.op.name).removeprefix("relax.")
        return self._cut(op.make_call(name, *operands, **op.attrs_of(call)), shape)

    def _operand(self, value: RelayExpr, shape: Sequence[int]) -> RelayExpr | None:
        given = settled_shape(value)
        if given is None:
            return None
        if not given or given[-1] == 1:
            return value
        known = self._known(value, shape)
        if known is not None:
            return known
        if not isinstance(value, Constant):
            return None
        return _widened(value, given)

    def _known(self, value: RelayExpr, shape: Sequence[int]) -> RelayExpr | None:
        """What a value of that shape is the first columns of."""
        cut = self.values.get(value) if isinstance(value, Var) else None
        if not isinstance(cut, Call) or str(getattr(cut.op, "name", "")) != "relax.strided_slice":
            return None
        wide = settled_shape(cut.args[0])
        expected = (*shape[:-1], _wide(shape[-1]))
        is_first = settled_shape(cut) == tuple(shape) and wide == expected
        settings = op.attrs_of(cut)
        at_zero = not any(int(b) for b in settings["begin"])
        return cut.args[0] if is_first and at_zero and len(settings["axes"]) == 1 else None

    def _cut(self, wide: Call, shape: Sequence[int]) -> RelayExpr:
        return op.strided_slice(self.emit(wide), [len(shape) - 1], [0], [shape[-1]])


def _wide(columns: int) -> int:
    return -(-columns // _COLUMNS) * _COLUMNS


def _pays(shape: Sequence[int], depth: int) -> bool:
    """Whether more columns than a product of the shape has make it faster."""
    # A single column is a sum over each row, which has vectors along itself.
    fills_none = shape[-1] > 1 and shape[-1] % _PART != 0
    return fills_none and math.prod(shape) * depth >= _LEAST_PRODUCTS


def _ends_well(columns: int) -> bool:
    """Whether columns behind the last whole vector take little longer than one does.

    They are computed in pieces of powers of two, of which each takes as long as a vector.
    """
    more = (columns % _COLUMNS).bit_count() - 1
    return more * _COLUMNS <= columns * _MOST_MORE


def _widened(value: Constant, shape: Sequence[int]) -> Constant:
    """The constant with more columns, of an element of it: they divide by zero where it does."""

    def widen(array: np.ndarray) -> np.ndarray:
        size = (*shape[:-1], _wide(shape[-1]) - shape[-1])
        return np.concatenate([array, np.full(size, array.flat[0], array.dtype)], -1)

    return value.rearranged(widen)


@graph_pass("PadColumns")
def PadColumns(mod: IRModule, ends_inside: bool = False) -> IRModule:
    """The module with matrix products and convolutions that fill whole vectors.

    Convolutions of NHWC data, depthwise ones too, dense layers with constant weights, and matrix
    products, whose columns are no multiple of 8 get columns of zeros up to a multiple of 16, which
    are cut off behind what follows element by element. Small products stay as they are.

    Parameters
    ----------
    ends_inside : matrix products stay as they are, too, where few steps make a result and few
        columns are behind the last whole vector: to copy the result takes longer than these. For
        targets whose schedules let columns end inside of a vector, as those of processors do.
    """
    return map_functions(mod, lambda func: _Padder(func, ends_inside).run())
