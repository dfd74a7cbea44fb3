"""Fourier transforms, products of fixed-point numbers, and places in sparse tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm import error, relax, topi
from tvm.ir import RelayExpr, TensorType, TupleType, Type
from tvm.relax.struct_info import static_shape

from ..expr import Call, TupleWrapper, const
from ..ty import Any as AnyExtent
from .registry import REQUIRED, OpPattern, define, make, register_own
from .reshaping import ones
from .shapes import tensor

__all__ = [
    "dft",
    "fixed_point_multiply_per_axis",
    "sparse_fill_empty_rows",
    "sparse_reshape",
    "stft",
]


def _dft(re_data: Any, im_data: Any, inverse: bool) -> list[Any]:
    return list(topi.dft(re_data, im_data, inverse))


define("dft", _dft, settings={"inverse": REQUIRED}, num_inputs=2)
# Numbers of the table beyond which transforms are summed up as they are defined.
_LARGEST_TABLE = 1 << 21


def _stft(data: Any, window: Any, **s: Any) -> Any:
    return topi.stft(
        data, s["n_fft"], s["hop_length"], s["win_length"], window, s["normalized"], s["onesided"]
    )


def _stft_in_relax(args: Sequence[RelayExpr], s: Mapping[str, Any]) -> RelayExpr:
    """The parts as rows of a matrix, times the cosines and sines of every frequency."""
    data, window = args
    *batch, length = static_shape(data.struct_info)
    size, frequencies = s["win_length"], s["n_fft"] // 2 + 1 if s["onesided"] else s["n_fft"]
    # What does not fit is refused by the definition.
    fits = size <= s["n_fft"] <= length and static_shape(window.struct_info) == (size,)
    is_small = 2 * size * frequencies <= _LARGEST_TABLE
    if not fits or not is_small or str(data.struct_info.dtype) != "float32":
        return relax.op.make_call("relay.stft", *args, **s)
    parts = (length - s["n_fft"]) // s["hop_length"] + 1
    places = np.arange(parts)[:, None] * s["hop_length"] + np.arange(size)
    rows = relax.op.reshape(
        relax.op.take(data, relax.const(places.reshape(-1), "int64"), len(batch)), (-1, size)
    )
    turns = np.outer(np.arange(size), np.arange(frequencies)) % size * (2 * np.pi / size)
    scale = s["n_fft"] ** -0.5 if s["normalized"] else 1.0
    table = np.stack([np.cos(turns), -np.sin(turns)], -1).reshape(size, -1) * scale
    weighted = relax.op.multiply(rows, relax.op.astype(window, "float32"))
    product = relax.op.matmul(weighted, relax.const(table.astype("float32")))
    whole = relax.op.reshape(product, (*batch, parts, frequencies, 2))
    axes = list(range(len(batch)))
    return relax.op.permute_dims(whole, [*axes, *(len(batch) + k for k in (1, 0, 2))])


_STFT_SETTINGS = {
    "n_fft": REQUIRED,
    "hop_length": REQUIRED,
    "win_length": REQUIRED,
    "normalized": False,
    "onesided": True,
}
register_own("stft", _stft, OpPattern.OPAQUE, _STFT_SETTINGS)
define("stft", _stft, settings=_STFT_SETTINGS, lower=_stft_in_relax, num_inputs=2)
define(
    "fixed_point_multiply_per_axis",
    lambda x, m, left, right, axes, **s: topi.fixed_point_multiply_per_axis(
        x, m, left, right, tuple(axes)
    ),
    OpPattern.BROADCAST,
    settings={"axes": REQUIRED, "is_lshift_required": False, "is_rshift_required": False},
    num_inputs=4,
)


def dft(re_data: RelayExpr, im_data: RelayExpr, inverse: bool = False) -> TupleWrapper:
    """Real and imaginary parts of the Fourier transform along the last axis."""
    return TupleWrapper(make("dft", [re_data, im_data], inverse=bool(inverse)), 2)


def stft(
    data: RelayExpr,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: RelayExpr | None = None,
    normalized: bool = False,
    onesided: bool = True,
) -> Call:
    """Fourier transforms of overlapping parts of a signal; see :func:`tvm.topi.stft`.

    Parameters
    ----------
    hop_length : a quarter of `n_fft` by default. win_length : `n_fft` by default.
    window : (win_length,), ones by default.
    """
    length = n_fft if win_length is None else win_length
    return make(
        "stft",
        [data, ones((length,), "int32") if window is None else window],
        n_fft=n_fft,
        hop_length=n_fft // 4 if hop_length is None else hop_length,
        win_length=length,
        normalized=bool(normalized),
        onesided=bool(onesided),
    )


def fixed_point_multiply_per_axis(
    x: RelayExpr,
    multiplier: RelayExpr,
    lshift: RelayExpr,
    rshift: RelayExpr,
    is_lshift_required: bool,
    is_rshift_required: bool,
    axes: Sequence[int],
) -> Call:
    """x * multiplier * 2 ** (lshift - rshift - 31) in integers, for each index of some axes.

    Parameters
    ----------
    is_lshift_required, is_rshift_required : whether the shifts may be other than zero, which is
        said for other compilers; the shifts are applied.
    """
    return make(
        "fixed_point_multiply_per_axis",
        [x, multiplier, lshift, rshift],
        axes=tuple(axes),
        is_lshift_required=bool(is_lshift_required),
        is_rshift_required=bool(is_rshift_required),
    )


def _reshape_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    places = tensor("relay.sparse_reshape", types[0], "sparse_indices")
    before = tensor("relay.sparse_reshape", types[1], "prev_shape")
    after = tensor("relay.sparse_reshape", types[2], "new_shape")
    if len(places.shape) != 2 or len(before.shape) != 1 or len(after.shape) != 1:
        raise error.ValueError(
            "relay.sparse_reshape: takes places (n, rank) and two shapes as vectors"
        )
    indices = TensorType([places.shape[0], after.shape[0]], str(places.dtype))
    return TupleType([indices, TensorType(after.shape, str(after.dtype))])


def _reshaped(arrays: Sequence[Any], s: Mapping[str, Any]) -> Any:
    places, before, after = arrays
    shape, size = [int(e) for e in after], int(np.prod(before))
    if -1 in shape:
        rest = -int(np.prod(shape))
        shape[shape.index(-1)] = size // rest if rest else 0
    if int(np.prod(shape)) != size:
        raise error.ValueError(
            f"relay.sparse_reshape: {list(before)} has other elements than {list(after)}"
        )
    if shape == [int(e) for e in before]:
        return places, np.array(shape, after.dtype)
    # The products of extents behind each one: places count by them, whatever extent is in front.
    weights, divisors = (
        np.append(np.cumprod(np.asarray(extents, "int64")[:0:-1])[::-1], 1)
        for extents in (before, shape)
    )
    rest = places.astype("int64") @ weights
    moved = np.empty((len(places), len(shape)), places.dtype)
    for axis, divisor in enumerate(divisors):
        moved[:, axis], rest = rest // divisor, rest % divisor
    return moved, np.array(shape, after.dtype)


define("sparse_reshape", None, num_inputs=3, rule=_reshape_rule, host=_reshaped)


def sparse_reshape(
    sparse_indices: RelayExpr, prev_shape: RelayExpr, new_shape: RelayExpr
) -> TupleWrapper:
    """Places of elements in a sparse tensor of another shape, and that shape without a -1.

    Parameters
    ----------
    sparse_indices : (n, rank), places in a tensor of shape `prev_shape`.
    new_shape : at most one extent is -1, which the others determine.
    """
    return TupleWrapper(make("sparse_reshape", [sparse_indices, prev_shape, new_shape]), 2)


def _fill_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    where = "relay.sparse_fill_empty_rows"
    places = tensor(where, types[0], "sparse_indices")
    values, shape = tensor(where, types[1], "sparse_values"), tensor(where, types[2], "dense_shape")
    some = AnyExtent()
    return TupleType(
        [
            TensorType([some, shape.shape[0]], str(places.dtype)),
            TensorType([some], str(values.dtype)),
            TensorType([AnyExtent()], "bool"),
        ]
    )


def _filled(arrays: Sequence[Any], s: Mapping[str, Any]) -> Any:
    places, values, shape, default = arrays
    rows = int(shape[0])
    empty = np.ones(rows, bool)
    empty[places[:, 0]] = False
    added = np.zeros((int(empty.sum()), places.shape[1]), places.dtype)
    added[:, 0] = np.flatnonzero(empty)
    filler = np.full(len(added), np.reshape(default, ())[()], values.dtype)
    whole, all_values = np.concatenate([places, added]), np.concatenate([values, filler])
    order = np.argsort(whole[:, 0], kind="stable")
    return whole[order], all_values[order], empty


define("sparse_fill_empty_rows", None, num_inputs=4, rule=_fill_rule, host=_filled)


def sparse_fill_empty_rows(
    sparse_indices: RelayExpr,
    sparse_values: RelayExpr,
    dense_shape: RelayExpr,
    default_value: Any,
) -> TupleWrapper:
    """Places and values with one more, in the first column, for each row without any; which rows
    had none.

    Parameters
    ----------
    sparse_indices : (n, rank), sorted by rows. sparse_values : (n,).
    dense_shape : of the tensor. default_value : what is put there, a number or an expression.
    """
    if not isinstance(default_value, RelayExpr):
        default_value = const(default_value)
    call = make(
        "sparse_fill_empty_rows", [sparse_indices, sparse_values, dense_shape, default_value]
    )
    return TupleWrapper(call, 3)
