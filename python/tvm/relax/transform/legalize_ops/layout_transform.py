"""The kernel that puts elements where an index map says."""

from __future__ import annotations

from typing import Any

from tvm import error, te, tir
from tvm.ir import RelayExpr

from ...block_builder import BlockBuilder
from ...expr import Call, ShapeExpr
from ...op import call_tir
from ...struct_info import TensorStructInfo
from .common import register_legalize


def _has_padding(index_map: tir.IndexMap, shape: list[Any]) -> bool:
    finals = list(index_map.final_indices)
    if all(isinstance(e, tir.Var) for e in finals) and len(set(finals)) == len(shape):
        return False
    try:
        index_map.inverse(shape)
    except error.TVMError:
        return True
    return False


def _layout_transform(builder: BlockBuilder, call: Call) -> RelayExpr:
    info = call.args[0].struct_info
    if not isinstance(info, TensorStructInfo) or not isinstance(info.shape, ShapeExpr):
        return call
    index_map = call.attrs["index_map"]
    pad = call.attrs.get("pad_value", None)
    value = tir.const(0, str(info.dtype)) if pad is None else pad.value
    separators = [int(axis) for axis in call.attrs.get("axis_separators", None) or ()]
    name = "te_layout_transform"
    name += "_with_pad" * _has_padding(index_map, list(info.shape.values))
    name += "_axis_separator" * bool(separators)

    def copy(data: te.Tensor) -> te.Tensor:
        return te.compute(data.shape, lambda *at: data(*at), name)

    # A copy, whose result is then laid out anew.
    scratch = BlockBuilder()
    copied = scratch.call_te(copy, call.args[0])
    schedule = tir.Schedule(scratch.get()[copied.args[0]])
    schedule.transform_layout(name, ("write", 0), index_map, value)
    if separators:
        schedule.set_axis_separator(name, ("write", 0), separators)
    read = [int(axis) for axis in call.attrs.get("input_axis_separators", None) or ()]
    if read:
        schedule.set_axis_separator(name, ("read", 0), read)
    gvar = builder.add_func(schedule.mod["main"], name)
    extents = copied.args[2] if len(copied.args) > 2 else None
    return call_tir(gvar, [call.args[0]], call.struct_info, extents)


register_legalize("relax.layout_transform", _layout_transform)
