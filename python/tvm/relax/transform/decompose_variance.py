"""Variances as the sums that they are, which kernels around them join."""

from __future__ import annotations

import math

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Var, const
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import settled_shape
from .graph_pass import graph_pass

__all__ = ["DecomposeVariance"]


class _Decomposer(FunctionRewriter):
    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        name = str(getattr(value.op, "name", "")) if isinstance(value, Call) else ""
        if name not in ("relax.variance", "relax.std"):
            return value
        data = value.args[0]
        shape, dtype = settled_shape(data), str(data.struct_info.dtype)
        if shape is None or dtype not in ("float32", "float64"):
            return value
        settings = op.attrs_of(value)
        axis, keepdims = settings.get("axis"), bool(settings.get("keepdims", False))
        axes = range(len(shape)) if axis is None else axis if hasattr(axis, "__len__") else [axis]
        axes = sorted(int(k) % len(shape) for k in axes)
        count = math.prod(shape[k] for k in axes)
        divisor = max(count - float(settings.get("correction", 0.0)), 0.0)
        mean = self.emit(op.mean(data, axes, True))
        apart = self.emit(op.subtract(data, mean))
        total = self.emit(op.sum(self.emit(op.multiply(apart, apart)), axes, keepdims))
        variance = op.divide(total, const(divisor, dtype))
        return variance if name == "relax.variance" else op.sqrt(self.emit(variance))


@graph_pass("DecomposeVariance")
def DecomposeVariance(mod: IRModule) -> IRModule:
    """The module with variances and standard deviations written as means and sums of squares.

    Sums of rows are vectorised, take in the differences that they are of, and give their result to
    what follows. Variances of sizes that are not known, or of halves, stay one kernel.
    """
    return map_functions(mod, lambda func: _Decomposer(func).run())
