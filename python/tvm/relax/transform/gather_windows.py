"""First convolutions of lines as products with their windows, whose results are not turned."""

from __future__ import annotations

from typing import Any

from tvm.ir import IRModule, RelayExpr

from .. import op
from ..expr import Call, Constant, Function, ShapeExpr, Var
from ..op import OpPattern
from ..rewriter import FunctionRewriter, map_functions, uses_of
from ..struct_info import settled_shape
from .graph_pass import graph_pass

__all__ = ["GatherWindows"]

# Steps of a sum beside which writing the result counts most, filters beside which the windows are
# few, and places of a result that are worth it.
_MOST_STEPS, _LEAST_FILTERS, _LEAST_PLACES = 32, 32, 64
# What computes on channels that are neighbours.
_ON_CHANNELS = "relax.nn.conv"


class _Gatherer(FunctionRewriter):
    def __init__(self, func: Function) -> None:
        super().__init__(func)
        self._readers: dict[Var, list[Any]] = {}
        for block in func.body.blocks:
            for binding in block.bindings:
                for used in uses_of(binding.value):
                    self._readers.setdefault(used, []).append(binding)

    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if _name(value) != "relax.nn.conv1d" or self._goes_to_channels(var):
            return value
        return self._product(value) or value

    def _goes_to_channels(self, var: Var) -> bool:
        """Whether a convolution reads a value, or what is computed of it by element."""
        pending, seen = [var], {var}
        while pending:
            for binding in self._readers.get(pending.pop(), []):
                name = _name(binding.value)
                if name.startswith(_ON_CHANNELS):
                    return True
                simple = op.has_op(binding.value.op) if isinstance(binding.value, Call) else False
                if not simple or op.op_spec(binding.value.op).pattern > OpPattern.BROADCAST:
                    continue
                if binding.var not in seen:
                    seen.add(binding.var)
                    pending.append(binding.var)
        return False

    def _product(self, call: Any) -> RelayExpr | None:
        """The filters, which are rows, times the windows, which are columns."""
        data, weight = call.args
        settings = op.attrs_of(call)
        shape, result = settled_shape(data), settled_shape(call)
        if shape is None or result is None or not isinstance(weight, Constant):
            return None
        layouts = [settings["data_layout"], settings["kernel_layout"]]
        if layouts != ["NCW", "OIW"] or (settings["out_layout"] or "NCW") != "NCW":
            return None
        filters, channels, width = (int(n) for n in weight.data.shape)
        batch, _, places = result
        steps = channels * width
        fits = steps <= _MOST_STEPS and filters >= _LEAST_FILTERS and places >= _LEAST_PLACES
        if int(settings["groups"]) != 1 or not fits:
            return None
        if settings.get("out_dtype") not in (None, "", "void", str(data.struct_info.dtype)):
            return None
        before, after = (int(n) for n in settings["padding"])
        if before or after:
            data = self.emit(op.nn.pad(data, [0, 0, 0, 0, before, after]))
        length = shape[2] + before + after
        stride, dilation = int(settings["strides"][0]), int(settings["dilation"][0])
        windows = op.make_call(
            "as_strided",
            data,
            ShapeExpr([batch, channels, width, places]),
            strides=[channels * length, length, dilation, stride],
            offset=0,
        )
        columns = self.emit(op.reshape(self.emit(windows), (batch, steps, places)))
        return op.matmul(weight.rearranged(lambda array: array.reshape(filters, steps)), columns)


def _name(value: Any) -> str:
    return str(getattr(value.op, "name", "")) if isinstance(value, Call) else ""


@graph_pass("GatherWindows")
def GatherWindows(mod: IRModule) -> IRModule:
    """The module with convolutions of lines of few steps as products, unless others follow.

    The first layer of a network of sounds sums up few numbers for each of many filters, so that it
    takes as long as writing its result. As a product of filters with windows, which are copied,
    that result has the channels outside, as what follows reads it; a convolution of pixels whose
    channels are neighbours would be turned around. Where another convolution follows, that wants
    channels that are neighbours.
    """
    return map_functions(mod, lambda func: _Gatherer(func).run())
