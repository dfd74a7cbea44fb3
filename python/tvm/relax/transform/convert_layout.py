"""Convolutions and pools in NHWC, where the channels of a pixel are neighbours in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Constant, Function, Tuple, Var
from ..op import OpPattern
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import TensorStructInfo, open_shape
from .desired_layouts import with_layouts
from .graph_pass import graph_pass

__all__ = ["ConvertLayout"]

_TO_NHWC = (0, 2, 3, 1)
_TO_NCHW = (0, 3, 1, 2)
_POOLS = ("relax.nn.max_pool2d", "relax.nn.avg_pool2d", "relax.nn.adaptive_avg_pool2d")
# Fewer channels fill no vectors. A sample takes as long as to move so many pixels.
_FEW_CHANNELS, _SAMPLE = 8, 16
_REDUCTIONS = ("relax.sum", "relax.mean", "relax.max", "relax.min")


def _is_4d(expr: RelayExpr) -> bool:
    info = expr.struct_info
    return isinstance(info, TensorStructInfo) and info.ndim == 4


def _each(setting: Any) -> Sequence[Any]:
    """A setting that is one number, or one for each side."""
    return [setting] if isinstance(setting, int) else list(setting)


def _is_layout_free(call: Call) -> bool:
    """Whether a call computes element by element, wherever its operands' dimensions stand."""
    if op.op_spec(call.op).pattern > OpPattern.BROADCAST or not _is_4d(call):
        return False
    names_dimensions = str(call.op.name) in ("relax.tril", "relax.triu", "relax.broadcast_to")
    return not names_dimensions


