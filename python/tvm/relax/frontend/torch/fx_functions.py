"""Functions and methods of tensors in graphs of ``torch.fx``, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tvm.ir import RelayExpr
from tvm.relax import ShapeExpr, Tuple, TupleGetItem, const, op
from tvm.relax.struct_info import TupleStructInfo

from . import fx_modules as modules
from .fx_node import FxNode, dtype_of, is_tensor

__all__ = ["CONVERTERS"]

Converter = Callable[[FxNode], Any]
CONVERTERS: dict[str, Converter] = {}


def _named(*names: str) -> Callable[[Converter], Converter]:
    def register(converter: Converter) -> Converter:
        for name in names:
            CONVERTERS[name] = converter
        return converter

    return register


def _unary(make: Callable[[RelayExpr], RelayExpr]) -> Converter:
    return lambda a: a.emit(make(a.data))


for _name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "round",
              "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh"):  # fmt: skip
    CONVERTERS[_name] = _unary(getattr(op, _name))
CONVERTERS["neg"] = _unary(op.negative)
CONVERTERS["relu"] = _unary(op.nn.relu)
CONVERTERS["silu"] = _unary(op.nn.silu)


def _binary(make: Callable[..., RelayExpr], reverse: bool = False) -> Converter:
    def convert(a: FxNode) -> Any:
        left, right = a.args[0], a.get(1, "other")
        if not is_tensor(left) and not is_tensor(right):
            return _plain[make](left, right)
        like = left if is_tensor(left) else right
        left, right = a.operand(left, like), a.operand(right, like)
        return a.emit(make(right, left) if reverse else make(left, right))

    return convert


_plain: dict[Any, Callable[[Any, Any], Any]] = {
    op.add: lambda a, b: a + b,
    op.subtract: lambda a, b: a - b,
    op.multiply: lambda a, b: a * b,
    op.divide: lambda a, b: a / b,
    op.floor_divide: lambda a, b: a // b,
    op.power: lambda a, b: a**b,
    op.less: lambda a, b: a < b,
    op.less_equal: lambda a, b: a <= b,
    op.greater: lambda a, b: a > b,
    op.greater_equal: lambda a, b: a >= b,
    op.equal: lambda a, b: a == b,
    op.not_equal: lambda a, b: a != b,
}
for _make, _names in (
    (op.add, ("add", "iadd")), (op.subtract, ("sub", "isub")), (op.multiply, ("mul", "imul")),
    (op.divide, ("truediv", "div", "itruediv")),
    (op.floor_divide, ("floordiv", "floor_divide", "ifloordiv")), (op.power, ("pow", "ipow")),
    (op.less, ("lt", "less")), (op.less_equal, ("le", "less_equal")),
    (op.greater, ("gt", "greater")), (op.greater_equal, ("ge", "greater_equal")),
    (op.equal, ("eq",)), (op.not_equal, ("ne", "not_equal")),
):  # fmt: skip
    for _name in _names:
        CONVERTERS[_name] = _binary(_make)


@_named("max", "maximum")
def _max(a: FxNode) -> RelayExpr:
    return a.emit(op.maximum(a.args[0], a.operand(a.args[1], a.args[0])))


@_named("matmul", "bmm")
def _matmul(a: FxNode) -> RelayExpr:
    return a.emit(op.matmul(a.args[0], a.args[1], out_dtype="float32"))


def _scaled(a: FxNode, value: RelayExpr, factor: Any) -> RelayExpr:
    if isinstance(factor, (int, float)) and factor == 1:
        return value
    return a.emit(op.multiply(value, a.operand(factor, value)))


@_named("addmm", "baddbmm")
def _addmm(a: FxNode) -> RelayExpr:
    x, y, z = a.args[:3]
    alpha, beta = a.kwargs.get("alpha", 1), a.kwargs.get("beta", 1)
    product = None
    if alpha != 0:
        product = _scaled(a, a.emit(op.matmul(y, z, out_dtype="float32")), alpha)
    if beta == 0:
        if product is None:
            return a.emit(op.full(a.shape(x), const(0, str(x.struct_info.dtype))))
        return product
    bias = _scaled(a, x, beta)
    return bias if product is None else a.emit(op.add(bias, product))


@_named("conv1d", "conv2d")
def _conv(a: FxNode) -> RelayExpr:
    weight, bias = a.get(1, "weight"), a.get(2, "bias")
    rank = len(a.shape(weight)) - 2
    padding = a.get(4, "padding", 0)
    if isinstance(padding, str):
        raise a.refuse(f"a padding of '{padding}'")
    out = a.emit(
        {1: op.nn.conv1d, 2: op.nn.conv2d}[rank](
            a.data, weight, strides=a.get(3, "stride", 1), padding=padding,
            dilation=a.get(5, "dilation", 1), groups=a.get(6, "groups", 1), out_dtype="float32",
        )
    )  # fmt: skip
    if bias is None:
        return out
    spread = a.emit(op.reshape(bias, [1, a.shape(bias)[0], *[1] * rank]))
    return a.emit(op.add(out, spread))


@_named("linear")
def _linear(a: FxNode) -> RelayExpr:
    return modules.linear(a, a.data, a.get(1, "weight"), a.get(2, "bias"))


@_named("layer_norm")
def _layer_norm(a: FxNode) -> RelayExpr:
    return modules.layer_norm(
        a, a.data, a.get(1, "normalized_shape"), a.get(2, "weight"), a.get(3, "bias"),
        a.get(4, "eps", 1e-5),
    )  # fmt: skip


def _neutral(channels: int) -> tuple[RelayExpr, RelayExpr]:
    """A weight and a bias that change nothing."""
    return const(torch.ones(channels).numpy()), const(torch.zeros(channels).numpy())


@_named("batch_norm")
def _batch_norm(a: FxNode) -> RelayExpr:
    if a.get(5, "training", False):
        raise a.refuse("statistics of the batch; call eval() on the module first")
    ones, zeros = _neutral(a.shape(a.data)[1])
    weight, bias = a.get(3, "weight"), a.get(4, "bias")
    whole = op.nn.batch_norm(
        a.data, ones if weight is None else weight, zeros if bias is None else bias,
        a.get(1, "running_mean"), a.get(2, "running_var"), axis=1, epsilon=a.get(7, "eps", 1e-5),
    )  # fmt: skip
    return a.emit(TupleGetItem(a.emit(whole), 0))


@_named("group_norm")
def _group_norm(a: FxNode) -> RelayExpr:
    extents = a.shape(a.data)
    ones, zeros = _neutral(extents[1])
    weight, bias = a.get(2, "weight"), a.get(3, "bias")
    return a.emit(
        op.nn.group_norm(
            a.data, ones if weight is None else weight, zeros if bias is None else bias,
            num_groups=a.get(1, "num_groups"), channel_axis=1,
            axes=list(range(2, len(extents))), epsilon=a.get(4, "eps", 1e-5),
        )
    )  # fmt: skip


@_named("embedding")
def _embedding(a: FxNode) -> RelayExpr:
    return modules.embedding(a, a.data, a.get(1, "weight"))


@_named("softmax")
def _softmax(a: FxNode) -> RelayExpr:
    return a.emit(op.nn.softmax(a.data, a.get(1, "dim", -1)))


@_named("log_softmax")
def _log_softmax(a: FxNode) -> RelayExpr:
    return a.emit(op.nn.log_softmax(a.data, a.get(1, "dim", -1)))


@_named("leaky_relu")
def _leaky_relu(a: FxNode) -> RelayExpr:
    return a.emit(op.nn.leakyrelu(a.data, a.get(1, "negative_slope", 0.01)))


@_named("gelu")
def _gelu(a: FxNode) -> RelayExpr:
    tanh = a.kwargs.get("approximate", "none") == "tanh"
    return a.emit(op.nn.gelu_tanh(a.data) if tanh else op.nn.gelu(a.data))


@_named("hardswish")
def _hardswish(a: FxNode) -> RelayExpr:
    return a.emit(op.nn.hardswish(a.data))


@_named("dropout", "contiguous", "clone", "detach", "requires_grad_")
def _same(a: FxNode) -> RelayExpr:
    return a.data


@_named("clamp", "clip")
def _clamp(a: FxNode) -> RelayExpr:
    limits = []
    for position, name in ((1, "min"), (2, "max")):
        value = a.get(position, name)
        if not isinstance(value, (int, float)):
            raise a.refuse(
                f"TVM only supports constant {name} value for torch.clamp/clip, got {value}"
            )
        limits.append(value)
    return a.emit(op.clip(a.data, *limits))


@_named("avg_pool2d")
def _avg_pool(a: FxNode) -> RelayExpr:
    window = a.get(1, "kernel_size")
    return a.emit(
        op.nn.avg_pool2d(
            a.data, window, a.get(2, "stride") or window, a.get(3, "padding", 0),
            ceil_mode=a.get(4, "ceil_mode", False),
        )
    )  # fmt: skip


@_named("max_pool2d")
def _max_pool(a: FxNode) -> RelayExpr:
    window = a.get(1, "kernel_size")
    return a.emit(
        op.nn.max_pool2d(
            a.data, window, a.get(2, "stride") or window, a.get(3, "padding", 0),
            a.get(4, "dilation", 1), a.get(5, "ceil_mode", False),
        )
    )  # fmt: skip


@_named("adaptive_avg_pool2d")
def _adaptive_pool(a: FxNode) -> RelayExpr:
    return a.emit(op.nn.adaptive_avg_pool2d(a.data, a.get(1, "output_size")))


@_named("relu6")
def _relu6(a: FxNode) -> RelayExpr:
    return a.emit(op.clip(a.data, 0, 6))


@_named("interpolate")
def _interpolate(a: FxNode) -> RelayExpr:
    return modules.resized(
        a, a.data, a.get(1, "size"), a.get(2, "scale_factor"), a.get(3, "mode", "nearest"),
        a.get(4, "align_corners"),
    )  # fmt: skip


@_named("cross_entropy")
def _cross_entropy(a: FxNode) -> RelayExpr:
    return modules.cross_entropy(
        a, a.args[0], a.get(1, "target"), a.kwargs.get("weight"),
        a.kwargs.get("reduction", "mean"), a.kwargs.get("ignore_index", -100),
    )  # fmt: skip


@_named("scaled_dot_product_attention")
def _attention(a: FxNode) -> RelayExpr:
    query, key, value = (
        a.emit(op.permute_dims(a.get(k, n), [0, 2, 1, 3]))
        for k, n in enumerate(("query", "key", "value"))
    )
    if a.get(4, "dropout_p", 0.0):
        raise a.refuse("attention with dropout")
    causal = "TopLeft" if a.get(5, "is_causal", False) else None
    return a.emit(op.nn.attention(query, key, value, a.get(3, "attn_mask"), causal_mask=causal))


@_named("size")
def _size(a: FxNode) -> Any:
    shape = a.data.struct_info.shape
    return shape if len(a.args) == 1 else int(shape.values[a.args[1]])


@_named("getattr")
def _getattr(a: FxNode) -> Any:
    value, name = a.args
    if name == "shape":
        return value.struct_info.shape
    if name == "dtype":
        return getattr(torch, str(value.struct_info.dtype))
    raise a.refuse(f"the attribute '{name}'")


def _sizes(a: FxNode, first: int, name: str) -> list[Any]:
    """Extents given one by one, as a sequence, or by name."""
    given = a.args[first:] or [a.kwargs[name]]
    if len(given) == 1 and isinstance(given[0], (tuple, list, ShapeExpr)):
        return list(given[0])
    return list(given)


@_named("reshape", "view")
def _reshape(a: FxNode) -> RelayExpr:
    return a.emit(op.reshape(a.data, _sizes(a, 1, "shape")))


@_named("permute")
def _permute(a: FxNode) -> RelayExpr:
    return a.emit(op.permute_dims(a.data, _sizes(a, 1, "dims")))


@_named("transpose")
def _transpose(a: FxNode) -> RelayExpr:
    axes = list(range(len(a.shape(a.data))))
    one, other = a.get(1, "dim0"), a.get(2, "dim1")
    axes[one], axes[other] = axes[other], axes[one]
    return a.emit(op.permute_dims(a.data, axes))


@_named("flatten")
def _flatten(a: FxNode) -> RelayExpr:
    return modules.flatten(a, a.data, a.get(1, "start_dim", 0), a.get(2, "end_dim", -1))


@_named("squeeze")
def _squeeze(a: FxNode) -> RelayExpr:
    return a.emit(op.squeeze(a.data, a.get(1, "dim")))


@_named("unsqueeze")
def _unsqueeze(a: FxNode) -> RelayExpr:
    return a.emit(op.expand_dims(a.data, a.get(1, "dim")))


@_named("expand")
def _expand(a: FxNode) -> RelayExpr:
    own = a.shape(a.data)
    sizes = _sizes(a, 1, "size")
    lead = len(sizes) - len(own)
    return a.emit(
        op.broadcast_to(
            a.data, [own[k - lead] if size == -1 else size for k, size in enumerate(sizes)]
        )
    )


@_named("cat", "concat")
def _cat(a: FxNode) -> RelayExpr:
    return a.emit(op.concat(list(a.args[0]), a.get(1, "dim", a.kwargs.get("axis", 0))))


@_named("split")
def _split(a: FxNode) -> RelayExpr:
    size, axis = a.get(1, "split_size_or_sections"), a.get(2, "dim", 0)
    if isinstance(size, (tuple, list)):
        cuts: Any = [sum(size[: k + 1]) for k in range(len(size) - 1)]
    else:
        cuts = -(-a.shape(a.data)[axis] // size)
    return a.emit(op.split(a.data, cuts, axis))


@_named("chunk")
def _chunk(a: FxNode) -> RelayExpr:
    return a.emit(op.split(a.data, a.get(1, "chunks"), a.get(2, "dim", 0)))


@_named("getitem")
def _getitem(a: FxNode) -> Any:
    value, index = a.args
    if isinstance(value, (tuple, list, ShapeExpr)):
        return value[index]
    if isinstance(value, Tuple) or isinstance(value.struct_info, TupleStructInfo):
        return a.emit(TupleGetItem(value, index))
    items = index if isinstance(index, tuple) else (index,)
    shape = a.shape(value)
    taken = sum(1 for item in items if item is not None and item is not Ellipsis)
    axes: list[int] = []
    begin: list[Any] = []
    end: list[Any] = []
    strides: list[Any] = []
    result: list[Any] = []
    place = 0
    for item in items:
        if item is None:
            result.append(1)
            continue
        span = len(shape) - taken if item is Ellipsis else 1
        for _ in range(span):
            extent = shape[place]
            what = slice(None) if item is Ellipsis else item
            if isinstance(what, int):
                first, last, step = what % extent, what % extent + 1, 1
            elif isinstance(what, slice):
                first, last, step = what.start or 0, what.stop, what.step or 1
                last = extent if last is None else last
                result.append(len(range(*slice(first, last, step).indices(extent))))
            else:
                raise a.refuse(f"an index of {what}")
            axes.append(place)
            begin.append(first)
            end.append(last)
            strides.append(step)
            place += 1
    for extent in shape[place:]:
        axes.append(place)
        begin.append(0)
        end.append(extent)
        strides.append(1)
        result.append(extent)
        place += 1
    part = a.emit(op.strided_slice(value, axes, begin, end, strides))
    return a.emit(op.reshape(part, result))


@_named("arange")
def _arange(a: FxNode) -> RelayExpr:
    given = list(a.args)
    names = ("start", "end", "step")
    if len(given) == 1 and "end" not in a.kwargs:
        given = [0, *given]
    values = [given[k] if k < len(given) else a.kwargs.get(n) for k, n in enumerate(names)]
    start, end, step = (0 if values[0] is None else values[0], values[1],
                        1 if values[2] is None else values[2])  # fmt: skip
    kind = a.kwargs.get("dtype")
    whole = all(isinstance(v, int) for v in (start, end, step))
    dtype = ("int64" if whole else "float32") if kind is None else dtype_of(kind)
    return a.emit(op.arange(start, end, step, dtype))


@_named("empty")
def _empty(a: FxNode) -> RelayExpr:
    dtype = dtype_of(a.kwargs.get("dtype") or "float32")
    return a.emit(op.zeros(_sizes(a, 0, "size"), dtype))


@_named("full")
def _full(a: FxNode) -> RelayExpr:
    dtype = dtype_of(a.kwargs.get("dtype") or torch.get_default_dtype())
    return a.emit(op.full(list(a.args[0]), const(a.args[1], dtype), dtype))


@_named("fill_")
def _fill(a: FxNode) -> RelayExpr:
    dtype = str(a.data.struct_info.dtype)
    return a.emit(op.full(a.data.struct_info.shape, const(a.args[1], dtype), dtype))


@_named("new_ones")
def _new_ones(a: FxNode) -> RelayExpr:
    dtype = str(a.data.struct_info.dtype)
    return a.emit(op.full(_sizes(a, 1, "size"), const(1, dtype), dtype))


@_named("ones")
def _ones(a: FxNode) -> RelayExpr:
    dtype = dtype_of(a.kwargs.get("dtype") or torch.get_default_dtype())
    return a.emit(op.full(_sizes(a, 0, "size"), const(1, dtype), dtype))


@_named("tensor")
def _tensor(a: FxNode) -> RelayExpr:
    kind = a.kwargs.get("dtype")
    value = a.args[0]
    dtype = dtype_of(kind) if kind is not None else str(torch.tensor(value).dtype)
    return const(value, dtype_of(dtype))


@_named("tril", "tril_")
def _tril(a: FxNode) -> RelayExpr:
    return a.emit(op.tril(a.data, a.get(1, "diagonal", 0)))


@_named("triu", "triu_")
def _triu(a: FxNode) -> RelayExpr:
    return a.emit(op.triu(a.data, a.get(1, "diagonal", 0)))


@_named("float")
def _float(a: FxNode) -> RelayExpr:
    return a.emit(op.astype(a.data, "float32"))


@_named("half")
def _half(a: FxNode) -> RelayExpr:
    return a.emit(op.astype(a.data, "float16"))


@_named("type")
def _type(a: FxNode) -> RelayExpr:
    return a.emit(op.astype(a.data, dtype_of(a.get(1, "dtype"))))


@_named("to")
def _to(a: FxNode) -> RelayExpr:
    kind = next(
        (v for v in [*a.args[1:], a.kwargs.get("dtype")] if isinstance(v, torch.dtype)), None
    )
    return a.data if kind is None else a.emit(op.astype(a.data, dtype_of(kind)))


@_named("astype")
def _astype(a: FxNode) -> RelayExpr:
    return a.emit(op.astype(a.data, dtype_of(a.args[1])))


def _reduction(make: Callable[..., RelayExpr]) -> Converter:
    def convert(a: FxNode) -> RelayExpr:
        axes = a.args[1:] if len(a.args) > 1 else [a.kwargs.get("dim")]
        axis: Any = axes[0] if len(axes) == 1 or isinstance(axes[-1], bool) else list(axes)
        keep = axes[-1] if isinstance(axes[-1], bool) else a.kwargs.get("keepdim", False)
        return a.emit(make(a.data, axis, keepdims=keep))

    return convert


for _name in ("sum", "mean", "argmax", "argmin"):
    CONVERTERS[_name] = _reduction(getattr(op, _name))


@_named("cumsum")
def _cumsum(a: FxNode) -> RelayExpr:
    kind = a.kwargs.get("dtype")
    dtype = None if kind is None else dtype_of(kind)
    return a.emit(op.cumsum(a.data, a.get(1, "dim"), dtype))
