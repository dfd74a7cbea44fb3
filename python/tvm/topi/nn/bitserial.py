"""Products of numbers of a few bits, one bit of each at a time.

The bits of many neighbours are one word, so that ``popcount(a & w)`` sums as many products. See
Cowan et al., "Automating generation of low precision deep learning operators", 2018.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from ..utils import as_int, get_const_tuple
from .pad import pad
from .utils import get_pad_tuple

__all__ = ["bitpack", "bitserial_conv2d_nchw", "bitserial_conv2d_nhwc", "bitserial_dense"]

_WIDTHS = {"uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


def bitpack(
    data: te.Tensor,
    bits: int,
    pack_axis: int,
    bit_axis: int,
    pack_type: str,
    name: str = "QuantizeInput",
) -> te.Tensor:
    """Bits of neighbours as words, the bit of the first neighbour highest.

    Parameters
    ----------
    data : integers that are not negative.
    bits : how many of the lowest bits of each are kept.
    pack_axis : whose neighbours, as many as a word has bits, share words.
    bit_axis : where the result has the dimension of bits, the lowest first; -1 for the end.
    pack_type : "uint8", "uint16", "uint32" or "uint64".

    Raises
    ------
    ValueError : the type is another one, or its bits do not divide the extent of `pack_axis`.
    """
    if pack_type not in _WIDTHS:
        raise ValueError(
            f"topi.nn.bitpack: pack_type must be one of {', '.join(_WIDTHS)}, got {pack_type}"
        )
    width = _WIDTHS[pack_type]
    shape = list(get_const_tuple(data.shape))
    at = pack_axis % len(shape)
    if as_int(shape[at]) % width:
        raise ValueError(
            f"topi.nn.bitpack: words of {width} bits do not divide {shape[at]} elements"
        )
    shape[at] = as_int(shape[at]) // width
    where = bit_axis % (len(shape) + 1)
    shape.insert(where, bits)

    def word(*place: Any) -> Any:
        inside = list(place)
        bit = inside.pop(where).astype("uint32")
        packed = tir.const(0, pack_type)
        for neighbour in range(width):
            index = list(inside)
            index[at] = inside[at] * width + neighbour
            value = (data(*index).astype("uint32") >> bit) & tir.const(1, "uint32")
            shift = tir.const(width - 1 - neighbour, pack_type)
            packed = packed | (value.astype(pack_type) << shift)
        return packed

    return te.compute(shape, word, name=name, tag="bitpack")


def _matched(a: Any, w: Any, shift: Any, unipolar: bool, out_dtype: str) -> Any:
    """Products of the bits of two words, weighed by the places of the bits.

    A bit of a unipolar weight is 1 or -1, of any other one 1 or 0.
    """
    found = tir.popcount(a & w).astype(out_dtype)
    if unipolar:
        found = found - tir.popcount(a & ~w).astype(out_dtype)
    return found << shift.astype(out_dtype)


def bitserial_dense(
    data: te.Tensor,
    weight: te.Tensor,
    data_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> te.Tensor:
    """``data @ weight.T`` of numbers of a few bits.

    Parameters
    ----------
    data : (m, k), of which the lowest `data_bits` count.
    weight : (n, k), or the words of :func:`bitpack` of it, (n, weight_bits, words).
    unipolar : whether bits of weights are 1 and -1, instead of 1 and 0.

    Raises
    ------
    ValueError : a word's bits do not divide k, or the words are others.
    """
    words = bitpack(data, data_bits, 1, 1, pack_dtype)
    weights = weight
    if len(weight.shape) == 2:
        weights = bitpack(weight, weight_bits, 1, 1, pack_dtype, "QuantizeWeight")
    m, _, count = get_const_tuple(words.shape)
    n, planes, other = get_const_tuple(weights.shape)
    if (planes, other) != (weight_bits, count):
        raise ValueError(
            f"topi.nn.bitserial_dense: {weight_bits} bits of {count} words are needed of each row "
            f"of the weight, got {list(weights.shape)}"
        )
    k = te.reduce_axis((0, count), "k")
    a, w = te.reduce_axis((0, data_bits), "a"), te.reduce_axis((0, weight_bits), "w")
    return te.compute(
        (m, n),
        lambda i, j: te.sum(
            _matched(words[i, a, k], weights[j, w, k], a + w, unipolar, out_dtype), axis=[a, w, k]
        ),
        name="T_bitserial_dense",
        tag="bitserial_dense_unipolar" if unipolar else "bitserial_dense",
    )


def _conv2d(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: Any,
    padding: Any,
    in_bits: int,
    weight_bits: int,
    pack_dtype: str,
    out_dtype: str,
    unipolar: bool,
    layout: str,
) -> te.Tensor:
    """The convolution over words: data (n, h, w, bits, words), kernel (h, w, o, bits, words)."""
    where = f"topi.nn.bitserial_conv2d_{layout.lower()}"
    channels = layout.index("C")
    kernel_layout = "OIHW" if layout == "NCHW" else "HWIO"
    inner = kernel_layout.index("I")
    words = bitpack(data, in_bits, channels, 4, pack_dtype)
    weights = kernel
    if len(kernel.shape) == 4:
        weights = bitpack(kernel, weight_bits, inner, 4, pack_dtype, "QuantizeWeight")
    shape = dict(zip(layout, get_const_tuple(words.shape)))
    sizes = dict(zip(kernel_layout, get_const_tuple(weights.shape)))
    if sizes["I"] != shape["C"] or as_int(weights.shape[4]) != weight_bits:
        raise ValueError(
            f"{where}: {shape['C']} words of {weight_bits} bits are needed of each place of the "
            f"kernel, got {list(weights.shape)}"
        )
    height, width = as_int(sizes["H"]), as_int(sizes["W"])
    steps = [stride, stride] if isinstance(stride, int) else list(stride)
    top, left, bottom, right = get_pad_tuple(padding, (height, width))
    before, after = [0] * 5, [0] * 5
    for axis, low, high in (("H", top, bottom), ("W", left, right)):
        before[layout.index(axis)], after[layout.index(axis)] = as_int(low), as_int(high)
    padded = pad(words, before, after, name="PaddedInput")
    rows = (as_int(shape["H"]) + as_int(top) + as_int(bottom) - height) // steps[0] + 1
    columns = (as_int(shape["W"]) + as_int(left) + as_int(right) - width) // steps[1] + 1
    out = {"N": shape["N"], "C": sizes["O"], "H": rows, "W": columns}
    c = te.reduce_axis((0, as_int(shape["C"])), "c")
    dh, dw = te.reduce_axis((0, height), "dh"), te.reduce_axis((0, width), "dw")
    a, b = te.reduce_axis((0, in_bits), "a"), te.reduce_axis((0, weight_bits), "b")

    def element(*place: Any) -> Any:
        at = dict(zip(layout, place))
        source = {"N": at["N"], "C": c, "H": at["H"] * steps[0] + dh, "W": at["W"] * steps[1] + dw}
        tap = {"O": at["C"], "I": c, "H": dh, "W": dw}
        x = padded(*[source[axis] for axis in layout], a)
        w = weights(*[tap[axis] for axis in kernel_layout], b)
        return te.sum(_matched(x, w, a + b, unipolar, out_dtype), axis=[c, dh, dw, a, b])

    return te.compute(
        [out[axis] for axis in layout],
        element,
        name="Conv2dOutput",
        tag=f"bitserial_conv2d_{layout.lower()}",
    )


def bitserial_conv2d_nchw(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: int | Sequence[int],
    padding: Any,
    in_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> te.Tensor:
    """A convolution of numbers of a few bits.

    Parameters
    ----------
    data : (n, channels, height, width), of which the lowest `in_bits` count; zeros around it.
    kernel : (o, channels, height, width), or the words of :func:`bitpack` of its second dimension,
        with the bits last.
    unipolar : whether bits of weights are 1 and -1, instead of 1 and 0.

    Raises
    ------
    ValueError : a word's bits do not divide the channels, or the words are others.
    """
    return _conv2d(
        data, kernel, stride, padding, in_bits, weight_bits, pack_dtype, out_dtype, unipolar, "NCHW"
    )


def bitserial_conv2d_nhwc(
    data: te.Tensor,
    kernel: te.Tensor,
    stride: int | Sequence[int],
    padding: Any,
    activation_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> te.Tensor:
    """:func:`bitserial_conv2d_nchw` of data (n, height, width, channels) and kernels (height,
    width, channels, o)."""
    return _conv2d(
        data, kernel, stride, padding, activation_bits, weight_bits, pack_dtype, out_dtype,
        unipolar, "NHWC",
    )  # fmt: skip
