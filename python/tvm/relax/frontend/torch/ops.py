"""How each ATen operator becomes graph operators."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Constant, TupleGetItem, const
from tvm.relax.struct_info import static_shape

__all__ = ["CONVERTERS", "Arguments", "UnsupportedUse", "operator_name", "supported_operators"]

# A converter makes the value of a node; several outputs come as a list.
Converter = Callable[["Arguments"], RelayExpr | list[RelayExpr]]
CONVERTERS: dict[str, Converter] = {}


class UnsupportedUse(Exception):
    """An operator is known, but not with these settings."""


def operator_name(target: Any) -> str:
    """``aten.conv2d.default`` for an ATen overload, the plain name for a Python function.

    An in-place operator has the name of the one that returns a new tensor: ``aten.relu.default``
    for ``aten.relu_.default``.
    """
    if not isinstance(target, torch._ops.OpOverload):
        return target.__name__
    namespace, name, overload = str(target).split(".")
    if target._schema.is_mutable:
        name = name.removesuffix("_")
    return f"{namespace}.{name}.{overload}"


def supported_operators() -> list[str]:
    """Names of the operators that can be imported."""
    return sorted(CONVERTERS)


class Arguments:
    """The arguments of one node, by the names of the operator's schema, with graph values.

    Attributes
    ----------
    builder : where further bindings go.
    node : the node of the exported graph.
    """

    def __init__(
        self, builder: BlockBuilder, node: torch.fx.Node, lookup: Callable[[Any], Any]
    ) -> None:
        self.builder = builder
        self.node = node
        self._values: dict[str, Any] = {}
        if isinstance(node.target, torch._ops.OpOverload):
            schema = node.target._schema.arguments
            for i, argument in enumerate(schema):
                if i < len(node.args):
                    value = node.args[i]
                elif argument.name in node.kwargs:
                    value = node.kwargs[argument.name]
                else:
                    value = argument.default_value
                self._values[argument.name] = torch.fx.node.map_arg(value, lookup)
        else:
            for i, value in enumerate(node.args):
                self._values[str(i)] = torch.fx.node.map_arg(value, lookup)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The argument, or the default where the schema has no such name."""
        return self._values.get(name, default)

    def emit(self, expr: RelayExpr) -> RelayExpr:
        """Bind an intermediate value."""
        return self.builder.emit(expr)

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a tensor argument."""
        return static_shape(self[name].struct_info)

    @property
    def result_dtype(self) -> str:
        """Element type of the node's result."""
        return str(self.node.meta["val"].dtype).removeprefix("torch.")

    @property
    def result_shape(self) -> tuple[int, ...]:
        """Shape of the node's result."""
        return tuple(int(extent) for extent in self.node.meta["val"].shape)

    def operand(self, name: str) -> RelayExpr:
        """A tensor or number as an operand of the result's element type."""
        value = self[name]
        if not isinstance(value, RelayExpr):
            return const(value, self.result_dtype)
        if str(value.struct_info.dtype) == self.result_dtype:
            return value
        if isinstance(value, Constant):
            return const(value.data.numpy(), self.result_dtype)
        return self.emit(op.astype(value, self.result_dtype))

    def refuse_unless(self, condition: bool, what: str) -> None:
        """Report settings that have no equivalent."""
        if not condition:
            raise UnsupportedUse(what)


def _converter(*names: str) -> Callable[[Converter], Converter]:
    def register(function: Converter) -> Converter:
        for name in names:
            CONVERTERS[name] = function
        return function

    return register


def _unary(make: Callable[[RelayExpr], RelayExpr], *names: str) -> None:
    for name in names:
        CONVERTERS[name] = lambda a: make(a["self"])


_unary(op.nn.relu, "aten.relu.default")
_unary(op.nn.relu6, "aten.relu6.default")
_unary(op.nn.hardswish, "aten.hardswish.default")
_unary(op.nn.hardsigmoid, "aten.hardsigmoid.default")
_unary(op.nn.silu, "aten.silu.default")
_unary(op.sigmoid, "aten.sigmoid.default")
_unary(op.tanh, "aten.tanh.default")
_unary(op.erf, "aten.erf.default")
_unary(op.exp, "aten.exp.default")
_unary(op.log, "aten.log.default")
_unary(op.sqrt, "aten.sqrt.default")
_unary(op.rsqrt, "aten.rsqrt.default")
_unary(op.negative, "aten.neg.default")
_unary(
    lambda x: x,
    "aten.alias.default",
    "aten.detach.default",
    "aten.clone.default",
    "aten.contiguous.default",
    "aten.lift_fresh_copy.default",
    "aten.detach_.default",
)


@_converter("aten.gelu.default")
def _gelu(a: Arguments) -> RelayExpr:
    return op.nn.gelu_tanh(a["self"]) if a["approximate"] == "tanh" else op.nn.gelu(a["self"])


