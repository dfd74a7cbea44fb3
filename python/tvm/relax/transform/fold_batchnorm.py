"""Batch normalisation with fixed statistics as arithmetic, merged into weights where possible."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Constant, Function, TupleGetItem, Var, const
from ..rewriter import FunctionRewriter, map_functions, use_counts
from ..struct_info import open_shape
from .graph_pass import graph_pass

__all__ = ["FoldBatchnorm"]

_CONVOLUTIONS = ("nn.conv1d", "nn.conv2d", "nn.conv3d")
_TRANSPOSED = ("nn.conv_transpose", "nn.conv1d_transpose", "nn.conv2d_transpose")


def _is_op(value: Any, *names: str) -> TypeGuard[Call]:
    if not isinstance(value, Call) or not op.has_op(value.op):
        return False
    return str(value.op.name).removeprefix("relax.") in names


def _filter_axis(call: Call, settings: dict[str, Any]) -> int | None:
    """The dimension of a convolution's weight that runs over all its filters, if one does."""
    layout = str(settings["kernel_layout"])
    if _is_op(call, *_TRANSPOSED):
        # Their weights count the filters of one group.
        return layout.index("O") if int(settings.get("groups", 1)) == 1 else None
    # In HWOI, what is called O are the channels of depthwise filters.
    return layout.index("O") if layout.isalpha() and layout != "HWOI" else None


def _along(vector: np.ndarray, axis: int, rank: int) -> np.ndarray:
    """A vector that broadcasts along one dimension of a tensor of the rank."""
    return vector.reshape([-1 if k == axis else 1 for k in range(rank)])


class _BatchNormFolder(FunctionRewriter):
    def __init__(self, func: Function) -> None:
        super().__init__(func)
        self._uses = use_counts(func)

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if isinstance(value, TupleGetItem):
            call = self.values.get(value.tuple_value)
            if _is_op(call, "nn.batch_norm"):
                if value.index != 0:
                    return call.args[value.index + 2]
                value = self._fold(call)
        return value

    def _fold(self, call: Call) -> RelayExpr:
        data, *statistics = call.args
        settings = op.attrs_of(call)
        rank = len(open_shape(data.struct_info))
        axis = settings.get("axis", 1) % rank
        epsilon = settings.get("epsilon", 1e-5)
        if not all(isinstance(s, Constant) for s in statistics):
            return self._as_arithmetic(call, axis, rank, epsilon)
        dtype = str(data.struct_info.dtype)
        gamma, beta, mean, var = (s.values().astype("float64") for s in statistics)
        scale = gamma / np.sqrt(var + epsilon)
        shift = beta - mean * scale
        scaled = self._scale_producer(data, axis, scale)
        if scaled is None:
            scaled = self.emit(op.multiply(data, const(_along(scale, axis, rank), dtype)))
        else:
            scaled, bias = scaled
            shift = shift + bias * scale
        return op.add(scaled, const(_along(shift, axis, rank), dtype))

    def _scale_producer(
        self, data: RelayExpr, axis: int, scale: np.ndarray
    ) -> tuple[Var, np.ndarray | float] | None:
        """The linear operator behind ``data`` with scaled weights, and the bias it had."""
        bias: np.ndarray | float = 0.0
        value: Any = self._only_read(data)
        if _is_op(value, "add") and isinstance(value.args[1], Constant):
            channels = open_shape(data.struct_info)[axis]
            rank = len(open_shape(data.struct_info))
            flat = value.args[1].values().astype("float64")
            expected = _along(np.zeros(channels), axis, rank).shape
            # A bias of lower rank broadcasts from the right: the full shape without leading 1s.
            if flat.size != channels or expected[rank - flat.ndim :] != flat.shape:
                return None
            bias = flat.reshape(-1)
            value = self._only_read(value.args[0])
        weight = value.args[1] if isinstance(value, Call) and len(value.args) > 1 else None
        if not isinstance(weight, Constant):
            return None
        if _is_op(value, *_CONVOLUTIONS, *_TRANSPOSED):
            settings = op.attrs_of(value)
            out_axis = _filter_axis(value, settings)
            channel_axis = settings["data_layout"].index("C")
        elif _is_op(value, "nn.dense"):
            out_axis, channel_axis = 0, len(open_shape(value.struct_info)) - 1
        else:
            return None
        if out_axis is None or channel_axis != axis:
            return None
        array = weight.values()
        scaled = array * _along(scale, out_axis, array.ndim)
        args = [value.args[0], const(scaled, str(weight.data.dtype))]
        return self.emit(Call(value.op, args, value.attrs, (), value.struct_info)), bias

    def _only_read(self, expr: RelayExpr) -> RelayExpr | None:
        """What the variable is bound to, if the binding being folded is its only reader."""
        if not isinstance(expr, Var) or expr not in self.origins:
            return None
        return self.values[expr] if self._uses.get(self.origins[expr], 0) == 1 else None

    def _as_arithmetic(self, call: Call, axis: int, rank: int, epsilon: float) -> RelayExpr:
        data, gamma, beta, mean, var = call.args
        shape = [-1 if k == axis else 1 for k in range(rank)]
        root = self.emit(op.rsqrt(self.emit(op.add(var, epsilon))))
        scale = self.emit(op.multiply(gamma, root))
        shift = self.emit(op.subtract(beta, self.emit(op.multiply(mean, scale))))
        spread_scale = self.emit(op.reshape(scale, shape))
        spread_shift = self.emit(op.reshape(shift, shape))
        return op.add(self.emit(op.multiply(data, spread_scale)), spread_shift)


@graph_pass("FoldBatchnorm")
def FoldBatchnorm(mod: IRModule) -> IRModule:
    """The module without batch normalisation.

    Where the data comes straight from a convolution or dense layer with constant weights (a
    constant bias between them is fine) and nobody else reads that, the scale goes into the
    weights. Otherwise it becomes a multiplication.
    """
    return map_functions(mod, lambda func: _BatchNormFolder(func).run())
