"""Convolutions, and the gradients that transposed ones are."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import error, relax, topi
from tvm.ir import RelayExpr, TensorType, Type
from tvm.relax.op.precision import accumulated_in_float32
from tvm.topi.nn.conv3d_winograd import (
    conv3d_winograd_weight_transform,
    conv3d_winograd_without_weight_transform,
)

from ...expr import Call
from ..registry import REQUIRED, OpPattern, define, make, register_own
from ..shapes import extent_number, sums_bytes, tensor
from .windows import Blocked, Size, pads_of, sizes_of, window_extent

__all__ = [
    "contrib_conv2d_nchwc",
    "contrib_conv3d_winograd_weight_transform",
    "contrib_conv3d_winograd_without_weight_transform",
    "contrib_depthwise_conv2d_nchwc",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
]

_SPACE = {1: "W", 2: "HW", 3: "DHW"}


def _layouts(where: str, rank: int, s: Mapping[str, Any]) -> tuple[Blocked, Blocked, Blocked]:
    plain = "NC" + _SPACE[rank]
    data = Blocked(where, s["data_layout"], plain)
    kernel = Blocked(where, s["kernel_layout"], "OI" + _SPACE[rank])
    return data, kernel, Blocked(where, s["out_layout"] or s["data_layout"], plain)


def _channels(s: Mapping[str, Any]) -> int | None:
    return None if s["channels"] is None else int(s["channels"])


def _weight_shape(
    where: str, rank: int, data: TensorType, s: Mapping[str, Any], transposed: bool
) -> list[Any] | None:
    """The plain shape of weights that follows from the data and the settings."""
    if s["kernel_size"] is None or s["channels"] is None:
        return None
    data_layout = _layouts(where, rank, s)[0]
    channels = data_layout.forward(data.shape, where)[1]
    number = extent_number(channels)
    channels = channels if number is None else number
    kernel, groups = sizes_of(s["kernel_size"], rank), s["groups"]
    if transposed:
        return [channels, s["channels"] // groups, *kernel]
    if number is None:
        return [s["channels"], channels if groups == 1 else channels // groups, *kernel]
    return [s["channels"], number // groups, *kernel]


def _fill(rank: int, name: str, transposed: bool) -> Any:
    where = f"relay.{name}"

    def fill(types: Sequence[Type | None], s: Mapping[str, Any]) -> list[Type | None]:
        data, weight = types
        if weight is None and isinstance(data, TensorType):
            plain = _weight_shape(where, rank, data, s, transposed)
            if plain is not None:
                layout = _kernel_layout(where, rank, s, transposed)
                weight = TensorType(layout.backward(plain), str(data.dtype))
        return [data, weight]

    return fill


def _kernel_layout(where: str, rank: int, s: Mapping[str, Any], transposed: bool) -> Blocked:
    order = "IO" if transposed else "OI"
    return Blocked(where, s["kernel_layout"], order + _SPACE[rank])


def _has_filters_by_channel(
    rank: int, s: Mapping[str, Any], channels: Any, outer: Any, inner: Any
) -> bool:
    """Whether weights of a depthwise convolution are (channels, filters of each, window...)."""
    if s["kernel_layout"] != "OI" + _SPACE[rank] or s["groups"] == 1:
        return False
    known = [extent_number(extent) for extent in (channels, outer, inner)]
    return known[:2] == [s["groups"]] * 2 and known[2] not in (None, 1)


def _rule(rank: int, name: str) -> Any:
    where = f"relay.{name}"

    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        data, weight = tensor(where, types[0]), tensor(where, types[1], "weight")
        layout, kernel, out = _layouts(where, rank, s)
        batch, channels, *space = layout.forward(data.shape, where)
        out_channels, in_channels, *window = kernel.forward(weight.shape, where)
        if s["kernel_layout"] in ("HWOI", "WOI") and s["groups"] > 1:
            # Channels, then the filters of each of them.
            out_channels, in_channels = out_channels * in_channels, 1
        if _has_filters_by_channel(rank, s, channels, out_channels, in_channels):
            out_channels, in_channels = out_channels * in_channels, 1
        given, groups = extent_number(channels), s["groups"]
        wanted = extent_number(in_channels)
        if given is not None and wanted is not None and given != wanted * groups:
            raise error.ValueError(
                f"{where}: data of {given} channels in {groups} groups does not fit weights of "
                f"{wanted} input channels"
            )
        if _channels(s) is not None and extent_number(out_channels) not in (None, _channels(s)):
            raise error.ValueError(
                f"{where}: channels={_channels(s)}, the weights have {out_channels}"
            )
        if s["kernel_size"] is not None:
            sizes = sizes_of(s["kernel_size"], rank)
            known = [extent_number(w) for w in window]
            if any(k is not None and k != size for k, size in zip(known, sizes)):
                raise error.ValueError(f"{where}: kernel_size={sizes}, the weights have {window}")
        pads = pads_of(where, s["padding"], rank)
        strides, dilation = sizes_of(s["strides"], rank), sizes_of(s["dilation"], rank)
        places = [
            window_extent(size, w, strides[k], pads[k] + pads[k + rank], dilation[k])
            for k, (size, w) in enumerate(zip(space, window))
        ]
        shape = out.backward([batch, out_channels, *places])
        return TensorType(shape, s["out_dtype"] or str(data.dtype))

    return rule


def _compute(rank: int) -> Any:
    plain, order = "NC" + _SPACE[rank], "OI" + _SPACE[rank]
    direct: Callable[..., Any] = getattr(topi.nn, f"conv{rank}d")
    supported = {plain, "N" + _SPACE[rank] + "C"}

    def run(x: Any, w: Any, **s: Any) -> Any:
        settings = {
            "strides": list(s["strides"]),
            "padding": list(s["padding"]),
            "dilation": list(s["dilation"]),
            "groups": s["groups"],
            "out_dtype": s["out_dtype"] or None,
        }
        data_layout, kernel_layout = s["data_layout"], s["kernel_layout"]
        if "C" in data_layout and _has_filters_by_channel(
            rank, s, x.shape[data_layout.index("C")], *w.shape[:2]
        ):
            w = topi.reshape(w, [w.shape[0] * w.shape[1], 1, *w.shape[2:]])
        blocked = _in_blocks(rank, x, w, s)
        if blocked is not None:
            return blocked
        if data_layout not in supported:
            x = topi.layout_transform(x, data_layout, plain)
            data_layout = plain
        if kernel_layout != order and (data_layout != s["data_layout"] or len(w.shape) != rank + 2):
            w = topi.layout_transform(w, kernel_layout, order)
            kernel_layout = order
        out = direct(x, w, data_layout=data_layout, kernel_layout=kernel_layout, **settings)
        wanted = s["out_layout"] or s["data_layout"]
        return out if wanted == data_layout else topi.layout_transform(out, data_layout, wanted)

    return accumulated_in_float32(run)


def _in_blocks(rank: int, x: Any, w: Any, s: Mapping[str, Any]) -> Any:
    """The convolution over blocks as they stand; None for layouts that topi has no program for."""
    space = _SPACE[rank]
    data = re.fullmatch(rf"NC{space}(\d+)c", s["data_layout"])
    kernel = re.fullmatch(rf"OI{space}(\d+)i(\d+)o", s["kernel_layout"])
    if rank == 1 or data is None or kernel is None:
        return None
    depthwise = s["groups"] > 1
    if depthwise and rank == 3:
        return None
    lanes = int(data[1])
    if kernel.groups() != ("1", data[1]) if depthwise else kernel[1] != data[1]:
        return None
    if depthwise and s["groups"] != topi.utils.get_const_int(x.shape[1]) * lanes:
        return None
    if (s["out_layout"] or s["data_layout"]) != f"NC{space}{kernel[2]}c":
        return None
    plain: Callable[..., Any] = topi.nn.conv2d_NCHWc if rank == 2 else topi.nn.conv3d_NCDHWc
    compute: Callable[..., Any] = topi.nn.depthwise_conv2d_NCHWc if depthwise else plain
    sizes = [list(s[key]) for key in ("strides", "padding", "dilation")]
    return compute(x, w, *sizes, s["out_dtype"] or None)


def _settings(rank: int, kernel_layout: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "strides": (1,) * rank,
        "padding": (0,) * rank,
        "dilation": (1,) * rank,
        "groups": 1,
        "channels": None,
        "kernel_size": None,
        "data_layout": "NC" + _SPACE[rank],
        "kernel_layout": kernel_layout or "OI" + _SPACE[rank],
        "out_layout": "",
        **more,
        "out_dtype": "",
    }


def permuted(value: RelayExpr, layout: str, wanted: str) -> RelayExpr:
    """A value of relax in another order of its axes, which the layouts name by letters."""
    if layout == wanted:
        return value
    axes = [layout.index(letter) for letter in wanted]
    if isinstance(value, relax.Constant):
        return value.rearranged(lambda array: array.transpose(axes))
    return relax.op.permute_dims(value, axes)


def _in_front(
    rank: int, args: Sequence[RelayExpr], s: Mapping[str, Any], kernel: str
) -> tuple[list[RelayExpr], Mapping[str, Any], str] | None:
    """Operands and settings with channels in front, which relax has fast forms for, and the layout
    of the result; None for layouts in blocks.

    Parameters
    ----------
    kernel : the layout of the weights then.
    """
    front = "NC" + _SPACE[rank]
    layouts = [s["data_layout"], s["out_layout"] or s["data_layout"], s["kernel_layout"]]
    orders = [front, front, kernel]
    if [sorted(layout) for layout in layouts] != [sorted(order) for order in orders]:
        return None
    operands = [permuted(args[0], layouts[0], front), permuted(args[1], layouts[2], kernel)]
    settings = {"data_layout": front, "kernel_layout": kernel, "out_layout": ""}
    return operands, {**s, **settings}, layouts[1]


def _in_relax(rank: int) -> Any:
    # Channels that come last stay there where relax has kernels for that.
    front = "NC" + _SPACE[rank]
    plain = (front, "NHWC") if rank == 2 else (front,)
    direct = {1: relax.op.nn.conv1d, 2: relax.op.nn.conv2d, 3: relax.op.nn.conv3d}[rank]

    def lower(args: Sequence[RelayExpr], s: Mapping[str, Any]) -> RelayExpr:
        if sums_bytes(args, s["out_dtype"]):
            # Written so that relax finds a product of bytes, and brings it into the form for which
            # there are instructions.
            args = [relax.op.astype(arg, "int32") for arg in args]
        data, weight = (arg.struct_info.shape.values for arg in args)
        if "C" in s["data_layout"] and _has_filters_by_channel(
            rank, s, data[s["data_layout"].index("C")], *weight[:2]
        ):
            merged = [weight[0] * weight[1], 1, *weight[2:]]
            args = [args[0], relax.op.reshape(args[1], merged)]
        dtypes = {str(arg.struct_info.dtype) for arg in args}
        own = len(weight) != rank + 2 or len(dtypes) > 1
        result_layout = out_layout = s["out_layout"]
        if not own and s["data_layout"] not in plain:
            found = _in_front(rank, args, s, "OI" + _SPACE[rank])
            own = found is None
            if found is not None:
                args, s, result_layout = found
                out_layout = front
        if own:
            return relax.op.make_call(f"relay.nn.conv{rank}d", *args, **s)
        result = direct(
            args[0],
            args[1],
            s["strides"],
            s["padding"],
            s["dilation"],
            s["groups"],
            s["data_layout"],
            s["kernel_layout"],
            s["out_layout"] or None,
            s["out_dtype"] or None,
        )
        return permuted(result, out_layout, result_layout)

    return lower


for _rank in (1, 2, 3):
    _name = f"nn.conv{_rank}d"
    register_own(_name, _compute(_rank), OpPattern.OUT_FUSABLE, _settings(_rank))
    define(
        _name,
        _compute(_rank),
        OpPattern.OUT_FUSABLE,
        settings=_settings(_rank),
        rule=_rule(_rank, _name),
        fill=_fill(_rank, _name, False),
        lower=_in_relax(_rank),
        num_inputs=2,
    )


def _blocks_named(s: Mapping[str, Any], weight_shape: Sequence[Any]) -> Mapping[str, Any]:
    """The settings, with the blocks of weights of six axes in the layout that leaves them out."""
    if s["kernel_layout"] != "OIHW" or len(weight_shape) != 6:
        return s
    inputs, outputs = (extent_number(extent) for extent in weight_shape[4:])
    if inputs is None or outputs is None:
        return s
    return {**s, "kernel_layout": f"OIHW{inputs}i{outputs}o"}


def _blocked_rule(name: str) -> Any:
    rule = _rule(2, name)

    def named(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        weight = tensor(f"relay.{name}", types[1], "weight")
        return rule(types, _blocks_named(s, weight.shape), args)

    return named


def _blocked_compute() -> Any:
    compute = _compute(2)

    def run(x: Any, w: Any, **s: Any) -> Any:
        return compute(x, w, **_blocks_named(s, w.shape))

    return run


for _name in ("nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc"):
    define(
        _name,
        _blocked_compute(),
        OpPattern.OUT_FUSABLE,
        settings=_settings(2),
        rule=_blocked_rule(_name),
        fill=_fill(2, _name, False),
        num_inputs=2,
    )


def _conv(
    rank: int,
    name: str,
    data: RelayExpr,
    weight: RelayExpr,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    channels: Any,
    kernel_size: Any,
    **more: Any,
) -> Call:
    return make(
        name,
        [data, weight],
        strides=sizes_of(strides, rank),
        padding=pads_of(f"relay.{name}", padding, rank),
        dilation=sizes_of(dilation, rank),
        groups=groups,
        channels=None if channels is None else extent_number(channels),
        kernel_size=None if kernel_size is None else sizes_of(kernel_size, rank),
        **more,
    )


def conv1d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = 1,
    padding: Size = 0,
    dilation: Size = 1,
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Size | None = None,
    data_layout: str = "NCW",
    kernel_layout: str = "",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Convolution over one spatial axis; arguments as in :func:`conv2d`."""
    default = "OIW" if data_layout == "NCW" else "WIO"
    return _conv(
        1,
        "nn.conv1d",
        data,
        weight,
        strides,
        padding,
        dilation,
        groups,
        channels,
        kernel_size,
        data_layout=data_layout,
        kernel_layout=kernel_layout or default,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )


