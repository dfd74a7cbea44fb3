"""Convolutions over lines and volumes as convolutions over images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Constant, Function, Var, const
from ..op import OpPattern
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import settled_shape
from .graph_pass import graph_pass

__all__ = ["ConvertConvTo2d"]

# Operators that compute each element from those at its place, beside the elementwise ones.
_BROADCAST = frozenset(
    f"relax.{name}" for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")
)
_LAYOUTS = {"relax.nn.conv1d": ("NCW", "OIW"), "relax.nn.conv3d": ("NCDHW", "OIDHW")}

_LINE = "lines"
"""(N, C, W) as images of one row, (N, C, 1, W)."""
_FRAMES = "frames"
"""(N, C, D, H, W) as an image for each depth, (N D, C, H, W)."""
_COLUMNS = "columns"
"""(N, C, D, H, W) as images of depth by place, (N, C, D, H W)."""


@dataclass(frozen=True)
class _Images:
    """Images that hold the elements of a line or volume.

    Attributes
    ----------
    data : of rank 4.
    form : one of the forms above.
    """

    data: RelayExpr
    form: str


@dataclass(frozen=True)
class _Window:
    """The settings of a convolution, a number for each spatial dimension."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int

    def of_images(self, *axes: int) -> dict[str, Any]:
        """The settings of a convolution over those two dimensions; a row of its own for -1."""
        before, after = _picked(self.before, axes, 0), _picked(self.after, axes, 0)
        return {
            "strides": _picked(self.strides, axes, 1),
            "padding": [*before, *after],
            "dilation": _picked(self.dilation, axes, 1),
            "groups": self.groups,
        }

    def is_pointwise(self, axis: int) -> bool:
        """Whether a place of the result along the dimension depends on that of the data alone."""
        sizes = self.kernel[axis], self.strides[axis], self.before[axis], self.after[axis]
        return sizes == (1, 1, 0, 0)


