"""How long values are kept."""

from __future__ import annotations

from tvm import relax
from tvm.ir import Op, RelayExpr, TupleType

from ..expr import Call
from .op import register_stateful
from .registry import OpPattern, define, make

__all__ = ["is_kill", "kill"]

define(
    "memory.kill",
    None,
    OpPattern.OPAQUE,
    rule=lambda types, settings, args: TupleType([]),
    # Memory of graphs is planned by what is still used.
    lower=lambda args, settings: relax.Tuple([]),
    host=lambda arrays, settings: (),
    num_inputs=1,
)
register_stateful("memory.kill", True)


def kill(value: RelayExpr) -> Call:
    """Let go of a variable's value, which nothing reads any more; the result is the empty tuple.

    `relay.transform.ManifestLifetimes` writes such calls. The executors "vm" and "debug" forget the
    variable there, so reading it behind is an error; compiled graphs have their memory planned.
    """
    return make("memory.kill", [value])


def is_kill(expr: RelayExpr) -> bool:
    """Whether an expression is such a call."""
    return isinstance(expr, Call) and isinstance(expr.op, Op) and str(expr.op.name) == "memory.kill"