@_converter("aten.leaky_relu.default")
def _leaky_relu(a: Arguments) -> RelayExpr:
    return op.nn.leakyrelu(a["self"], float(a["negative_slope"]))


@_converter("aten.hardtanh.default")
def _hardtanh(a: Arguments) -> RelayExpr:
    return op.clip(a["self"], a["min_val"], a["max_val"])


@_converter("aten.clamp.default")
def _clamp(a: Arguments) -> RelayExpr:
    low = -math.inf if a["min"] is None else a["min"]
    high = math.inf if a["max"] is None else a["max"]
    return op.clip(a["self"], low, high)


@_converter("aten.clamp_min.default")
def _clamp_min(a: Arguments) -> RelayExpr:
    return op.clip(a["self"], a["min"], math.inf)


@_converter("aten.dropout.default", "aten.feature_dropout.default")
def _dropout(a: Arguments) -> RelayExpr:
    a.refuse_unless(not a["train"], "in training mode; call model.eval() before the export")
    return a["input"]


def _scaled(a: Arguments) -> RelayExpr:
    """The second operand of add and sub times alpha."""
    other, alpha = a.operand("other"), a.get("alpha", 1)
    return other if alpha == 1 else a.emit(op.multiply(other, const(alpha, a.result_dtype)))


@_converter("aten.add.Tensor", "aten.add.Scalar")
def _add(a: Arguments) -> RelayExpr:
    return op.add(a.operand("self"), _scaled(a))


@_converter("aten.sub.Tensor", "aten.sub.Scalar")
def _sub(a: Arguments) -> RelayExpr:
    return op.subtract(a.operand("self"), _scaled(a))


@_converter("aten.rsub.Scalar", "aten.rsub.Tensor")
def _rsub(a: Arguments) -> RelayExpr:
    a.refuse_unless(a["alpha"] == 1, "with alpha")
    return op.subtract(a.operand("other"), a.operand("self"))


@_converter("aten.mul.Tensor", "aten.mul.Scalar")
def _mul(a: Arguments) -> RelayExpr:
    return op.multiply(a.operand("self"), a.operand("other"))


@_converter("aten.div.Tensor", "aten.div.Scalar")
def _div(a: Arguments) -> RelayExpr:
    return op.divide(a.operand("self"), a.operand("other"))


@_converter("aten.maximum.default")
def _maximum(a: Arguments) -> RelayExpr:
    return op.maximum(a.operand("self"), a.operand("other"))


@_converter("aten.minimum.default")
def _minimum(a: Arguments) -> RelayExpr:
    return op.minimum(a.operand("self"), a.operand("other"))


@_converter("aten.pow.Tensor_Scalar")
def _pow(a: Arguments) -> RelayExpr:
    # A square is by far the most common power, and a product is exact where pow is not.
    if a["exponent"] == 2:
        return op.multiply(a["self"], a["self"])
    return op.power(a.operand("self"), a.operand("exponent"))


