"""What the operator library's layout rules mean for relay, and who asks them by default."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import autotvm, topi
from tvm.ir import Op, RelayExpr, TensorType
from tvm.target import Target
from tvm.topi.x86.vectors import vector_lanes

from ..expr import Call
from ..op import register_alter_op_layout
from ..op.registry import row_of, settings_of
from .templates import in_blocks
from .workloads import conv2d_workloads

__all__: list[str] = []


_RULES: Any = topi.nn.conv2d_alter_layout


@_RULES.register("cpu")
def _blocks(
    attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[TensorType], out_type: TensorType
) -> RelayExpr | None:
    """Blocks of channels as records say, or else as wide as vectors; NCHW only."""
    call = Call(Op.get("nn.conv2d"), list(inputs), attrs)
    settings = {**row_of(call.op).settings, **settings_of(call)}
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
        inner, outer = (
            max(block for block in range(1, lanes + 1) if extent % block == 0)
            for extent in (channels, filters)
        )
    return in_blocks(inputs, settings, outer if settings["groups"] > 1 else inner, outer)


@register_alter_op_layout("nn.conv2d", level=10)
def _alter_conv2d(attrs: Any, inputs: Any, tinfos: Any, out_type: Any) -> RelayExpr | None:
    # Without a target there is nothing that a layout could be best for.
    if Target.current() is None:
        return None
    return topi.nn.conv2d_alter_layout(attrs, inputs, tinfos, out_type)
