"""Fourier transforms, as sums over tables of sines and cosines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from .utils import as_int, get_const_tuple, is_constant

__all__ = ["circle_tables", "dft", "stft"]


def circle_tables(size: int, dtype: str) -> tuple[te.Tensor, te.Tensor]:
    """Cosines and sines of the parts of a circle, so that none is computed twice."""
    step = 2 * math.pi / size

    def table(function: Any, name: str) -> te.Tensor:
        def part(k: Any) -> Any:
            # In double precision, which angles of long transforms need.
            return function(k.astype("float64") * tir.const(step, "float64")).astype(dtype)

        return te.compute((size,), part, name=f"T_{name}s")

    return table(tir.cos, "cosine"), table(tir.sin, "sine")


def dft(re_data: te.Tensor, im_data: te.Tensor, inverse: Any) -> tuple[te.Tensor, te.Tensor]:
    """The discrete Fourier transform of complex numbers along the last axis.

    Parameters
    ----------
    re_data, im_data : (..., n), real and imaginary parts, of one shape and type.
    inverse : whether the transform is undone, which divides by n.

    Returns
    -------
    Real and imaginary parts of the result. It takes n sums of n terms, and no fast transform.

    Raises
    ------
    ValueError : the parts have different shapes or types.
    """
    shape = get_const_tuple(re_data.shape)
    if shape != get_const_tuple(im_data.shape) or re_data.dtype != im_data.dtype or not shape:
        raise ValueError(
            f"topi.dft: real and imaginary parts have one shape of at least one axis and one type, "
            f"got {list(shape)} {re_data.dtype} and {list(im_data.shape)} {im_data.dtype}"
        )
    size, dtype = as_int(shape[-1]), re_data.dtype
    cosine, sine = circle_tables(size, dtype)
    backwards = bool(inverse)
    scale = tir.const(1.0 / size if backwards else 1.0, dtype)

    def part(name: str, term: Any) -> te.Tensor:
        axis = te.reduce_axis((0, size), name="n")

        def total(*index: Any) -> Any:
            *rest, k = index
            at = (k * axis) % size
            turn = -sine[at] if backwards else sine[at]
            values = re_data(*rest, axis), im_data(*rest, axis)
            return te.sum(scale * term(*values, cosine[at], turn), axis=axis)

        return te.compute(shape, total, name=name)

    return (
        part("T_dft_re", lambda re, im, c, s: re * c + im * s),
        part("T_dft_im", lambda re, im, c, s: im * c - re * s),
    )


def stft(
    data: te.Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
    window: te.Tensor,
    normalized: bool,
    onesided: bool,
    output_shape: Sequence[Any] | None = None,
) -> te.Tensor:
    """Fourier transforms of overlapping parts of a signal.

    ``result[b, k, m] = sum_n window[n] * data[b, m * hop + n] * exp(-2j pi k n / win_length)``

    Parameters
    ----------
    data : (length,) or (batch, length).
    n_fft : how far the parts reach, of which there is one every `hop_length` elements.
    window : (win_length,), the weights of a part's elements.
    normalized : whether results are divided by the square root of `n_fft`.
    onesided : whether only the first ``n_fft // 2 + 1`` frequencies are computed, which is all
        that real signals have.
    output_shape : of the result, if it is known already.

    Returns
    -------
    (batch, frequencies, parts, 2): real and imaginary parts; without a batch for such data.

    Raises
    ------
    ValueError : the signal is shorter than a part, or shapes do not fit.
    """
    shape = get_const_tuple(data.shape)
    if len(shape) not in (1, 2):
        raise ValueError(f"topi.stft: data has 1 or 2 axes, got {list(shape)}")
    length = shape[-1]
    # What is known only when it runs fits, as it does for every operator.
    sizes = get_const_tuple(window.shape)
    has_window = len(sizes) == 1 and (not is_constant(sizes[0]) or sizes == (win_length,))
    is_long = not is_constant(length) or n_fft <= as_int(length)
    if not has_window or not 0 < win_length <= n_fft or not is_long:
        raise ValueError(
            f"topi.stft: a window of win_length={win_length} elements lies in n_fft={n_fft} of the "
            f"signal's {length}, got a window of shape {list(window.shape)}"
        )
    if hop_length < 1:
        raise ValueError(f"topi.stft: hop_length is at least 1, got {hop_length}")
    frequencies = n_fft // 2 + 1 if onesided else n_fft
    whole = [*shape[:-1], frequencies, (length - n_fft) // hop_length + 1, 2]
    if output_shape is not None and list(get_const_tuple(output_shape)) != whole:
        raise ValueError(f"topi.stft: the result has the shape {whole}, not {list(output_shape)}")
    cosine, sine = circle_tables(win_length, data.dtype)
    scale = tir.const(1 / math.sqrt(n_fft) if normalized else 1.0, data.dtype)

    def part(name: str, turns: te.Tensor, sign: int) -> te.Tensor:
        axis = te.reduce_axis((0, win_length), name="n")

        def total(*index: Any) -> Any:
            *batch, k, m = index
            weight = window[axis].astype(data.dtype) * turns[(k * axis) % win_length]
            value = data(*batch, m * hop_length + axis) * weight
            return te.sum(value * scale * tir.const(sign, data.dtype), axis=axis)

        return te.compute(whole[:-1], total, name=name)

    re, im = part("T_stft_re", cosine, 1), part("T_stft_im", sine, -1)
    return te.compute(
        whole, lambda *i: tir.Select(i[-1] == 0, re(*i[:-1]), im(*i[:-1])), name="T_stft"
    )
