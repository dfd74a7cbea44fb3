"""Operators whose result has a shape that depends on values: calls of functions of the runtime."""

from __future__ import annotations

from tvm.ir import RelayExpr

from ...block_builder import BlockBuilder
from ...expr import Call
from ...op import call_pure_packed
from .common import register_legalize

__all__: list[str] = []


def _on_host(builder: BlockBuilder, call: Call) -> RelayExpr:
    name = str(call.op.name).removeprefix("relax.")
    return call_pure_packed(f"relax.run.{name}", *call.args, sinfo_args=call.struct_info)


for _name in ("unique", "nonzero"):
    register_legalize(f"relax.{_name}", _on_host)
