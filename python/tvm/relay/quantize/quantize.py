"""Convolutions and dense layers written with integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tvm.ir import IRModule, Op, RelayExpr
from tvm.ir.transform import PassContext

from ..analysis.infer import infer_module
from ..binding import bind_params_by_name
from ..expr import Call, Constant, Function, const
from ..expr_functor import PostOrderMutator, post_order_visit
from ..op.registry import find_row, settings_of
from ..qnn import op as qnn
from ..transform import CanonicalizeOps, FoldConstant, FoldScaleAxis, SimplifyInference
from .calibrate import activation_thresholds, weight_threshold
from .config import QConfig, current_qconfig

__all__ = ["prerequisite_optimize", "quantize"]


def prerequisite_optimize(mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
    """A module with parameters bound, without batch norms, and with constants computed."""
    mod = mod.clone()
    if params:
        mod["main"] = bind_params_by_name(mod["main"], params)
    with PassContext(opt_level=3, config=PassContext.current().config):
        for step in (SimplifyInference(), FoldConstant(), FoldScaleAxis(), CanonicalizeOps()):
            mod = step(mod)
        return FoldConstant()(mod)


def _layers(func: Function, config: QConfig) -> list[Call]:
    """The calls to quantise, in order."""
    found: list[Call] = []
    skipped = {int(number) for number in config.skip_conv_layers or ()}
    convolutions = 0

    def look(expr: RelayExpr) -> None:
        nonlocal convolutions
        if not isinstance(expr, Call) or not isinstance(expr.op, Op):
            return
        name = str(expr.op.name)
        if name == "nn.conv2d":
            convolutions += 1
            wanted = convolutions - 1 not in skipped
        else:
            wanted = name == "nn.dense" and not config.skip_dense_layer
        if config.debug_enabled_ops is not None and name not in config.debug_enabled_ops:
            wanted = False
        if wanted and isinstance(expr.args[1], Constant):
            dtype = str(expr.args[0].checked_type.dtype)
            if dtype == "float32":
                found.append(expr)

    post_order_visit(func.body, look)
    return found


class _Realizer(PostOrderMutator):
    """Layers with integers: data is stored in steps of a scale, products are summed in int32."""

    def __init__(self, thresholds: Mapping[Call, float], config: QConfig) -> None:
        super().__init__()
        self._thresholds = thresholds
        self._config = config
        self._stored: dict[tuple[RelayExpr, float], RelayExpr] = {}

    def visit_call(self, call: Call) -> RelayExpr:
        if call not in self._thresholds:
            return super().visit_call(call)
        bits, config = self._config.nbit_weight, self._config
        weight = call.args[1].data.numpy()
        scale = weight_threshold(weight, config.weight_scale) / 2 ** (bits - 1)
        limit = 2 ** (bits - 1) - 1
        steps = np.clip(np.round(weight / np.float32(scale)), -limit, limit)
        data_scale = self._thresholds[call] / 2 ** (config.nbit_input - 1)
        data = self._quantised(self.visit(call.args[0]), data_scale)
        if config.do_simulation:
            rounded = const((steps * np.float32(scale)).astype("float32"))
            real = qnn.dequantize(data, const(data_scale, "float32"), const(0))
            return Call(call.op, [real, rounded], call.attrs)
        product = self._product(call, data, const(steps.astype("int8")), data_scale, scale)
        return qnn.dequantize(product, const(data_scale * scale, "float32"), const(0))

    def _quantised(self, data: RelayExpr, scale: float) -> RelayExpr:
        """Data in int8, once for all that read it."""
        if (data, scale) not in self._stored:
            stored = qnn.quantize(data, const(scale, "float32"), const(0))
            bits = self._config.nbit_input
            if bits < 8:
                limit = 2.0 ** (bits - 1)
                stored = Call(Op.get("clip"), [stored], {"a_min": -limit, "a_max": limit - 1})
            self._stored[data, scale] = stored
        return self._stored[data, scale]

    @staticmethod
    def _product(
        call: Call, data: RelayExpr, weight: RelayExpr, data_scale: float, scale: float
    ) -> RelayExpr:
        row = find_row(call.op)
        assert row is not None
        s = {**row.settings, **settings_of(call)}
        numbers = (
            *(const(0), const(0)),
            *(const(data_scale, "float32"), const(scale, "float32")),
        )
        if str(call.op.name) == "nn.dense":
            return qnn.dense(data, weight, *numbers, s["units"])
        shape = [int(extent) for extent in call.args[1].checked_type.shape]
        letters = s["kernel_layout"]
        window = s["kernel_size"] or [shape[letters.index(axis)] for axis in "HW"]
        channels = s["channels"] or int(call.checked_type.shape[s["data_layout"].index("C")])
        keys = ("strides", "padding", "dilation", "groups", "data_layout", "kernel_layout")
        more = {key: s[key] for key in (*keys, "out_layout")}
        return qnn.conv2d(data, weight, *numbers, window, channels, **more)


def quantize(
    mod: IRModule,
    params: Mapping[str, Any] | None = None,
    dataset: Iterable[Mapping[str, Any]] | None = None,
) -> IRModule:
    """A module whose convolutions, and if asked dense layers, are computed with integers.

    The settings are those of `qconfig` around. Data of a layer is stored in steps of
    threshold / 2^(bits - 1), and its weights too; what layers give is real again, and what stands
    between them is computed as before. Layers whose weights are not constant are left.

    Parameters
    ----------
    params : values of parameters of "main" by name, which become constants.
    dataset : inputs by name, for "kl_divergence" and "percentile".

    Raises
    ------
    ValueError : a dataset is needed and there is none, or it lacks inputs.
    """
    config = current_qconfig()
    mod = prerequisite_optimize(mod, params)
    func = mod["main"]
    layers = _layers(func, config)
    thresholds = activation_thresholds([call.args[0] for call in layers], dataset, config)
    result = mod.clone()
    result["main"] = _Realizer(dict(zip(layers, thresholds)), config).visit(func)
    return infer_module(result)