def _pair(value: int | Sequence[int]) -> list[int]:
    return [value, value] if isinstance(value, int) else [int(v) for v in value] * (2 // len(value))


def _padding(a: Arguments) -> list[int]:
    """(top, left, bottom, right) of a convolution, from numbers or "same" and "valid"."""
    padding = a["padding"]
    if padding == "valid":
        return [0, 0, 0, 0]
    if padding == "same":
        totals = [
            (extent - 1) * dilation
            for extent, dilation in zip(a.shape("weight")[2:], _pair(a["dilation"]))
        ]
        # An odd total leaves the larger half behind.
        return [t // 2 for t in totals] + [t - t // 2 for t in totals]
    return _pair(padding) * 2


def _conv2d_call(a: Arguments) -> RelayExpr:
    out = op.nn.conv2d(
        a["input"],
        a["weight"],
        strides=_pair(a["stride"]),
        padding=_padding(a),
        dilation=_pair(a["dilation"]),
        groups=a["groups"],
    )
    if a["bias"] is None:
        return out
    bias = a["bias"]
    channels = static_shape(bias.struct_info)[0]
    if isinstance(bias, Constant):
        spread: RelayExpr = const(bias.data.numpy().reshape(1, channels, 1, 1))
    else:
        spread = a.emit(op.reshape(bias, (1, channels, 1, 1)))
    return op.add(a.emit(out), spread)


@_converter("aten.conv2d.default", "aten.conv2d.padding")
def _conv2d(a: Arguments) -> RelayExpr:
    a.refuse_unless(len(a.shape("input")) == 4, "on an input without a batch dimension")
    return _conv2d_call(a)


@_converter("aten.convolution.default")
def _convolution(a: Arguments) -> RelayExpr:
    a.refuse_unless(not a["transposed"], "transposed")
    rank = len(a.shape("input"))
    a.refuse_unless(rank == 4, f"over {rank - 2} dimensions; only two are supported")
    return _conv2d_call(a)


@_converter("aten.batch_norm.default")
def _batch_norm(a: Arguments) -> RelayExpr:
    a.refuse_unless(not a["training"], "in training mode; call model.eval() before the export")
    return TupleGetItem(a.emit(_batch_norm_call(a)), 0)


@_converter("aten._native_batch_norm_legit_no_training.default")
def _batch_norm_no_training(a: Arguments) -> list[RelayExpr]:
    result = a.emit(_batch_norm_call(a))
    return [TupleGetItem(result, i) for i in range(3)]


def _batch_norm_call(a: Arguments) -> RelayExpr:
    mean, var = a["running_mean"], a["running_var"]
    a.refuse_unless(mean is not None and var is not None, "without running statistics")
    channels = a.shape("input")[1]
    dtype = str(a["input"].struct_info.dtype)
    ones, zeros = np.ones(channels, dtype), np.zeros(channels, dtype)
    gamma = const(ones) if a["weight"] is None else a["weight"]
    beta = const(zeros) if a["bias"] is None else a["bias"]
    return op.nn.batch_norm(a["input"], gamma, beta, mean, var, axis=1, epsilon=float(a["eps"]))


@_converter("aten.linear.default")
def _linear(a: Arguments) -> RelayExpr:
    out = op.nn.dense(a["input"], a["weight"])
    return out if a["bias"] is None else op.add(a.emit(out), a["bias"])


@_converter("aten.addmm.default")
def _addmm(a: Arguments) -> RelayExpr:
    product = a.emit(_product(a["mat1"], a["mat2"], a))
    if a["alpha"] != 1:
        product = a.emit(op.multiply(product, const(a["alpha"], a.result_dtype)))
    bias = a["self"]
    if a["beta"] != 1:
        bias = a.emit(op.multiply(bias, const(a["beta"], a.result_dtype)))
    return op.add(product, bias)


def _product(left: RelayExpr, right: RelayExpr, a: Arguments) -> RelayExpr:
    """left @ right; a constant right matrix becomes a dense weight, whose layout is free."""
    if isinstance(right, Constant) and len(right.data.shape) == 2:
        weight = np.ascontiguousarray(right.data.numpy().T)
        return op.nn.dense(left, const(weight))
    return op.matmul(left, right)


@_converter("aten.mm.default")
def _mm(a: Arguments) -> RelayExpr:
    return _product(a["self"], a["mat2"], a)


@_converter("aten.bmm.default")
def _bmm(a: Arguments) -> RelayExpr:
    return op.matmul(a["self"], a["mat2"])


@_converter("aten.matmul.default")
def _matmul(a: Arguments) -> RelayExpr:
    ranks = (len(a.shape("self")), len(a.shape("other")))
    a.refuse_unless(min(ranks) >= 2, "with a vector operand")
    return _product(a["self"], a["other"], a)


def _max_pool(a: Arguments) -> RelayExpr:
    a.refuse_unless(len(a.shape("self")) == 4, "on an input without a batch dimension")
    return op.nn.max_pool2d(
        a["self"],
        _pair(a["kernel_size"]),
        _pair(a["stride"] or a["kernel_size"]),
        _pair(a["padding"]) * 2,
        _pair(a["dilation"]),
        bool(a["ceil_mode"]),
    )


CONVERTERS["aten.max_pool2d.default"] = _max_pool


@_converter("aten.max_pool2d_with_indices.default")
def _max_pool_with_indices(a: Arguments) -> list[RelayExpr]:
    read = {user.args[1] for user in a.node.users if user.target is operator.getitem}
    a.refuse_unless(read <= {0}, "whose indices are read")
    return [_max_pool(a)]


@_converter("aten.avg_pool2d.default")
def _avg_pool(a: Arguments) -> RelayExpr:
    a.refuse_unless(len(a.shape("self")) == 4, "on an input without a batch dimension")
    a.refuse_unless(a["divisor_override"] is None, "with divisor_override")
    return op.nn.avg_pool2d(
        a["self"],
        _pair(a["kernel_size"]),
        _pair(a["stride"] or a["kernel_size"]),
        _pair(a["padding"]) * 2,
        bool(a["ceil_mode"]),
        bool(a["count_include_pad"]),
    )


@_converter("aten.adaptive_avg_pool2d.default", "aten._adaptive_avg_pool2d.default")
def _adaptive_avg_pool(a: Arguments) -> RelayExpr:
    a.refuse_unless(len(a.shape("self")) == 4, "on an input without a batch dimension")
    return op.nn.adaptive_avg_pool2d(a["self"], list(a.result_shape[2:]))


def _reduction(
    make: Callable[..., RelayExpr], a: Arguments, axes: Any, keepdims: bool
) -> RelayExpr:
    data = a.operand("self")
    # An empty list of dimensions means all of them.
    axis = None if axes is None or axes == [] else axes if isinstance(axes, int) else list(axes)
    return make(data, axis, keepdims)


@_converter("aten.mean.dim", "aten.mean.default")
def _mean(a: Arguments) -> RelayExpr:
    return _reduction(op.mean, a, a.get("dim"), bool(a.get("keepdim", False)))


@_converter("aten.sum.dim_IntList", "aten.sum.default")
def _sum(a: Arguments) -> RelayExpr:
    return _reduction(op.sum, a, a.get("dim"), bool(a.get("keepdim", False)))


@_converter("aten.amax.default")
def _amax(a: Arguments) -> RelayExpr:
    return _reduction(op.max, a, a["dim"], bool(a["keepdim"]))


@_converter("aten.amin.default")
def _amin(a: Arguments) -> RelayExpr:
    return _reduction(op.min, a, a["dim"], bool(a["keepdim"]))


@_converter("aten.softmax.int", "aten._softmax.default")
def _softmax(a: Arguments) -> RelayExpr:
    return op.nn.softmax(a.operand("self"), a["dim"])


@_converter("aten.log_softmax.int", "aten._log_softmax.default")
def _log_softmax(a: Arguments) -> RelayExpr:
    return op.nn.log_softmax(a.operand("self"), a["dim"])


@_converter(
    "aten.flatten.using_ints",
    "aten.view.default",
    "aten.reshape.default",
    "aten._unsafe_view.default",
    "aten.unsqueeze.default",
    "aten.squeeze.default",
    "aten.squeeze.dim",
    "aten.squeeze.dims",
)
def _view(a: Arguments) -> RelayExpr:
    return op.reshape(a["self"], a.result_shape)


@_converter("aten.permute.default")
def _permute(a: Arguments) -> RelayExpr:
    return op.permute_dims(a["self"], a["dims"])


@_converter("aten.transpose.int")
def _transpose(a: Arguments) -> RelayExpr:
    axes = list(range(len(a.shape("self"))))
    axes[a["dim0"]], axes[a["dim1"]] = axes[a["dim1"]], axes[a["dim0"]]
    return op.permute_dims(a["self"], axes)


@_converter("aten.t.default", "aten.numpy_T.default")
def _t(a: Arguments) -> RelayExpr:
    return op.permute_dims(a["self"])


@_converter("aten.expand.default")
def _expand(a: Arguments) -> RelayExpr:
    return op.broadcast_to(a["self"], a.result_shape)


@_converter("aten.cat.default")
def _cat(a: Arguments) -> RelayExpr:
    return op.concat(a["tensors"], a["dim"])


@_converter("aten.slice.Tensor")
def _slice(a: Arguments) -> RelayExpr:
    extents = list(a.shape("self"))
    begin, end, strides = [0] * len(extents), extents, [1] * len(extents)
    axis = a["dim"] % len(extents)
    first, last, step = slice(a["start"], a["end"], a["step"]).indices(extents[axis])
    begin[axis], end[axis], strides[axis] = first, max(first, last), step
    return op.strided_slice(a["self"], begin, end, strides)


@_converter("aten.split.Tensor", "aten.split_with_sizes.default", "aten.chunk.default")
def _split(a: Arguments) -> list[RelayExpr]:
    axis = a["dim"] % len(a.shape("self"))
    sizes = [int(piece.shape[axis]) for piece in a.node.meta["val"]]
    pieces = a.emit(op.split(a["self"], sizes, axis))
    return [TupleGetItem(pieces, i) for i in range(len(sizes))]


@_converter("aten.constant_pad_nd.default", "aten.pad.default")
def _constant_pad(a: Arguments) -> RelayExpr:
    rank = len(a.shape("self"))
    mode = a.get("mode", "constant")
    a.refuse_unless(mode == "constant", f"in mode '{mode}'")
    a.refuse_unless(min(a["pad"]) >= 0, "with a negative size")
    before, after = [0] * rank, [0] * rank
    # Sizes come in pairs, from the last dimension to the first.
    for i, (low, high) in enumerate(zip(a["pad"][::2], a["pad"][1::2])):
        before[rank - 1 - i], after[rank - 1 - i] = low, high
    return op.nn.pad(a["self"], before, after, a["value"] or 0.0)


@_converter("aten._to_copy.default", "aten.to.dtype", "aten.to.dtype_layout")
def _to(a: Arguments) -> RelayExpr:
    return a.operand("self")


@_converter("aten._assert_tensor_metadata.default")
def _no_effect(a: Arguments) -> list[RelayExpr]:
    # A check that tracing leaves behind; its condition was fixed with the program's shapes.
    return []


@_converter("getitem")
def _getitem(a: Arguments) -> RelayExpr:
    return a["0"][a["1"]]
