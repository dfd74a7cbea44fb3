"""Matrix products by Strassen's seven products, where that is estimated to be less work."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tvm.ir import IRModule, RelayExpr
from tvm.topi.nn import strassen_block, strassen_gain, strassen_weight

from .. import op
from ..expr import Call, Constant, Function, Var
from ..op import OpPattern
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import TensorStructInfo, static_shape
from .forms import Forms
from .graph_pass import graph_pass

__all__ = ["ConvertStrassen"]

# Less is not worth the memory, three quarters of the weights.
_LEAST_GAIN = 1.07
# Of fewer rows, the weights take longer to come from memory than to be multiplied; of few, they
# must be large enough to be read ahead.
_LEAST_ROWS, _FEW_ROWS, _LARGE_WEIGHTS = 32, 64, 1 << 20
_BROADCAST = frozenset(
    f"relax.{name}" for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")
)


class _Converter(FunctionRewriter):
    def __init__(self, func: Function, forms: Forms) -> None:
        super().__init__(func)
        self._forms = forms

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, Call) or not op.has_op(value.op):
            return value
        weight = _weight_matrix(value)
        if weight is not None:
            return self._product(value, weight) or value
        return self._on_rows(value) or value

    def _product(self, call: Call, weight: np.ndarray) -> RelayExpr | None:
        *leading, _ = static_shape(call.struct_info)
        rows, (depth, columns) = math.prod(leading), weight.shape
        block = strassen_block(columns)
        if block is None or depth % 2 or rows < _LEAST_ROWS:
            return None
        if rows < _FEW_ROWS and depth * columns < _LARGE_WEIGHTS:
            return None
        if strassen_gain(rows, depth, columns) < _LEAST_GAIN:
            return None
        if not self._forms.rewrites("strassen", rows, depth, columns):
            return None
        sums = self._forms.constant(
            call.args[1], ("strassen", block), lambda: strassen_weight(weight, block)
        )
        product = op.nn.strassen_product(self._as_rows(call.args[0], rows, depth), sums)
        return self._in_shape(product, static_shape(call.struct_info))

    def _on_rows(self, call: Call) -> RelayExpr | None:
        """An elementwise call after a product, computed on its rows, to be part of its kernel."""
        pattern = op.op_spec(call.op).pattern
        if pattern != OpPattern.ELEMWISE and str(call.op.name) not in _BROADCAST:
            return None
        if not _is_tensor(call):
            return None
        shape = static_shape(call.struct_info)
        if not any(self._rows_of(arg, shape) for arg in call.args):
            return None
        rows, columns = math.prod(shape[:-1]), shape[-1]
        operands = []
        for arg in call.args:
            size = static_shape(arg.struct_info) if _is_tensor(arg) else ()
            if size == shape:
                operands.append(self._as_rows(arg, rows, columns))
            elif math.prod(size[:-1]) == 1:
                # Numbers and vectors along the columns.
                flat = size if len(size) <= 1 else size[-1:]
                operands.append(arg if flat == size else self._reshaped(arg, flat))
            else:
                return None
        return self._in_shape(op.make_call(_short(call), *operands, **op.attrs_of(call)), shape)

    def _in_shape(self, rows: Call, shape: Sequence[int]) -> RelayExpr:
        if len(shape) == 2:
            return rows
        return op.reshape(self.emit(rows), shape)

    def _rows_of(self, value: RelayExpr, shape: Sequence[int]) -> Var | None:
        """The rows that a value is another shape of, if they come from a product."""
        view = self.values.get(value) if isinstance(value, Var) else None
        if not isinstance(view, Call) or str(getattr(view.op, "name", "")) != "relax.reshape":
            return None
        source = view.args[0]
        expected = (math.prod(shape[:-1]), shape[-1])
        if static_shape(value.struct_info) != tuple(shape):
            return None
        return source if static_shape(source.struct_info) == expected else None

    def _as_rows(self, value: RelayExpr, rows: int, columns: int) -> RelayExpr:
        shape = static_shape(value.struct_info)
        if shape == (rows, columns):
            return value
        known = self._rows_of(value, shape)
        return known if known is not None else self._reshaped(value, (rows, columns))

    def _reshaped(self, value: RelayExpr, shape: Sequence[int]) -> RelayExpr:
        return self.emit(op.reshape(value, shape))


def _is_tensor(value: RelayExpr) -> bool:
    return isinstance(value.struct_info, TensorStructInfo)


def _short(call: Call) -> str:
    return str(call.op.name).removeprefix("relax.")


def _weight_matrix(call: Call) -> np.ndarray | None:
    """The (K, N) float32 weights of a call that is a matrix product of rows with them."""
    if str(call.op.name) not in ("relax.nn.dense", "relax.nn.conv2d"):
        return None
    weight = call.args[1]
    if not isinstance(weight, Constant) or weight.struct_info.dtype != "float32":
        return None
    if call.struct_info.dtype != "float32":
        return None
    if str(call.op.name) == "relax.nn.dense":
        return weight.values().T
    settings = op.attrs_of(call)
    kernel_h, kernel_w, *_ = shape = static_shape(weight.struct_info)
    layouts = [settings["data_layout"], settings["kernel_layout"], settings["out_layout"]]
    if layouts[:2] != ["NHWC", "HWIO"] or layouts[2] not in (None, "", "NHWC"):
        return None
    if (kernel_h, kernel_w, settings["groups"]) != (1, 1, 1) or any(settings["padding"]):
        return None
    if any(size != 1 for size in settings["strides"]):
        return None
    return weight.values().reshape(shape[2:])


@graph_pass("ConvertStrassen")
def ConvertStrassen(mod: IRModule, forms: Forms | None = None) -> IRModule:
    """The module with large matrix products in seven products of half the size, after Strassen.

    Dense layers, and convolutions of 1x1 at stride 1 in NHWC, whose weights are float32 constants,
    where an estimate of sums and products says that it is less work. Weights take 7/4 of their
    memory. Errors are by rounding, up to twice those of the plain product. What follows element by
    element is computed on the rows of the product as well. The product has a schedule for
    processors only.

    Parameters
    ----------
    forms : which products stay; they are "strassen" with rows, depth and columns.
    """
    return map_functions(mod, lambda func: _Converter(func, forms or Forms()).run())
