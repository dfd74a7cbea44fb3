"""Convolutions over lines and volumes as convolutions over images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Constant, Function, Var
from ..op import OpPattern
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import settled_shape, static_shape
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
"""(N, C, D, H, W) with channels last, as an image for each depth, (N D, H, W, C), or as images of
depth by place, (N, D, H W, C)."""


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
        if None in [settled_shape(value) for value in (*call.args, call)]:
            return None
        shape, weights = _shape(call), _shape(call.args[1])
        window = _window(settings, weights[2:])
        more: dict[str, Any] = {"out_dtype": settings.get("out_dtype")}
        if len(window.kernel) == 1:
            data = self._as(call.args[0], _LINE)
            weight = self._reshaped(call.args[1], _as_line(weights))
            images = op.nn.conv2d(data, weight, **window.of_images(-1, 0), **more)
            return self._back(images, _LINE, shape)
        if not isinstance(call.args[1], Constant):
            return None
        frames = self._as(call.args[0], _FRAMES)
        if window.is_pointwise(1) and window.is_pointwise(2):
            images = self._over_depth(frames, call, window, more)
        else:
            images = self._over_frames(frames, call, window, more)
        return self._back(images, _FRAMES, shape)

    def _over_depth(
        self, frames: RelayExpr, call: Call, window: _Window, more: dict[str, Any]
    ) -> Call:
        """A filter over the depth alone, on images of depth by place."""
        batch, channels, depth, height, width = _shape(call.args[0])
        columns = self._reshaped(frames, (batch, depth, height * width, channels))
        weight, layout = _channels_last(call.args[1], channels, lambda array: array[..., 0])
        return op.nn.conv2d(
            columns,
            weight,
            data_layout="NHWC",
            kernel_layout=layout,
            **window.of_images(0, -1),
            **more,
        )

    def _over_frames(
        self, frames: RelayExpr, call: Call, window: _Window, more: dict[str, Any]
    ) -> Call:
        """A filter over frames whose channels are those of all depths it reaches over.

        Groups would have to share these out; there each depth has a convolution of its own.
        """
        batch, channels, depth, *_ = _shape(call.args[0])
        out_depth = _shape(call)[2]
        taps, before = window.kernel[0], window.before[0]
        together = taps if window.groups == 1 else 1
        total: Call | None = None
        for tap in range(0, taps, together):
            gathered = frames
            if (taps, window.strides[0], out_depth) != (1, 1, depth):
                gathered = self.emit(
                    op.nn.frame_windows(
                        frames,
                        depth,
                        out_depth,
                        together,
                        stride=window.strides[0],
                        dilation=window.dilation[0],
                        before=before - tap * window.dilation[0],
                    )
                )
            image_of = partial(_side_by_side, taps=slice(tap, tap + together))
            weight, layout = _channels_last(call.args[1], channels, image_of)
            images = op.nn.conv2d(
                gathered,
                weight,
                data_layout="NHWC",
                kernel_layout=layout,
                **window.of_images(1, 2),
                **more,
            )
            total = images if total is None else op.add(self.emit(images), self.emit(total))
        assert total is not None
        return total

    def _elementwise(self, call: Call) -> RelayExpr | None:
        """A call on what convolutions computed, computed on the images themselves."""
        pattern = op.op_spec(call.op).pattern
        if pattern != OpPattern.ELEMWISE and str(call.op.name) not in _BROADCAST:
            return None
        shape = settled_shape(call)
        if shape is None:
            return None
        known = [self._known(arg) for arg in call.args if settled_shape(arg) == shape]
        found = next((images for images in known if images is not None), None)
        if found is None:
            return None
        operands = []
        for arg in call.args:
            operand = self._operand(arg, found, shape)
            if operand is None:
                return None
            operands.append(operand)
        name = str(call.op.name).removeprefix("relax.")
        images = op.make_call(name, *operands, **op.attrs_of(call))
        return self._back(images, found.form, shape)

    def _operand(self, value: RelayExpr, like: _Images, shape: Sequence[int]) -> RelayExpr | None:
        """What takes the operand's place where the result is computed on such images."""
        given = settled_shape(value)
        if given is None:
            return None
        images = _shape(like.data)
        if given == tuple(shape):
            return self._reshaped(self._as(value, like.form), images)
        full = (1,) * (len(shape) - len(given)) + given
        if like.form == _LINE:
            return self._reshaped(value, _as_line(full))
        batch, channels, depth, *size = full
        if batch != 1 or depth != 1 or (max(size) > 1 and images[1:3] != tuple(shape[3:])):
            return None
        return self._moved(value, full, (0, 3, 4, 1), (1, *size, channels))

    def _known(self, value: RelayExpr) -> _Images | None:
        bound = self.values.get(value) if isinstance(value, Var) else None
        return None if bound is None else self._images.get(bound)

    def _as(self, value: RelayExpr, form: str) -> RelayExpr:
        """The images of a line or volume."""
        known, shape = self._known(value), _shape(value)
        if form == _LINE:
            return self._reshaped(value, _as_line(shape)) if known is None else known.data
        batch, channels, depth, *size = shape
        frames = (batch * depth, *size, channels)
        if known is not None:
            return self._reshaped(known.data, frames)
        return self._moved(value, shape, (0, 2, 3, 4, 1), frames)

    def _back(self, images: Call, form: str, shape: Sequence[int]) -> RelayExpr:
        """The line or volume of images; the images are remembered."""
        data = self.emit(images)
        if form == _LINE or shape[1] == 1:
            back = op.reshape(data, shape)
        else:
            batch, channels, *volume = shape
            split = self._reshaped(data, (batch, *volume, channels))
            back = op.permute_dims(split, (0, 4, 1, 2, 3))
        self._images[back] = _Images(data, form)
        return back

    def _moved(
        self, value: RelayExpr, full: Sequence[int], order: Sequence[int], shape: Sequence[int]
    ) -> RelayExpr:
        """The value, taken for one of shape `full`, in another order and then another shape."""
        whole = (*order, *(k for k in range(len(full)) if k not in order))
        moves = sorted(k for k in whole if full[k] != 1) != [k for k in whole if full[k] != 1]
        if not moves:
            return self._reshaped(value, shape)
        if isinstance(value, Constant):
            return value.rearranged(
                lambda array: array.reshape(full).transpose(whole).reshape(shape)
            )
        moved = self.emit(op.permute_dims(self._reshaped(value, full), whole))
        return self._reshaped(moved, shape)

    def _reshaped(self, value: RelayExpr, shape: Sequence[int]) -> RelayExpr:
        if settled_shape(value) == tuple(shape):
            return value
        if isinstance(value, Constant):
            return value.rearranged(lambda array: array.reshape(shape))
        return self.emit(op.reshape(value, shape))