class _Converter(FunctionRewriter):
    def __init__(self, func: Function) -> None:
        super().__init__(func)
        # By the value that turns the images back.
        self._images: dict[RelayExpr, _Images] = {}

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, Call) or not op.has_op(value.op):
            return value
        if str(value.op.name) in _LAYOUTS:
            return self._convolution(value) or value
        return self._elementwise(value) or value

    def _convolution(self, call: Call) -> RelayExpr | None:
        settings = op.attrs_of(call)
        layouts = _LAYOUTS[str(call.op.name)]
        given = settings["data_layout"], settings["kernel_layout"]
        if given != layouts or (settings["out_layout"] or given[0]) != given[0]:
            return None
        shapes = [settled_shape(arg) for arg in call.args]
        if None in shapes or settled_shape(call) is None:
            return None
        window = _window(settings, shapes[1][2:])
        data, weight = call.args
        more = {"out_dtype": settings.get("out_dtype")}
        if len(window.kernel) == 1:
            data = self._as(data, _LINE)
            weight = self._reshaped(weight, _as_line(shapes[1]))
            images = op.nn.conv2d(data, weight, **window.of_images(-1, 0), **more)
            return self._back(images, _LINE, settled_shape(call))
        if window.is_pointwise(1) and window.is_pointwise(2):
            data = self._as(data, _COLUMNS)
            weight = self._reshaped(weight, (*shapes[1][:3], 1))
            images = op.nn.conv2d(data, weight, **window.of_images(0, -1), **more)
            return self._back(images, _COLUMNS, settled_shape(call))
        depth = settled_shape(call)[2]
        gathered = self._with_depth_in_channels(data, window, depth)
        weight = self._depth_in_channels_of_weight(weight, window.groups)
        images = op.nn.conv2d(gathered, weight, **window.of_images(1, 2), **more)
        return self._back(images, _FRAMES, settled_shape(call))

    def _with_depth_in_channels(self, data: RelayExpr, window: _Window, depth: int) -> RelayExpr:
        """A frame for each depth of the result, with the channels of all it is computed from."""
        batch, channels, old_depth, *size = settled_shape(data)
        frames = self._as(data, _FRAMES)
        taps = window.kernel[0]
        borders = window.before[0] + window.after[0]
        if taps == 1 and window.strides[0] == 1 and not borders:
            return frames
        volume = self._reshaped(frames, (batch, old_depth, channels, *size))
        if borders:
            pads = [0, 0, window.before[0], window.after[0], *[0] * 6]
            volume = self.emit(op.nn.pad(volume, pads))
        places = (
            np.arange(depth)[:, None] * window.strides[0] + np.arange(taps) * window.dilation[0]
        )
        volume = self.emit(op.take(volume, const(places.reshape(-1).astype("int32")), axis=1))
        if window.groups != 1 and taps != 1:
            # Channels of a group lie together.
            volume = self._reshaped(volume, (batch, depth, taps, channels, *size))
            volume = self.emit(op.permute_dims(volume, (0, 1, 3, 2, 4, 5)))
        return self._reshaped(volume, (batch * depth, taps * channels, *size))

    def _depth_in_channels_of_weight(self, weight: RelayExpr, groups: int) -> RelayExpr:
        filters, channels, taps, *size = settled_shape(weight)
        if groups == 1 and taps != 1:
            order = (0, 2, 1, 3, 4)
            if isinstance(weight, Constant):
                weight = weight.rearranged(lambda array: array.transpose(order))
            else:
                weight = self.emit(op.permute_dims(weight, order))
        return self._reshaped(weight, (filters, channels * taps, *size))

    def _elementwise(self, call: Call) -> RelayExpr | None:
        """A call on what convolutions computed, computed on the images themselves."""
        pattern = op.op_spec(call.op).pattern
        if pattern != OpPattern.ELEMWISE and str(call.op.name) not in _BROADCAST:
            return None
        shape = settled_shape(call)
        if shape is None:
            return None
        known = [self._known(arg) for arg in call.args if settled_shape(arg) == shape]
        forms = [images.form for images in known if images is not None]
        if not forms:
            return None
        operands = [self._operand(arg, forms[0], shape) for arg in call.args]
        if None in operands:
            return None
        name = str(call.op.name).removeprefix("relax.")
        images = op.make_call(name, *operands, **op.attrs_of(call))
        return self._back(images, forms[0], shape)

    def _operand(self, value: RelayExpr, form: str, shape: Sequence[int]) -> RelayExpr | None:
        """What takes the operand's place where the result is computed in the form."""
        given = settled_shape(value)
        if given is None:
            return None
        if given == tuple(shape):
            return self._as(value, form)
        full = (1,) * (len(shape) - len(given)) + given
        if form == _LINE:
            return self._reshaped(value, _as_line(full))
        batch, channels, depth, *size = full
        if form == _COLUMNS:
            whole = tuple(size) in ((1, 1), tuple(shape[3:]))
            return self._reshaped(value, (*full[:3], math.prod(size))) if whole else None
        return self._reshaped(value, (1, channels, *size)) if batch == depth == 1 else None

    def _known(self, value: RelayExpr) -> _Images | None:
        bound = self.values.get(value) if isinstance(value, Var) else None
        return None if bound is None else self._images.get(bound)

    def _as(self, value: RelayExpr, form: str) -> RelayExpr:
        """The images of a line or volume."""
        known = self._known(value)
        if known is not None and known.form == form:
            return known.data
        shape = settled_shape(value)
        if form == _LINE:
            return self._reshaped(value, _as_line(shape))
        if form == _COLUMNS:
            return self._reshaped(value, (*shape[:3], shape[3] * shape[4]))
        if shape[1] != 1 and shape[2] != 1:
            value = self.emit(op.permute_dims(value, (0, 2, 1, 3, 4)))
        return self._reshaped(value, (shape[0] * shape[2], shape[1], *shape[3:]))

    def _back(self, images: Call, form: str, shape: Sequence[int]) -> RelayExpr:
        """The line or volume of images; the images are remembered."""
        data = self.emit(images)
        batch, channels, depth = (*shape, 1)[:3]
        if form == _FRAMES and channels != 1 and depth != 1:
            split = self.emit(op.reshape(data, (batch, depth, channels, *shape[3:])))
            back = op.permute_dims(split, (0, 2, 1, 3, 4))
        else:
            back = op.reshape(data, shape)
        self._images[back] = _Images(data, form)
        return back

    def _reshaped(self, value: RelayExpr, shape: Sequence[int]) -> RelayExpr:
        if settled_shape(value) == tuple(shape):
            return value
        if isinstance(value, Constant):
            return value.rearranged(lambda array: array.reshape(shape))
        return self.emit(op.reshape(value, shape))


def _picked(values: Sequence[int], axes: Sequence[int], default: int) -> list[int]:
    return [default if k < 0 else values[k] for k in axes]


def _as_line(shape: Sequence[int]) -> tuple[int, ...]:
    """(…, W) as (…, 1, W)."""
    return (*shape[:-1], 1, shape[-1])


def _window(settings: dict[str, Any], kernel: Sequence[int]) -> _Window:
    rank = len(kernel)
    numbers = {
        name: tuple(int(v) for v in settings[name]) for name in ("strides", "padding", "dilation")
    }
    return _Window(
        kernel=tuple(kernel),
        strides=numbers["strides"],
        before=numbers["padding"][:rank],
        after=numbers["padding"][rank:],
        dilation=numbers["dilation"],
        groups=int(settings["groups"]),
    )


@graph_pass("relax.ConvertConvTo2d")
def ConvertConvTo2d(mod: IRModule) -> IRModule:
    """The module with convolutions over lines and volumes written over images.

    The kernels of images are the fast ones, and layouts, Winograd's form and schedules are chosen
    for them. A line is an image of one row. A volume is an image for each depth of the result,
    whose channels are those of all depths it is computed from; where a filter reaches over the
    depth only, it is one image of depth by place. What follows element by element is computed on
    the images as well, so that chains of convolutions turn nothing back.

    Convolutions in NCW and NCDHW of known sizes are rewritten, others stay.
    """
    return map_functions(mod, lambda func: _Converter(func).run())
