"""Fourier transforms of rows and columns, with real and imaginary parts as tensors of their own.

`relax.frontend.torch` makes those of PyTorch of them. Matrices and factors are constants, of
:func:`tvm.topi.fft_tables`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import topi
from tvm.ir import RelayExpr

from ..expr import Call, TupleGetItem, Var, const
from ..struct_info import TensorStructInfo, static_shape
from . import binary, create, grad, manipulate
from .base import make_call
from .gradients import register_gradient
from .registry import OpPattern, register
from .rules import setting

__all__ = [
    "fft_columns",
    "fft_pairs",
    "fft_rows",
    "irfft_rows",
    "rfft_halves",
    "rfft_pairs",
    "rfft_rows",
]


def rfft_rows(data: RelayExpr, matrix: RelayExpr, factors: RelayExpr, count: int) -> Call:
    """(rows, n) to two of (rows, count), see :func:`tvm.topi.rfft_rows`."""
    return make_call("fourier.rfft_rows", data, matrix, factors, count=count)


def fft_rows(
    real: RelayExpr,
    imag: RelayExpr,
    matrix: RelayExpr,
    factors: RelayExpr,
    count: int,
    sign: int,
) -> Call:
    """Two of (rows, n) to two of (rows, count), see :func:`tvm.topi.fft_rows`."""
    return make_call("fourier.fft_rows", real, imag, matrix, factors, count=count, sign=sign)


def irfft_rows(real: RelayExpr, imag: RelayExpr, matrix: RelayExpr, factors: RelayExpr) -> Call:
    """Two of (rows, n // 2 + 1) to (rows, n), see :func:`tvm.topi.irfft_rows`."""
    return make_call("fourier.irfft_rows", real, imag, matrix, factors)


def fft_columns(
    real: RelayExpr, imag: RelayExpr, count: int, sign: int, scale: float = 1.0
) -> Call:
    """Along the middle axis of (outer, n, inner), see :func:`tvm.topi.fft_columns`."""
    return make_call("fourier.fft_columns", real, imag, count=count, sign=sign, scale=scale)


def fft_pairs(
    pairs: RelayExpr, matrix: RelayExpr, factors: RelayExpr, count: int, sign: int
) -> Call:
    """(rows, 2 n) to (rows, 2 count), see :func:`tvm.topi.fft_pairs`."""
    return make_call("fourier.fft_pairs", pairs, matrix, factors, count=count, sign=sign)


def rfft_halves(data: RelayExpr, matrix: RelayExpr, factors: RelayExpr, turns: RelayExpr) -> Call:
    """(rows, n) to two of (rows, n / 2 + 1), see :func:`tvm.topi.rfft_halves`."""
    return make_call("fourier.rfft_halves", data, matrix, factors, turns)


def rfft_pairs(data: RelayExpr, matrix: RelayExpr, factors: RelayExpr, turns: RelayExpr) -> Call:
    """(rows, n) to (rows, n + 2), see :func:`tvm.topi.rfft_pairs`."""
    return make_call("fourier.rfft_pairs", data, matrix, factors, turns)


# The importer makes the ones that have gradients, `PairFourier` the others of these.
register("fourier.fft_pairs", topi.fft_pairs, OpPattern.OPAQUE, tunable=False)
register("fourier.rfft_halves", topi.rfft_halves, OpPattern.OPAQUE, tunable=False)
register("fourier.rfft_pairs", topi.rfft_pairs, OpPattern.OPAQUE, tunable=False)
register("fourier.rfft_rows", topi.rfft_rows, OpPattern.OPAQUE, tunable=False)
register("fourier.fft_rows", topi.fft_rows, OpPattern.OPAQUE, tunable=False)
register("fourier.irfft_rows", topi.irfft_rows, OpPattern.OPAQUE, tunable=False)
register("fourier.fft_columns", topi.fft_columns, OpPattern.OPAQUE, tunable=False)


# Transforms are linear: what a gradient says of the operands is the transform by the conjugate
# matrix, of the gradient with zeros behind it.


def _conjugate(table: RelayExpr, ctx: Any) -> RelayExpr:
    info = table.struct_info
    assert isinstance(info, TensorStructInfo)
    signs = np.array([1, -1]).reshape(2, 1, 1)
    return ctx.emit(binary.multiply(table, const(signs.astype(info.dtype))))


def _lengthened(g: RelayExpr, n: int, ctx: Any) -> tuple[RelayExpr, RelayExpr]:
    """Both parts of a gradient, n elements along the second axis; what nobody asked for is zero."""

    def part(k: int) -> RelayExpr:
        given: RelayExpr = ctx.emit(TupleGetItem(g, k))
        info = given.struct_info
        assert isinstance(info, TensorStructInfo)
        shape = list(static_shape(info))
        if shape[1] == n:
            return given
        shape[1] = n - shape[1]
        zeros = ctx.emit(create.zeros(shape, info.dtype))
        longer: RelayExpr = ctx.emit(manipulate.concat([given, zeros], 1))
        return longer

    return part(0), part(1)


@register_gradient("relax.fourier.rfft_rows")
def _rfft_rows(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    data, *tables = call.args
    n = static_shape(data.struct_info)[1]
    turned = [_conjugate(table, ctx) for table in tables]
    re, im = _lengthened(g, n, ctx)
    both = ctx.emit(fft_rows(re, im, turned[0], turned[1], n, 1))
    return [TupleGetItem(both, 0), *map(grad.no_grad, tables)]


@register_gradient("relax.fourier.fft_rows")
def _fft_rows(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    data, _, *tables = call.args
    n = static_shape(data.struct_info)[1]
    turned = [_conjugate(table, ctx) for table in tables]
    sign = -int(setting(call, "sign"))
    re, im = _lengthened(g, n, ctx)
    both = ctx.emit(fft_rows(re, im, turned[0], turned[1], n, sign))
    return [TupleGetItem(both, 0), TupleGetItem(both, 1), *map(grad.no_grad, tables)]


@register_gradient("relax.fourier.irfft_rows")
def _irfft_rows(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    data, _, *tables = call.args
    given = static_shape(data.struct_info)[1]
    n = static_shape(g.struct_info)[1]
    turned = [_conjugate(table, ctx) for table in tables]
    both = ctx.emit(rfft_rows(g, turned[0], turned[1], given))
    # All elements but those that are their own mirrors stand for two.
    uses = np.full((1, given), 2.0, g.struct_info.dtype)
    uses[:, 0] = 1
    if n % 2 == 0:
        uses[:, -1] = 1
    parts = [ctx.emit(TupleGetItem(both, k)) for k in range(2)]
    return [*(binary.multiply(part, const(uses)) for part in parts), *map(grad.no_grad, tables)]


@register_gradient("relax.fourier.fft_columns")
def _fft_columns(y: Var, call: Call, g: Var, ctx: Any) -> list[RelayExpr]:
    n = static_shape(call.args[0].struct_info)[1]
    re, im = _lengthened(g, n, ctx)
    sign, scale = -int(setting(call, "sign")), float(setting(call, "scale"))
    both = ctx.emit(fft_columns(re, im, n, sign, scale))
    return [TupleGetItem(both, 0), TupleGetItem(both, 1)]
