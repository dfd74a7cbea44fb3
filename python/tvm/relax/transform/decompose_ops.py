"""Operators that stand for several others, written as these."""

from __future__ import annotations

from collections.abc import Sequence

from tvm import tir
from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, ExternFunc, Function, ShapeExpr, Tuple, const
from ..expr_functor import PyExprMutator, mutator
from ..op import attrs_of, get_op
from ..struct_info import ShapeStructInfo
from .graph_pass import graph_pass

__all__ = ["DecomposeOpsForInference", "DecomposeOpsForTraining"]


def _spread(value: RelayExpr, rank: int, axes: Sequence[int]) -> RelayExpr:
    """A value over some axes of the data as one that broadcasts with the data."""
    others = [axis for axis in range(rank) if axis not in axes]
    return op.expand_dims(value, others) if others else value


def _normalised(
    data: RelayExpr, statistics: Sequence[RelayExpr], call: Call, axes: Sequence[int]
) -> RelayExpr:
    """(data - mean) / sqrt(variance + epsilon) * gamma + beta, as the call's settings say."""
    attrs, rank = attrs_of(call), data.struct_info.ndim
    dtype = str(data.struct_info.dtype)
    mean, variance = statistics
    root = op.sqrt(op.add(variance, const(attrs["epsilon"], dtype)))
    result = op.divide(op.subtract(data, mean), root)
    if attrs["scale"]:
        result = op.multiply(result, _spread(call.args[1], rank, axes))
    if attrs["center"]:
        result = op.add(result, _spread(call.args[2], rank, axes))
    return result


@mutator
class _Decomposer(PyExprMutator):
    def __init__(self, mod: IRModule, training: bool) -> None:
        super().__init__(mod)
        self._training = training

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if call.op.same_as(get_op("nn.batch_norm")):
            return self._batch_norm(call)
        if call.op.same_as(get_op("nn.layer_norm")) and self._training:
            return self._layer_norm(call)
        if call.op.same_as(get_op("tensor_to_shape")):
            return self._tensor_to_shape(call)
        return call

    def _batch_norm(self, call: Call) -> RelayExpr:
        data, mean, variance = call.args[0], call.args[3], call.args[4]
        attrs, rank = attrs_of(call), call.args[0].struct_info.ndim
        axis = int(attrs["axis"]) % rank
        if not self._training:
            spread = [_spread(value, rank, [axis]) for value in (mean, variance)]
            return Tuple([_normalised(data, spread, call, [axis]), mean, variance])
        others = [k for k in range(rank) if k != axis]
        batch = [self.builder_.emit(op.mean(data, others))]
        batch.append(self.builder_.emit(op.variance(data, others)))
        spread = [_spread(value, rank, [axis]) for value in batch]
        share, dtype = attrs["momentum"], str(mean.struct_info.dtype)
        moved = [
            op.add(op.multiply(const(1 - share, dtype), old), op.multiply(const(share, dtype), new))
            for old, new in zip((mean, variance), batch)
        ]
        return Tuple([_normalised(data, spread, call, [axis]), *moved])

    def _layer_norm(self, call: Call) -> RelayExpr:
        data, rank = call.args[0], call.args[0].struct_info.ndim
        axes = [int(axis) % rank for axis in attrs_of(call)["axes"]]
        mean = op.mean(data, axes, keepdims=True)
        variance = op.variance(data, axes, keepdims=True)
        return _normalised(data, [mean, variance], call, axes)

    def _tensor_to_shape(self, call: Call) -> RelayExpr:
        """The shape as a value whose extents have names."""
        info = call.struct_info
        if not isinstance(info, ShapeStructInfo) or info.ndim < 0:
            return call
        function = ExternFunc("vm.builtin.tensor_to_shape")
        shape = self.builder_.emit(
            op.call_pure_packed(function, call.args[0], sinfo_args=ShapeStructInfo(ndim=info.ndim))
        )
        extents = [tir.Var("x", "int64") for _ in range(info.ndim)]
        self.builder_.match_cast(shape, ShapeStructInfo(extents))
        return ShapeExpr(extents)


def _decomposed(mod: IRModule, func_name: str | None, training: bool) -> IRModule:
    decomposer = _Decomposer(mod, training)
    for gvar, func in mod.functions.items():
        if isinstance(func, Function) and func_name in (None, str(gvar.name_hint)):
            decomposer.builder_.update_func(gvar, decomposer.visit_expr(func))
    return decomposer.builder_.get()


@graph_pass("DecomposeOpsForInference")
def DecomposeOpsForInference(mod: IRModule, func_name: str | None = None) -> IRModule:
    """The module with operators that stand for several others written as these, for inference.

    A batch norm uses the statistics that it is given and gives them back; ``tensor_to_shape``
    becomes a call of the runtime whose result has symbolic extents.

    Parameters
    ----------
    func_name : the one function that this is done to; all graph functions by default.
    """
    return _decomposed(mod, func_name, training=False)


@graph_pass("DecomposeOpsForTraining")
def DecomposeOpsForTraining(mod: IRModule, func_name: str | None = None) -> IRModule:
    """The same for training: what is left has gradients.

    A batch norm uses the statistics of the batch, and gives the moving ones with a share
    "momentum" of them; layer norms are written out as well.

    Parameters
    ----------
    func_name : the one function that this is done to; all graph functions by default.
    """
    return _decomposed(mod, func_name, training=True)