def conv2d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = (1, 1),
    padding: Size = (0, 0),
    dilation: Size = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Size | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Two-dimensional convolution.

    Parameters
    ----------
    padding : one size, (height, width), or (top, left, bottom, right).
    channels, kernel_size : of the weights, which need no type of their own then.
    data_layout, kernel_layout, out_layout : such as NCHW with OIHW, NHWC with HWIO, or NCHW16c with
        OIHW16i16o; the result is laid out as the data by default.
    out_dtype : element type of sums and result; that of the data by default.

    Raises
    ------
    ValueError : a wrong number of sizes; when its type is inferred, channels that do not fit.
    """
    return _conv(
        2,
        "nn.conv2d",
        data,
        weight,
        strides,
        padding,
        dilation,
        groups,
        channels,
        kernel_size,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )


def conv3d(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = (1, 1, 1),
    padding: Size = (0, 0, 0),
    dilation: Size = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Size | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Convolution over three spatial axes; arguments as in :func:`conv2d`."""
    return _conv(
        3,
        "nn.conv3d",
        data,
        weight,
        strides,
        padding,
        dilation,
        groups,
        channels,
        kernel_size,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )


def contrib_conv2d_nchwc(
    data: RelayExpr,
    kernel: RelayExpr,
    strides: Size = (1, 1),
    padding: Size = (0, 0),
    dilation: Size = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Size | None = None,
    data_layout: str = "NCHW8c",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Convolution of data whose channels are in blocks; arguments as in :func:`conv2d`.

    The layout of a `kernel` of six axes, (O, I, height, width, i, o), may leave the blocks out.
    """
    return _conv(
        2,
        "nn.contrib_conv2d_NCHWc",
        data,
        kernel,
        strides,
        padding,
        dilation,
        groups,
        channels,
        kernel_size,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )


def contrib_depthwise_conv2d_nchwc(
    data: RelayExpr,
    kernel: RelayExpr,
    strides: Size = (1, 1),
    padding: Size = (0, 0),
    dilation: Size = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Size | None = None,
    data_layout: str = "NCHW8c",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Depthwise convolution of data whose channels are in blocks.

    See :func:`contrib_conv2d_nchwc`.
    """
    return _conv(
        2,
        "nn.contrib_depthwise_conv2d_NCHWc",
        data,
        kernel,
        strides,
        padding,
        dilation,
        groups,
        channels,
        kernel_size,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )


def _transpose_rule(rank: int, name: str) -> Any:
    where = f"relay.{name}"

    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        data, weight = tensor(where, types[0]), tensor(where, types[1], "weight")
        layout = Blocked(where, s["data_layout"], "NC" + _SPACE[rank])
        out = Blocked(where, s["out_layout"] or s["data_layout"], "NC" + _SPACE[rank])
        batch, channels, *space = layout.forward(data.shape, where)
        kernel = _kernel_layout(where, rank, s, True).forward(weight.shape, where)
        in_channels, per_group, *window = kernel
        a, b = extent_number(channels), extent_number(in_channels)
        if a is not None and b is not None and a != b:
            raise error.ValueError(
                f"{where}: data of {a} channels does not fit weights of {b} input channels"
            )
        pads = pads_of(where, s["padding"], rank)
        strides, dilation = sizes_of(s["strides"], rank), sizes_of(s["dilation"], rank)
        more = sizes_of(s["output_padding"], rank)
        sizes = []
        for k, (size, w) in enumerate(zip(space, window)):
            number = extent_number(size)
            size = size if number is None else number
            reach = (w - 1) * dilation[k] + 1 - pads[k] - pads[k + rank] + more[k]
            sizes.append((size - 1) * strides[k] + reach)
        shape = out.backward([batch, per_group * s["groups"], *sizes])
        return TensorType(shape, s["out_dtype"] or str(data.dtype))

    return rule


def _transpose_compute(rank: int) -> Any:
    plain, order = "NC" + _SPACE[rank], "IO" + _SPACE[rank]

    def run(x: Any, w: Any, **s: Any) -> Any:
        if s["data_layout"] != plain:
            x = topi.layout_transform(x, s["data_layout"], plain)
        if s["kernel_layout"] != order:
            w = topi.layout_transform(w, s["kernel_layout"], order)
        out = topi.nn.conv_transpose(
            x,
            w,
            list(s["strides"]),
            list(s["padding"]),
            list(s["output_padding"]),
            s["groups"],
            plain,
            order,
            s["out_dtype"] or None,
            list(s["dilation"]),
        )
        wanted = s["out_layout"] or s["data_layout"]
        return out if wanted == plain else topi.layout_transform(out, plain, wanted)

    return accumulated_in_float32(run)


def _transpose_in_relax(rank: int) -> Any:
    def lower(args: Sequence[RelayExpr], s: Mapping[str, Any]) -> RelayExpr:
        dtypes = {str(arg.struct_info.dtype) for arg in args}
        found = _in_front(rank, args, s, "IO" + _SPACE[rank]) if len(dtypes) == 1 else None
        if found is None:
            return relax.op.make_call(f"relay.nn.conv{rank}d_transpose", *args, **s)
        args, s, layout = found
        settings = {
            key: s[key]
            for key in ("strides", "padding", "output_padding", "dilation", "groups",
                        "data_layout", "kernel_layout")
        }  # fmt: skip
        if s["out_dtype"]:
            settings["out_dtype"] = s["out_dtype"]
        grown = relax.op.make_call("nn.conv_transpose", *args, **settings)
        return permuted(grown, "NC" + _SPACE[rank], layout)

    return lower


for _rank in (1, 2, 3):
    _name = f"nn.conv{_rank}d_transpose"
    register_own(
        _name,
        _transpose_compute(_rank),
        OpPattern.OUT_FUSABLE,
        _settings(_rank, "IO" + _SPACE[_rank], output_padding=(0,) * _rank),
    )
    define(
        _name,
        _transpose_compute(_rank),
        OpPattern.OUT_FUSABLE,
        num_inputs=2,
        lower=_transpose_in_relax(_rank),
        settings=_settings(_rank, "IO" + _SPACE[_rank], output_padding=(0,) * _rank),
        rule=_transpose_rule(_rank, _name),
        fill=_fill(_rank, _name, True),
    )


def conv1d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = (1,),
    padding: Size = (0,),
    dilation: Size = (1,),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Size | None = None,
    data_layout: str = "NCW",
    kernel_layout: str = "IOW",
    out_layout: str = "",
    output_padding: Size = (0,),
    out_dtype: str = "",
) -> Call:
    """The gradient of :func:`conv1d` for its data; arguments as in :func:`conv2d_transpose`."""
    return _conv(
        1,
        "nn.conv1d_transpose",
        data,
        weight,
        strides,
        padding,
        dilation,
        groups,
        channels,
        kernel_size,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        output_padding=sizes_of(output_padding, 1),
        out_dtype=out_dtype,
    )


