"""Operators whose result has a shape that depends on values: calls of functions of the runtime."""

from __future__ import annotations

from tvm import tir
from tvm.ir import RelayExpr

from ...block_builder import BlockBuilder
from ...expr import Call
from ...op import call_pure_packed
from ...struct_info import TensorStructInfo
from .common import register_legalize

__all__: list[str] = []


def _on_host(builder: BlockBuilder, call: Call) -> RelayExpr:
    name = str(call.op.name).removeprefix("relax.")
    result = call_pure_packed(f"relax.run.{name}", *call.args, sinfo_args=call.struct_info)
    info = call.struct_info
    if not isinstance(info, TensorStructInfo) or info.shape is not None or info.ndim < 0:
        return result
    # What reads the result is compiled for extents that are known by name.
    extents = [tir.Var(f"extent_{k}", "int64") for k in range(info.ndim)]
    named = TensorStructInfo(extents, info.dtype, vdevice=info.vdevice)
    return builder.match_cast(builder.emit(result), named)


for _name in ("unique", "nonzero", "dynamic_strided_slice"):
    register_legalize(f"relax.{_name}", _on_host)
