"""Products of numbers of a few bits. See :mod:`tvm.topi.nn.bitserial`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm import error, topi
from tvm.ir import RelayExpr, TensorType, Type
from tvm.topi.utils import as_int

from ...expr import Call
from ..registry import OpPattern, define, make
from ..shapes import tensor
from .windows import Size, pads_of, sizes_of

__all__ = ["bitpack", "bitserial_conv2d", "bitserial_dense"]


def _pack(data: Any, bits: int, pack_axis: int, bit_axis: int, pack_type: str, name: str) -> Any:
    return topi.nn.bitpack(data, bits, pack_axis, bit_axis, pack_type, name)


def _dense(
    data: Any,
    weight: Any,
    units: int | None,
    data_bits: int,
    weight_bits: int,
    pack_dtype: str,
    out_dtype: str,
    unipolar: bool,
) -> Any:
    _check("relay.nn.bitserial_dense", {"units": (units, weight.shape[0])})
    return topi.nn.bitserial_dense(
        data, weight, data_bits, weight_bits, pack_dtype, out_dtype, unipolar
    )


def _check(where: str, sizes: dict[str, tuple[int | None, Any]]) -> None:
    """Refuse settings that are not what the weight says."""
    for name, (given, actual) in sizes.items():
        if given is not None and as_int(given) != as_int(actual):
            raise error.ValueError(f"{where}: {name} is {given}, the weight has {actual}")


_CONVOLUTIONS = {
    "NCHW": (topi.nn.bitserial_conv2d_nchw, "OIHW"),
    "NHWC": (topi.nn.bitserial_conv2d_nhwc, "HWIO"),
}


def _conv2d(
    data: Any,
    weight: Any,
    strides: Sequence[int],
    padding: Sequence[int],
    channels: int | None,
    kernel_size: Sequence[int] | None,
    activation_bits: int,
    weight_bits: int,
    data_layout: str,
    kernel_layout: str,
    pack_dtype: str,
    out_dtype: str,
    unipolar: bool,
) -> Any:
    if data_layout not in _CONVOLUTIONS:
        raise error.ValueError(
            f"relay.nn.bitserial_conv2d: data_layout is 'NCHW' or 'NHWC', got '{data_layout}'"
        )
    compute, order = _CONVOLUTIONS[data_layout]
    if kernel_layout not in ("", order) and len(weight.shape) == 4:
        weight = topi.layout_transform(weight, kernel_layout, order)
    pads = pads_of("relay.nn.bitserial_conv2d", padding, 2)
    # Packed weights have their bits behind these axes.
    has = dict(zip(order, weight.shape))
    height, width = (None, None) if kernel_size is None else kernel_size
    _check(
        "relay.nn.bitserial_conv2d",
        {
            "channels": (channels, has["O"]),
            "kernel_size[0]": (height, has["H"]),
            "kernel_size[1]": (width, has["W"]),
        },
    )
    return compute(
        data, weight, list(strides), pads, activation_bits, weight_bits, pack_dtype, out_dtype,
        unipolar,
    )  # fmt: skip


_BITS = {"pack_dtype": "uint32", "out_dtype": "int16", "unipolar": True}
define(
    "nn.bitpack",
    _pack,
    OpPattern.INJECTIVE,
    settings={
        "bits": 1,
        "pack_axis": 1,
        "bit_axis": 2,
        "pack_type": "uint32",
        "name": "BitPack",
    },
    num_inputs=1,
)


def _dense_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data, weight = (tensor("relay.nn.bitserial_dense", t) for t in types)
    units = weight.shape[0] if s["units"] is None else s["units"]
    return TensorType([*data.shape[:-1], units], s["out_dtype"])


define(
    "nn.bitserial_dense",
    _dense,
    OpPattern.OUT_FUSABLE,
    settings={"units": None, "data_bits": 1, "weight_bits": 1, **_BITS},
    num_inputs=2,
    rule=_dense_rule,
)
define(
    "nn.bitserial_conv2d",
    _conv2d,
    OpPattern.OUT_FUSABLE,
    settings={
        "strides": (1, 1),
        "padding": (0, 0),
        "channels": None,
        "kernel_size": None,
        "activation_bits": 1,
        "weight_bits": 1,
        "data_layout": "NCHW",
        "kernel_layout": "OIHW",
        **_BITS,
    },
    num_inputs=2,
)


def bitpack(
    data: RelayExpr,
    bits: int = 1,
    pack_axis: int = 1,
    bit_axis: int = 2,
    pack_type: str = "uint32",
    name: str = "BitPack",
) -> Call:
    """Bits of neighbours as words; see :func:`tvm.topi.nn.bitpack`."""
    return make(
        "nn.bitpack", [data], bits=bits, pack_axis=pack_axis, bit_axis=bit_axis,
        pack_type=pack_type, name=name,
    )  # fmt: skip


def bitserial_conv2d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = (1, 1),
    padding: Size = (0, 0),
    channels: int | None = None,
    kernel_size: Size | None = None,
    activation_bits: int = 1,
    weight_bits: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Call:
    """A convolution of numbers of a few bits; see :func:`tvm.topi.nn.bitserial_conv2d_nchw`.

    Parameters
    ----------
    channels, kernel_size : those of the weight, if they are left out.
    data_layout : "NCHW", or "NHWC" with kernels "HWIO".

    Raises
    ------
    ValueError : `channels` or `kernel_size` is not what the weight has, told when it is built.
    """
    return make(
        "nn.bitserial_conv2d",
        [data, weight],
        strides=sizes_of(strides, 2),
        padding=tuple(pads_of("relay.nn.bitserial_conv2d", padding, 2)),
        channels=channels,
        kernel_size=None if kernel_size is None else sizes_of(kernel_size, 2),
        activation_bits=activation_bits,
        weight_bits=weight_bits,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        pack_dtype=pack_dtype,
        out_dtype=out_dtype,
        unipolar=unipolar,
    )


def bitserial_dense(
    data: RelayExpr,
    weight: RelayExpr,
    units: int | None = None,
    data_bits: int = 1,
    weight_bits: int = 1,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Call:
    """``data @ weight.T`` of numbers of a few bits; see :func:`tvm.topi.nn.bitserial_dense`.

    Raises
    ------
    ValueError : `units` is not the number of rows of the weight, told when it is built.
    """
    return make(
        "nn.bitserial_dense", [data, weight], units=units, data_bits=data_bits,
        weight_bits=weight_bits, pack_dtype=pack_dtype, out_dtype=out_dtype, unipolar=unipolar,
    )  # fmt: skip