def conv2d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = (1, 1),
    padding: Size = (0, 0),
    dilation: Size = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Size | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: Size = (0, 0),
    out_dtype: str = "",
) -> Call:
    """The gradient of :func:`conv2d` for its data.

    Parameters
    ----------
    output_padding : how much larger the result is, where several sizes have one gradient.
    kernel_layout : input channels first, such as IOHW.
    """
    return _conv(
        2,
        "nn.conv2d_transpose",
        data,
        weight,
        strides,
        padding,
        dilation,
        groups,
        channels,
        kernel_size,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        output_padding=sizes_of(output_padding, 2),
        out_dtype=out_dtype,
    )


def conv3d_transpose(
    data: RelayExpr,
    weight: RelayExpr,
    strides: Size = (1, 1, 1),
    padding: Size = (0, 0, 0),
    dilation: Size = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Size | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "IODHW",
    out_layout: str = "",
    output_padding: Size = (0, 0, 0),
    out_dtype: str = "",
) -> Call:
    """The gradient of :func:`conv3d` for its data; arguments as in :func:`conv2d_transpose`."""
    return _conv(
        3,
        "nn.conv3d_transpose",
        data,
        weight,
        strides,
        padding,
        dilation,
        groups,
        channels,
        kernel_size,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        output_padding=sizes_of(output_padding, 3),
        out_dtype=out_dtype,
    )


