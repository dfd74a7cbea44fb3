"""Operators whose settings are tensors, made those whose settings are numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm
from tvm.ir import IRModule, RelayExpr
from tvm.ir.transform import Pass, PassContext, module_pass

from .. import op
from ..expr import Call, as_expr
from ..expr_functor import PostOrderMutator
from ..op.registry import find_row, settings_of
from .base import expression_pass
from .simplify import FoldConstant

__all__ = ["DynamicToStatic"]

Operands = Sequence[RelayExpr]
Settings = Mapping[str, Any]


def _topk(args: Operands, s: Settings) -> Any:
    return op.topk(args[0], args[1], s["axis"], s["ret_type"], s["is_ascend"], s["dtype"])


def _slice(args: Operands, s: Settings) -> Any:
    axes = s.get("axes")
    data, begin, end, strides = args
    axes = None if axes is None else list(axes)
    return op.strided_slice(data, begin, end, strides, axes, s["slice_mode"])


# Each function makes the operator with numbers where its operands are constants.
_STATIC: Mapping[str, Callable[[Operands, Settings], Any]] = {
    "dyn.reshape": lambda a, s: op.reshape(a[0], a[1], s.get("allowzero", False)),
    "dyn.expand_dims": lambda a, s: op.expand_dims(a[0], a[1], s["num_newaxis"]),
    "dyn.squeeze": lambda a, s: op.squeeze(a[0], a[1]),
    "dyn.tile": lambda a, s: op.tile(a[0], a[1]),
    "dyn.broadcast_to": lambda a, s: op.broadcast_to(a[0], a[1]),
    "dyn.zeros": lambda a, s: op.zeros(a[0], s["dtype"]),
    "dyn.ones": lambda a, s: op.ones(a[0], s["dtype"]),
    "dyn.full": lambda a, s: op.full(a[0], a[1], s["dtype"]),
    "dyn.strided_slice": _slice,
    "dyn.one_hot": lambda a, s: op.one_hot(a[0], a[1], a[2], a[3], s["axis"], s["dtype"]),
    "dyn.topk": _topk,
    "dyn.sparse_to_dense": lambda a, s: op.sparse_to_dense(a[0], a[3], a[1], a[2]),
    "dyn.nn.pad": lambda a, s: op.nn.pad(a[0], a[1], a[2], s["pad_mode"]),
}


class _Static(PostOrderMutator):
    def visit_call(self, call: Call) -> RelayExpr:
        new = super().visit_call(call)
        assert isinstance(new, Call)
        row = find_row(new.op)
        make = None if row is None else _STATIC.get(row.name, row.settled)
        if make is None:
            return new
        found = as_expr(make(list(new.args), settings_of(new)))
        known = isinstance(found, Call) and not str(found.op.name).startswith("dyn.")
        return found if known else new


def DynamicToStatic() -> Pass:
    """Give operators the shapes and counts that constants, and what is computed from them and from
    known shapes, say; types then have numbers as extents."""

    @module_pass(opt_level=2, name="DynamicToStatic")
    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        static = expression_pass(lambda f, m: _Static().visit(f), 2, "Static")
        while True:
            # A shape that is known now may be what another one is computed from.
            new = static(FoldConstant()(mod))
            if tvm.ir.structural_equal(new, mod):
                return new
            mod = new

    return run