class _NHWCConverter(FunctionRewriter):
    """Keeps, next to values in NCHW, their NHWC form, and makes either only when it is read.

    A value computed in NHWC has its NCHW variable bound to a transpose. Readers that can work in
    NHWC take the NHWC form, so that transpose stays only where it is needed: at the borders.
    """

    def __init__(self, func: Function) -> None:
        super().__init__(func)
        # NHWC form of variables of the new function.
        self._nhwc: dict[Var, RelayExpr] = {}
        # Variables that hold an NCHW value flattened to (batch, channels * height * width), with
        # the same value flattened from NHWC, and its (channels, height, width).
        self._flat: dict[Var, tuple[RelayExpr, tuple[int, int, int]]] = {}
        self._converted: RelayExpr | None = None
        self._flattened: tuple[RelayExpr, tuple[int, int, int]] | None = None

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, Call) or not op.has_op(value.op):
            return value
        name = str(value.op.name)
        if name == "relax.nn.conv2d":
            return self._conv2d(value)
        if name in _POOLS:
            return self._pool(value)
        if name == "relax.vision.roi_align":
            return self._regions(value)
        if name in _REDUCTIONS and self._has_nhwc(value.args[0]):
            return self._reduction(value)
        if name == "relax.concat":
            return self._concat(value)
        if name == "relax.permute_dims" and _is_4d(value):
            return self._permute(value)
        if name == "relax.nn.pad" and self._has_nhwc(value.args[0]):
            return self._pad(value)
        if name == "relax.reshape" and self._has_nhwc(value.args[0]):
            return self._reshape(value)
        if name == "relax.nn.dense" and value.args[0] in self._flat:
            return self._dense(value)
        if _is_layout_free(value):
            along = op.attrs_of(value).get("axis")
            return self._elementwise(value) if along is None else self._along(value, along)
        return value

    def _bind(self, var: Var, value: RelayExpr) -> Var:
        bound = super()._bind(var, value)
        if self._converted is not None:
            self._nhwc[bound], self._converted = self._converted, None
        if self._flattened is not None:
            self._flat[bound], self._flattened = self._flattened, None
        return bound

    def _has_nhwc(self, expr: RelayExpr) -> bool:
        return isinstance(expr, Var) and expr in self._nhwc

    def _in_nhwc(self, expr: RelayExpr) -> RelayExpr:
        """The NHWC form of a value of rank 4, made on first use."""
        if isinstance(expr, Constant):
            return expr.rearranged(lambda array: array.transpose(_TO_NHWC))
        if not self._has_nhwc(expr):
            self._nhwc[expr] = self.emit(op.permute_dims(expr, _TO_NHWC))
        return self._nhwc[expr]

    def _from_nhwc(self, value: RelayExpr) -> RelayExpr:
        """What the old variable is bound to when its value is computed in NHWC."""
        nhwc = self.emit(value)
        transposed = op.permute_dims(nhwc, _TO_NCHW)
        self._converted = nhwc
        return transposed

    def _conv2d(self, call: Call) -> RelayExpr:
        settings = op.attrs_of(call)
        if settings.pop("data_layout") != "NCHW" or settings.pop("out_layout", "NCHW") != "NCHW":
            return call
        settings.pop("kernel_layout")
        data, weight = call.args
        filters, per_group, kernel_h, kernel_w = open_shape(weight.struct_info)
        batch, channels, height, width = open_shape(data.struct_info)
        plain = {"strides": 1, "padding": 0, "groups": 1}
        pointwise = (kernel_h, kernel_w) == (1, 1) and all(
            int(number) == value
            for name, value in plain.items()
            for number in _each(settings[name])
        )
        if filters == 1 and channels > 1 and pointwise and not self._has_nhwc(data):
            return self._sum_of_channels(call, (batch, channels, height, width), settings)
        depthwise = per_group == 1 and settings["groups"] == channels and channels > 1
        order = (2, 3, 1, 0)
        shape = (kernel_h, kernel_w, channels, filters // channels) if depthwise else None
        if isinstance(weight, Constant):

            def rearrange(array: np.ndarray) -> np.ndarray:
                return array.transpose(order).reshape(shape) if shape else array.transpose(order)

            weight = weight.rearranged(rearrange)
        else:
            weight = self.emit(op.permute_dims(weight, order))
            weight = self.emit(op.reshape(weight, shape)) if shape else weight
        return self._from_nhwc(
            op.nn.conv2d(
                self._in_nhwc(data),
                weight,
                data_layout="NHWC",
                kernel_layout="HWOI" if depthwise else "HWIO",
                **settings,
            )
        )

    def _sum_of_channels(
        self, call: Call, shape: tuple[int, int, int, int], settings: dict[str, Any]
    ) -> RelayExpr:
        """A single filter of one pixel as a row times channels that are rows, where they stand."""
        batch, channels, height, width = shape
        data, weight = call.args
        rows = self.emit(op.reshape(data, (batch, channels, height * width)))
        row = self.emit(op.reshape(weight, (1, channels)))
        summed = self.emit(op.matmul(row, rows, settings.get("out_dtype") or None))
        # One channel lies the same in both layouts.
        self._converted = self.emit(op.reshape(summed, (batch, height, width, 1)))
        return op.reshape(summed, (batch, 1, height, width))

    def _pool(self, call: Call) -> RelayExpr:
        settings = op.attrs_of(call)
        if settings["layout"] != "NCHW" or settings["out_layout"] != "NCHW":
            return call
        settings |= {"layout": "NHWC", "out_layout": "NHWC"}
        name = str(call.op.name).removeprefix("relax.")
        return self._from_nhwc(op.make_call(name, self._in_nhwc(call.args[0]), **settings))

    def _regions(self, call: Call) -> RelayExpr:
        """Samples of regions have the channels of a pixel in vectors, too."""
        data, regions = call.args
        count, channels, *grid = open_shape(call.struct_info)
        _, _, height, width = open_shape(data.struct_info)
        if not all(isinstance(extent, int) for extent in (count, *grid, height, width)):
            return call
        # All pixels are turned around once, of which samples are made many times.
        pays = count * math.prod(grid) * _SAMPLE >= height * width
        if channels < _FEW_CHANNELS or not (pays or self._has_nhwc(data)):
            return call
        settings = op.attrs_of(call)
        return self._from_nhwc(
            op.make_call("vision.roi_align_nhwc", self._in_nhwc(data), regions, **settings)
        )

    def _elementwise(self, call: Call) -> RelayExpr:
        if not any(self._has_nhwc(arg) for arg in call.args):
            return call
        args = [self._spread_in_nhwc(arg) for arg in call.args]
        name = str(call.op.name).removeprefix("relax.")
        return self._from_nhwc(op.make_call(name, *args, **op.attrs_of(call)))

    def _along(self, call: Call, axis: int) -> RelayExpr:
        """Element by element, with vectors along a dimension that the call names."""
        data, *vectors = call.args
        if not self._has_nhwc(data) or any(v.struct_info.ndim != 1 for v in vectors):
            return call
        settings = {**op.attrs_of(call), "axis": _TO_NHWC.index(axis % 4)}
        name = str(call.op.name).removeprefix("relax.")
        return self._from_nhwc(op.make_call(name, self._in_nhwc(data), *vectors, **settings))

    def _spread_in_nhwc(self, arg: RelayExpr) -> RelayExpr:
        """An operand of a broadcasting operator whose other operand is in NHWC."""
        if not isinstance(arg.struct_info, TensorStructInfo):
            return arg
        shape = open_shape(arg.struct_info)
        if len(shape) == 4:
            return self._in_nhwc(arg)
        if math.prod(shape) == 1 and len(shape) < 2:
            return arg
        full = (1,) * (4 - len(shape)) + shape
        if isinstance(arg, Constant):

            def spread(array: np.ndarray) -> np.ndarray:
                array = array.reshape(full).transpose(_TO_NHWC)
                # A bias in NHWC is a plain vector along the innermost dimension.
                return array.reshape(-1) if array.size == array.shape[3] else array

            return arg.rearranged(spread)
        return self.emit(op.permute_dims(self.emit(op.reshape(arg, full)), _TO_NHWC))

    def _reduction(self, call: Call) -> RelayExpr:
        settings = op.attrs_of(call)
        axis = settings.get("axis")
        axes = range(4) if axis is None else (axis,) if isinstance(axis, int) else axis
        reduced = sorted({a % 4 for a in axes})
        kept = [a for a in range(4) if a not in reduced]
        keepdims = bool(settings.get("keepdims", False))
        # Without keepdims the remaining dimensions must come in the order they had.
        positions = [_TO_NHWC.index(a) for a in kept]
        if not keepdims and positions != sorted(positions):
            return call
        name = str(call.op.name).removeprefix("relax.")
        result = op.make_call(
            name,
            self._in_nhwc(call.args[0]),
            axis=sorted(_TO_NHWC.index(a) for a in reduced),
            keepdims=keepdims,
        )
        return self._from_nhwc(result) if keepdims else result

    def _concat(self, call: Call) -> RelayExpr:
        fields = call.args[0].fields if isinstance(call.args[0], Tuple) else ()
        if not any(self._has_nhwc(field) for field in fields):
            return call
        axis = op.attrs_of(call)["axis"] % 4
        return self._from_nhwc(
            op.concat([self._in_nhwc(field) for field in fields], _TO_NHWC.index(axis))
        )

    def _permute(self, call: Call) -> RelayExpr:
        """The network's own way to NHWC and back costs nothing where the value is there already."""
        rank = 4
        order = tuple(int(a) % rank for a in op.attrs_of(call).get("axes") or range(rank)[::-1])
        data = call.args[0]
        if order == _TO_NHWC and self._has_nhwc(data):
            return self._nhwc[data]
        if order == _TO_NCHW and isinstance(data, Var):
            self._converted = data
        return call

    def _pad(self, call: Call) -> RelayExpr:
        settings = op.attrs_of(call)
        sizes = [int(size) for size in settings["pad_width"]]
        pairs = list(zip(sizes[::2], sizes[1::2]))
        settings["pad_width"] = [size for k in _TO_NHWC for size in pairs[k]]
        return self._from_nhwc(op.make_call("nn.pad", self._in_nhwc(call.args[0]), **settings))

    def _reshape(self, call: Call) -> RelayExpr:
        data = call.args[0]
        batch, channels, height, width = open_shape(data.struct_info)
        target = open_shape(call.struct_info)
        if channels == 1 or height * width == 1:
            # Both layouts hold the elements in the same order, so no transpose is needed.
            return op.reshape(self._in_nhwc(data), target)
        if target == (batch, channels * height * width):
            flat = self.emit(op.reshape(self._in_nhwc(data), target))
            self._flattened = (flat, (channels, height, width))
        return call

    def _dense(self, call: Call) -> RelayExpr:
        flat, (channels, height, width) = self._flat[call.args[0]]
        weight = call.args[1]
        if not isinstance(weight, Constant):
            return call

        def permute(array: np.ndarray) -> np.ndarray:
            grid = array.reshape(len(array), channels, height, width)
            return grid.transpose(_TO_NHWC).reshape(array.shape)

        return op.nn.dense(flat, weight.rearranged(permute))


@graph_pass("ConvertLayout")
def ConvertLayout(
    mod: IRModule, desired_layouts: Mapping[str, Sequence[str]] | None = None
) -> IRModule:
    """The module with convolutions and what is between them in other layouts.

    Parameters
    ----------
    desired_layouts : by operator ("relax.nn.conv2d") the layouts of data and weights, and of the
        result if it is not that of the data. In dataflow blocks, operators that can follow take
        their operands as they come; transposes bring others, and what leaves a block, into the
        layout of the program. Without them, convolutions and pools in NCHW are brought into NHWC as
        processors like them, constants are laid out anew, and all bindings are looked at.

    Raises
    ------
    ValueError : a desired layout has other dimensions than the operator's.

    Notes
    -----
    Without desired layouts weights become HWIO, or (height, width, channels, multiplier) when
    depthwise. Elementwise operators, reductions, pads and concatenations between them follow, and
    transposes that the network makes itself between the two layouts disappear; a flattened value
    keeps its NCHW element order for its readers, except that a dense layer with constant weights
    has these permuted instead. Transposes that nobody reads are left for dead code elimination.
    """
    if desired_layouts is not None:
        return with_layouts(mod, desired_layouts)
    return map_functions(mod, lambda func: _NHWCConverter(func).run())