def _winograd3d_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    where = "relay.nn.contrib_conv3d_winograd_without_weight_transform"
    data, weight = tensor(where, types[0]), tensor(where, types[1], "weight")
    pads = pads_of(where, s["padding"], 3)
    window = extent_number(weight.shape[0]) or 0
    window -= s["tile_size"] - 1
    places = [
        window_extent(
            e if (n := extent_number(e)) is None else n, window, 1, pads[k] + pads[k + 3], 1
        )
        for k, e in enumerate(data.shape[2:])
    ]
    shape = [data.shape[0], weight.shape[3], *places]
    return TensorType(shape, s["out_dtype"] or str(data.dtype))


def _winograd3d_compute(x: Any, w: Any, tile_size: int, padding: Any, **s: Any) -> Any:
    pads = pads_of("relay.nn.contrib_conv3d_winograd", padding, 3)
    return conv3d_winograd_without_weight_transform(x, w, pads, tile_size)


define(
    "nn.contrib_conv3d_winograd_weight_transform",
    conv3d_winograd_weight_transform,
    OpPattern.OPAQUE,
    settings={"tile_size": REQUIRED},
    num_inputs=1,
)
define(
    "nn.contrib_conv3d_winograd_without_weight_transform",
    _winograd3d_compute,
    OpPattern.OPAQUE,
    settings={"tile_size": REQUIRED, **_settings(3)},
    rule=_winograd3d_rule,
    num_inputs=2,
)


