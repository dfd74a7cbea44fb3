"""Transposed convolutions as plain ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm.ir import IRModule, Op, RelayExpr
from tvm.topi.utils import as_pads, as_sizes, const_shape

from .. import op
from ..expr import Call, Constant, Var, const
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import open_shape, settled_shape
from .graph_pass import graph_pass

__all__ = ["ConvertConvTranspose", "TransposedDimension", "phases_of", "plain_dimensions"]

_NAMES = ("nn.conv_transpose", "nn.conv1d_transpose", "nn.conv2d_transpose")
_LAYOUTS = {1: ("NCW", "IOW"), 2: ("NCHW", "IOHW"), 3: ("NCDHW", "IODHW")}


@dataclass(frozen=True)
class TransposedDimension:
    """One spatial dimension of a transposed convolution.

    Element y of the result is the sum over k of element (y + before - k * dilation) / stride of
    the data times element k of the kernel, where that quotient is one.

    A kernel that is dilated where there are strides too is one of its whole reach, with zeros
    between elements that are `spread` apart.
    """

    size: int
    out: int
    kernel: int
    stride: int
    before: int
    dilation: int
    spread: int = 1

    @staticmethod
    def of(
        size: int, out: int, kernel: int, stride: int, before: int, dilation: int
    ) -> TransposedDimension:
        """The dimension, whose kernel has zeros between its elements if need be."""
        if stride == 1 or dilation == 1:
            return TransposedDimension(size, out, kernel, stride, before, dilation)
        reach = (kernel - 1) * dilation + 1
        return TransposedDimension(size, out, reach, stride, before, 1, dilation)

    @property
    def taps(self) -> int:
        """Elements of the kernel that a phase of the result uses at most."""
        return self.kernel if self.stride == 1 else -(-self.kernel // self.stride)

    @property
    def phases(self) -> int:
        """Phases that elements of the kernel belong to; the others are zero."""
        return min(self.kernel, self.stride)

    @property
    def first(self) -> int:
        """Which period of the phases the result begins in."""
        return self.before // self.stride

    @property
    def periods(self) -> int:
        """Periods that the result lies in."""
        return -(-(self.before + self.out) // self.stride) - self.first

    @property
    def padding(self) -> tuple[int, int]:
        """Zeros before and behind the data, so that a plain convolution gives the periods."""
        reach = (self.taps - 1) * self.dilation
        before = reach - self.first
        return before, self.periods + reach - self.size - before

    @property
    def skipped(self) -> int:
        """Elements in front of the result in its first period."""
        return self.before - self.first * self.stride


class _Converter(FunctionRewriter):
    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, Call) or not isinstance(value.op, Op):
            return value
        if str(value.op.name).removeprefix("relax.") not in _NAMES:
            return value
        return self._converted(value) or value

    def _converted(self, call: Call) -> RelayExpr | None:
        data, weight = call.args
        if None in [settled_shape(expr) for expr in (data, weight, call)]:
            return None
        shapes = [open_shape(expr.struct_info) for expr in (data, weight, call)]
        settings = op.attrs_of(call)
        if not _is_plain(settings, len(shapes[0]) - 2):
            return None
        dims = _dimensions(settings, *shapes)
        groups = int(settings.get("groups", 1))
        out_dtype = settings.get("out_dtype")
        if groups == 1 and not out_dtype and math.prod(d.size for d in dims) == 1:
            return self._of_one_point(data, weight, dims)
        if not _fits_plain(dims):
            return None
        phases = self._rearranged(weight, lambda array: phases_of(array, dims, groups))
        padding = [d.padding for d in dims]
        product = {1: op.nn.conv1d, 2: op.nn.conv2d, 3: op.nn.conv3d}[len(dims)](
            data,
            phases,
            padding=[p[0] for p in padding] + [p[1] for p in padding],
            dilation=[d.dilation for d in dims],
            groups=groups,
            out_dtype=out_dtype,
        )
        if all(d.stride == 1 for d in dims):
            return product
        return self._interleaved(self.emit(product), dims, groups, shapes[2])

    def _of_one_point(
        self, data: RelayExpr, weight: RelayExpr, dims: Sequence[TransposedDimension]
    ) -> RelayExpr:
        """The result for data of one point: each element is one product of its channels."""
        batch, channels = open_shape(data.struct_info)[:2]
        matrix = self._rearranged(weight, lambda array: _at_each_point(array, dims))
        rows = self.emit(op.reshape(data, (batch, channels)))
        product = self.emit(op.nn.dense(rows, matrix))
        filters = open_shape(weight.struct_info)[1]
        return op.reshape(product, (batch, filters, *(d.out for d in dims)))

    def _rearranged(
        self, weight: RelayExpr, function: Callable[[np.ndarray], np.ndarray]
    ) -> RelayExpr:
        """What a function that moves elements and adds zeros makes of the weights.

        Of weights that are computed it says where each element of the result is taken from.
        """
        if isinstance(weight, Constant):
            return weight.rearranged(function)
        shape = open_shape(weight.struct_info)
        size = math.prod(shape)
        places = function(np.arange(1, size + 1, dtype="int64").reshape(shape))
        zero = const(np.zeros(1), str(weight.struct_info.dtype))
        flat = self.emit(op.concat([zero, self.emit(op.reshape(weight, (size,)))], 0))
        taken = self.emit(op.take(flat, const(places.reshape(-1), "int64"), 0))
        return self.emit(op.reshape(taken, places.shape))

    def _interleaved(
        self, phases: Var, dims: Sequence[TransposedDimension], groups: int, shape: Sequence[int]
    ) -> RelayExpr:
        """The result from the channels of (groups, phases of each dimension, filters) at each
        period."""
        rank = len(dims)
        periods = [d.periods for d in dims]
        filters = shape[1] // groups
        places = [d.phases for d in dims]
        split = self.emit(op.reshape(phases, (shape[0], groups, *places, filters, *periods)))
        absent = [d.stride - d.phases for d in dims]
        if any(absent):
            behind = [0, 0, *absent, *[0] * (rank + 1)]
            split = self.emit(op.nn.pad(split, [size for each in behind for size in (0, each)]))
        interleaved = [axis for k in range(rank) for axis in (3 + rank + k, 2 + k)]
        order = (0, 1, 2 + rank, *interleaved)
        spread = self.emit(op.permute_dims(split, order))
        whole = [d.periods * d.stride for d in dims]
        out = op.reshape(spread, (*shape[:2], *whole))
        begin = [d.skipped for d in dims]
        if whole == list(shape[2:]):
            return out
        end = [b + size for b, size in zip(begin, shape[2:])]
        return op.strided_slice(self.emit(out), list(range(2, 2 + rank)), begin, end)


def _is_plain(settings: dict[str, Any], rank: int) -> bool:
    if rank not in _LAYOUTS:
        return False
    given = str(settings["data_layout"]), str(settings["kernel_layout"])
    return given == _LAYOUTS[rank] and (settings.get("out_layout") or given[0]) == given[0]


def _dimensions(
    settings: dict[str, Any],
    data: Sequence[int],
    weight: Sequence[int],
    out: Sequence[int],
) -> list[TransposedDimension]:
    rank = len(data) - 2
    columns = zip(
        data[2:],
        out[2:],
        weight[2:],
        const_shape(as_sizes(settings.get("strides", 1), rank)),
        const_shape(as_pads(settings.get("padding", 0), rank)),
        const_shape(as_sizes(settings.get("dilation", 1), rank)),
    )
    return [TransposedDimension.of(*column) for column in columns]


def _fits_plain(dims: Sequence[TransposedDimension]) -> bool:
    """Whether a plain convolution computes all phases."""
    return all(min(d.padding) >= 0 for d in dims)


def plain_dimensions(
    settings: dict[str, Any],
    data: Sequence[int],
    weight: Sequence[int],
    out: Sequence[int],
) -> list[TransposedDimension] | None:
    """The spatial dimensions of a transposed convolution that becomes a plain one, else None.

    Parameters
    ----------
    settings : of the call.
    data, weight, out : shapes of the operands and the result.
    """
    if not _is_plain(settings, len(data) - 2):
        return None
    dims = _dimensions(settings, data, weight, out)
    return dims if math.prod(d.size for d in dims) > 1 and _fits_plain(dims) else None


def _with_zeros_between(weight: np.ndarray, dims: Sequence[TransposedDimension]) -> np.ndarray:
    """Weights (channels, filters, kernel) with elements of the kernel as far apart as they are."""
    if all(d.spread == 1 for d in dims):
        return weight
    result = np.zeros((*weight.shape[:2], *(d.kernel for d in dims)), weight.dtype)
    result[(slice(None),) * 2 + tuple(slice(None, None, d.spread) for d in dims)] = weight
    return result


def phases_of(weight: np.ndarray, dims: Sequence[TransposedDimension], groups: int) -> np.ndarray:
    """Weights of the plain convolution, (groups, phases of each dimension, filters) by channels and
    taps."""
    weight = _with_zeros_between(weight, dims)
    channels, filters = weight.shape[:2]
    grouped = weight.reshape(groups, channels // groups, filters, *weight.shape[2:])
    strides, taps = [d.stride for d in dims], [d.taps for d in dims]
    phases = [d.phases for d in dims]
    result = np.zeros((groups, *phases, filters, channels // groups, *taps), weight.dtype)
    mirrored = (slice(None),) * 3 + (slice(None, None, -1),) * len(dims)
    for phase in itertools.product(*map(range, phases)):
        every = tuple(slice(r, None, s) for r, s in zip(phase, strides))
        part = grouped[(slice(None),) * 3 + every].swapaxes(1, 2)
        padded = np.zeros((*part.shape[:3], *taps), weight.dtype)
        padded[tuple(slice(0, n) for n in part.shape)] = part
        at_phase: tuple[slice | int, ...] = (slice(None), *phase)
        result[at_phase] = padded[mirrored]
    return result.reshape(-1, channels // groups, *taps)


def _at_each_point(weight: np.ndarray, dims: Sequence[TransposedDimension]) -> np.ndarray:
    """(filters and places of the result, channels), for data of one point."""
    weight = _with_zeros_between(weight, dims)
    channels, filters = weight.shape[:2]
    result = np.zeros((filters, *(d.out for d in dims), channels), weight.dtype)
    places, elements = [], []
    for d in dims:
        place = np.arange(d.kernel) * d.dilation - d.before
        kept = (place >= 0) & (place < d.out)
        places.append(place[kept])
        elements.append(np.flatnonzero(kept))
    every_filter, every_channel = np.arange(filters), np.arange(channels)
    result[np.ix_(every_filter, *places, every_channel)] = np.moveaxis(
        weight[np.ix_(every_channel, every_filter, *elements)], 0, -1
    )
    return result.reshape(-1, channels)


@graph_pass("ConvertConvTranspose")
def ConvertConvTranspose(mod: IRModule) -> IRModule:
    """The module with transposed convolutions of constant weights as plain ones.

    A result at stride s has s phases in each dimension, each of which is a convolution of the data
    with every s-th element of the kernel. All phases are one convolution with s times the filters,
    whose channels are then interleaved; phases without an element are zero. Data of one point make
    a dense layer.

    Channels in front and known sizes are asked for.
    """
    return map_functions(mod, lambda func: _Converter(func).run())
