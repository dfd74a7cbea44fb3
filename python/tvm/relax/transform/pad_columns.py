"""Products whose columns fill no vectors, with columns of zeros beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Constant, Var
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
# Rows of weights are read where they are for fewer columns, which are inner products.
_LEAST_DENSE = 32
_BROADCAST = frozenset(
    f"relax.{name}" for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")
)


class _Padder(FunctionRewriter):
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
        if not isinstance(weight, Constant) or not _pays(shape, math.prod(kernel[:3])):
            return None
        return self._cut(op.nn.conv2d(data, _widened(weight, kernel), **settings), shape)

    def _depthwise(self, call: Call) -> RelayExpr | None:
        """A filter for each channel: channels of the data are columns of the result."""
        settings = op.attrs_of(call)
        data, weight = call.args
        shape, kernel, source = (settled_shape(value) for value in (call, weight, data))
        if shape is None or kernel is None or source is None or not isinstance(weight, Constant):
            return None
        plain = (settings.get("out_layout") or "NHWC") == "NHWC" and kernel[3] == 1
        channels = kernel[2]
        if not plain or int(settings["groups"]) != channels:
            return None
        if not _pays(shape, math.prod(kernel[:2])):
            return None
        missing = _wide(channels) - channels
        wide = self._known(data, source)
        if wide is None:
            wide = self.emit(op.nn.pad(data, [0, 0, 0, 0, 0, 0, 0, missing]))

        def widen(array: np.ndarray) -> np.ndarray:
            return np.pad(array, ((0, 0), (0, 0), (0, missing), (0, 0)))

        settings["groups"] = channels + missing
        return self._cut(op.nn.conv2d(wide, weight.rearranged(widen), **settings), shape)

    def _dense(self, call: Call) -> RelayExpr | None:
        """A product whose weights have a row for each column of the result."""
        data, weight = call.args
        shape, factors = settled_shape(call), settled_shape(weight)
        if shape is None or factors is None or not isinstance(weight, Constant):
            return None
        if shape[-1] < _LEAST_DENSE or not _pays(shape, factors[1]):
            return None
        missing = _wide(factors[0]) - factors[0]

        def widen(array: np.ndarray) -> np.ndarray:
            return np.pad(array, ((0, missing), (0, 0)))

        wide = op.make_call("nn.dense", data, weight.rearranged(widen), **op.attrs_of(call))
        return self._cut(wide, shape)

    def _matmul(self, call: Call) -> RelayExpr | None:
        left, right = call.args
        shape, factors = settled_shape(call), settled_shape(right)
        if shape is None or factors is None or len(factors) < 2 or len(shape) < 2:
            return None
        if not _pays(shape, factors[-2]):
            return None
        if isinstance(right, Constant):
            wide: RelayExpr = _widened(right, factors)
        else:
            missing = _wide(factors[-1]) - factors[-1]
            wide = self.emit(op.nn.pad(right, [*[0] * (2 * len(factors) - 1), missing]))
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
        # What is repeated cannot be a divisor of zero where no other is.
        return _widened(value, given, repeat=True)

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


def _widened(value: Constant, shape: Sequence[int], repeat: bool = False) -> Constant:
    """The constant with more columns, of zeros or of an element of it."""

    def widen(array: np.ndarray) -> np.ndarray:
        size = (*shape[:-1], _wide(shape[-1]) - shape[-1])
        more = np.full(size, array.flat[0] if repeat else 0, array.dtype)
        return np.concatenate([array, more], -1)

    return value.rearranged(widen)


@graph_pass("relax.PadColumns")
def PadColumns(mod: IRModule) -> IRModule:
    """The module with matrix products and convolutions that fill whole vectors.

    Convolutions of NHWC data with constant weights, depthwise ones too, dense layers, and matrix
    products, whose
    columns are no multiple of 8 get columns of zeros up to a multiple of 16, which are cut off
    behind what follows element by element. Small products stay as they are.
    """
    return map_functions(mod, lambda func: _Padder(func).run())
