"""Products with constant matrices as dense layers, whose weights are stored as schedules want."""

from __future__ import annotations

import numpy as np

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Constant, Function, Var
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import settled_shape
from .graph_pass import graph_pass

__all__ = ["WeightProducts"]


class _Maker(FunctionRewriter):
    def __init__(self, func: Function) -> None:
        super().__init__(func)
        # Products that share a matrix, such as those of many steps, go on to share it.
        self._turned: dict[tuple[Constant, tuple[int, ...]], Constant] = {}

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, Call) or str(getattr(value.op, "name", "")) != "relax.matmul":
            return value
        data, right = value.args
        shape, constant = settled_shape(data), self._constant(right)
        if shape is None or len(shape) < 2 or constant is None or len(constant.data.shape) != 2:
            return value
        kinds = {str(part.struct_info.dtype) for part in (data, right, value)}
        if len(kinds) > 1:
            return value
        return op.nn.dense(data, self._with_axes(constant, (1, 0)))

    def _constant(self, value: RelayExpr) -> Constant | None:
        """The constant that a value is, behind changes of the order of its axes."""
        if isinstance(value, Constant):
            return value
        move = self.values.get(value) if isinstance(value, Var) else None
        if not isinstance(move, Call) or str(getattr(move.op, "name", "")) != "relax.permute_dims":
            return None
        source = self._constant(move.args[0])
        if source is None:
            return None
        axes, rank = op.attrs_of(move).get("axes"), len(source.data.shape)
        order = range(rank)[::-1] if axes is None else [int(axis) % rank for axis in axes]
        return self._with_axes(source, tuple(order))

    def _with_axes(self, constant: Constant, order: tuple[int, ...]) -> Constant:
        if (constant, order) not in self._turned:
            self._turned[constant, order] = constant.rearranged(
                lambda array: np.transpose(array, order)
            )
        return self._turned[constant, order]


@graph_pass("WeightProducts")
def WeightProducts(mod: IRModule) -> IRModule:
    """The module with ``matmul(x, w)`` as ``nn.dense(x, w.T)`` where w is a constant matrix.

    Constants whose axes a graph turns count as well, such as the weights of ONNX' Gemm.
    """
    return map_functions(mod, lambda func: _Maker(func).run())