def contrib_conv3d_winograd_weight_transform(weight: RelayExpr, tile_size: int) -> Call:
    """Weights of a convolution in the form Winograd's algorithm multiplies by."""
    return make("nn.contrib_conv3d_winograd_weight_transform", [weight], tile_size=tile_size)


def contrib_conv3d_winograd_without_weight_transform(
    data: RelayExpr,
    weight: RelayExpr,
    tile_size: int,
    strides: Size = (1, 1, 1),
    padding: Size = (0, 0, 0),
    dilation: Size = (1, 1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Size | None = None,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str = "",
    out_dtype: str = "",
) -> Call:
    """Convolution by weights that are transformed already; stride and dilation are 1.

    Raises
    ------
    ValueError : another stride, dilation, layout or number of groups.
    """
    plain = (
        sizes_of(strides, 3) + sizes_of(dilation, 3) == [1] * 6
        and groups == 1
        and data_layout == "NCDHW"
    )
    if not plain:
        raise error.ValueError(
            "relay.nn.contrib_conv3d_winograd: strides, dilation and groups are 1, layout NCDHW"
        )
    return _conv(
        3,
        "nn.contrib_conv3d_winograd_without_weight_transform",
        data,
        weight,
        strides,
        padding,
        dilation,
        groups,
        channels,
        kernel_size,
        tile_size=tile_size,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
