"""Transposed convolutions as plain ones, which templates are for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import tvm
from tvm.ir import RelayExpr, TensorType
from tvm.relax.transform.convert_conv_transpose import (
    TransposedDimension,
    phases_of,
    plain_dimensions,
)

from .. import op
from ..expr import Call, Constant
from ..expr_functor import PostOrderMutator
from ..op.registry import row_of, settings_of

__all__ = ["PlainConvolutions", "plain_sizes"]


def _shapes(types: Sequence[TensorType]) -> list[list[int]]:
    return [[int(extent) for extent in type_.shape] for type_ in types]


def plain_sizes(
    types: Sequence[TensorType], out: TensorType, settings: Mapping[str, Any]
) -> tuple[TensorType, tuple[int, ...], tuple[int, ...]] | None:
    """The plain convolution that computes a transposed one of one group.

    Returns
    -------
    The type of its weights, its padding and its dilation; None where the definition stays.
    """
    shapes = _shapes([*types, out])
    dims = plain_dimensions(dict(settings), *shapes)
    if dims is None or settings["groups"] != 1:
        return None
    channels, filters = shapes[1][:2]
    for d in dims:
        filters *= d.phases
    weight = TensorType([filters, channels, *(d.taps for d in dims)], str(types[1].dtype))
    return weight, *_sizes(dims)


def _sizes(dims: Sequence[TransposedDimension]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    before, behind = zip(*(d.padding for d in dims))
    return (*before, *behind), tuple(d.dilation for d in dims)


class PlainConvolutions(PostOrderMutator):
    """Writes transposed convolutions of constant weights as plain ones whose channels, the phases
    of the result, are then interleaved.

    Parameters
    ----------
    calls : those to write so, of which :func:`plain_sizes` knows how.
    """

    def __init__(self, calls: Collection[Call]) -> None:
        super().__init__()
        self._calls = calls

    def visit_call(self, call: Call) -> RelayExpr:
        new = super().visit_call(call)
        if call not in self._calls or not isinstance(new.args[1], Constant):
            return new
        types = [arg.checked_type for arg in call.args]
        shapes = _shapes([*types, call.checked_type])
        settings = {**row_of(call.op).settings, **settings_of(call)}
        dims = plain_dimensions(settings, *shapes)
        assert dims is not None
        weight = Constant(tvm.nd.array(phases_of(new.args[1].data.numpy(), dims, 1)))
        padding, dilation = _sizes(dims)
        phases = op.nn.conv2d(
            new.args[0],
            weight,
            padding=padding,
            dilation=dilation,
            channels=int(weight.data.shape[0]),
            kernel_size=tuple(d.taps for d in dims),
            out_dtype=settings["out_dtype"],
        )
        return self._interleaved(phases, dims, shapes[2])

    def _interleaved(
        self, phases: RelayExpr, dims: Sequence[TransposedDimension], shape: Sequence[int]
    ) -> RelayExpr:
        """The result from the channels of (phases of each dimension, filters) at each period."""
        if all(d.stride == 1 for d in dims):
            return phases
        batch, filters, *sizes = shape
        places, periods = [d.phases for d in dims], [d.periods for d in dims]
        split = op.reshape(phases, (batch, *places, filters, *periods))
        absent = [d.stride - d.phases for d in dims]
        if any(absent):
            split = op.nn.pad(split, [(0, size) for size in (0, *absent, 0, 0, 0)])
        spread = op.transpose(split, (0, 3, 4, 1, 5, 2))
        whole = op.reshape(spread, (batch, filters, *(d.periods * d.stride for d in dims)))
        begin = [d.skipped for d in dims]
        end = [first + size for first, size in zip(begin, sizes)]
        return op.strided_slice(whole, begin, end, axes=[2, 3])
