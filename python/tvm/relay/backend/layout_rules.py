"""What the operator library's layout rules mean for relay, and who asks them by default."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import autotvm, topi
from tvm.ir import Op, RelayExpr, TensorType
from tvm.target import Target
from tvm.topi.x86.vectors import vector_lanes

from ..expr import Call
from ..op import nn, register_alter_op_layout
from .templates import in_blocks
from .workloads import conv2d_workloads, dense_workloads, settings_with_defaults

__all__: list[str] = []


_CONV2D_RULES: Any = topi.nn.conv2d_alter_layout
_DENSE_RULES: Any = topi.nn.dense_alter_layout


def _widest_block(extent: int, most: int) -> int:
    return max(block for block in range(1, most + 1) if extent % block == 0)


@_CONV2D_RULES.register("cpu")
def _blocks(
    attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[TensorType], out_type: TensorType
) -> RelayExpr | None:
    """Blocks of channels as records say, or else as wide as vectors; NCHW only."""
    call = Call(Op.get("nn.conv2d"), list(inputs), attrs)
    settings = settings_with_defaults(call)
    target = Target.current()
    workloads = conv2d_workloads(tinfos, out_type, settings)
    if not workloads or target is None:
        return None
    [workload] = workloads
    config = autotvm.DispatchContext.current.recorded(target, workload)
    if config is not None:
        outer, inner = (int(config[knob].size[-1]) for knob in ("tile_oc", "tile_ic"))
    else:
        channels, filters = int(tinfos[0].shape[1]), int(tinfos[1].shape[0])
        lanes = vector_lanes(target, str(out_type.dtype))
        inner, outer = (_widest_block(extent, lanes) for extent in (channels, filters))
    return in_blocks(inputs, settings, outer if settings["groups"] > 1 else inner, outer)


@register_alter_op_layout("nn.conv2d", level=10)
def _alter_conv2d(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> RelayExpr | None:
    # Without a target there is nothing that a layout could be best for.
    if Target.current() is None:
        return None
    return topi.nn.conv2d_alter_layout(attrs, inputs, tinfos, out_type)


@_DENSE_RULES.register("cpu")
def _panels(
    attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[TensorType], out_type: TensorType
) -> RelayExpr | None:
    """Weights in panels of rows as records say, or else of up to two vectors.

    Where the fastest record is one for weights as they are, they stay.
    """
    call = Call(Op.get("nn.dense"), list(inputs), attrs)
    target = Target.current()
    workloads = dense_workloads(tinfos, out_type, settings_with_defaults(call))
    if not workloads or target is None:
        return None
    context = autotvm.DispatchContext.current
    recorded = [(workload[0], context.recorded(target, workload)) for workload in workloads]
    known = [(name, config) for name, config in recorded if config is not None]
    if known:
        name, config = min(known, key=lambda k: math.inf if k[1].cost is None else k[1].cost)
        if name != "dense_pack.x86":
            return None
        block = int(config["tile_x"].size[-1])
    else:
        lanes = vector_lanes(target, str(out_type.dtype))
        block = _widest_block(int(tinfos[1].shape[0]), 2 * lanes)
    data, weight = inputs
    return nn.contrib_dense_pack(data, weight, f"NC{block}n", None, str(out_type.dtype))


@register_alter_op_layout("nn.dense", level=10)
def _alter_dense(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> RelayExpr | None:
    if Target.current() is None:
        return None
    return topi.nn.dense_alter_layout(attrs, inputs, tinfos, out_type)
