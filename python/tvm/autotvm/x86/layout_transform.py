"""Moving data between layouts, timed like any operator."""

from __future__ import annotations

from typing import Any

from tvm import te, topi
from tvm.target import Target

from ..task import get_config, template

__all__: list[str] = []


@template("layout_transform")
def layout_transform(data: te.Tensor, src_layout: str, dst_layout: str) -> Any:
    """``topi.layout_transform`` by the library's schedule, which has no knobs."""
    # Nothing moves twice, so bytes are what counts; records want operations.
    get_config().add_flop(float(topi.utils.prod(topi.utils.const_shape(data.shape))))
    moved = topi.layout_transform(data, src_layout, dst_layout)
    target = Target.current() or Target("llvm")
    return topi.schedule_for(moved, target), [data, moved]