def _shape(value: RelayExpr) -> tuple[int, ...]:
    return static_shape(value.struct_info)


def _picked(values: Sequence[int], axes: Sequence[int], default: int) -> list[int]:
    return [default if k < 0 else values[k] for k in axes]


def _side_by_side(weight: np.ndarray, taps: slice) -> np.ndarray:
    """Some taps T of (O, I, T, H, W), as (O, T I, H, W)."""
    filters, channels, count, *size = weight[:, :, taps].shape
    return weight[:, :, taps].swapaxes(1, 2).reshape(filters, count * channels, *size)


def _channels_last(
    weight: Constant, channels: int, as_image: Callable[[np.ndarray], np.ndarray]
) -> tuple[Constant, str]:
    """Weights for images with channels last, and their layout.

    Parameters
    ----------
    channels : of the data.
    as_image : makes them (O, I, H, W).
    """
    depthwise = _shape(weight)[1] == 1 and channels > 1

    def rearrange(array: np.ndarray) -> np.ndarray:
        array = as_image(array).transpose(2, 3, 1, 0)
        return array.reshape(*array.shape[:2], channels, -1) if depthwise else array

    return weight.rearranged(rearrange), "HWOI" if depthwise else "HWIO"


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


@graph_pass("ConvertConvTo2d")
def ConvertConvTo2d(mod: IRModule) -> IRModule:
    """The module with convolutions over lines and volumes written over images.

    The kernels of images are the fast ones, and layouts, Winograd's form and schedules are chosen
    for them. A line is an image of one row. A volume is an image for each depth of the result,
    channels last, whose channels are those of all depths it is computed from; where a filter
    reaches over the depth only, it is one image of depth by place. What follows element by element
    is computed on the images as well, so that chains of convolutions turn nothing back.

    Convolutions in NCW, and those in NCDHW with constant weights, of known sizes are rewritten,
    others stay.
    """
    return map_functions(mod, lambda func: _Converter(func).run())
