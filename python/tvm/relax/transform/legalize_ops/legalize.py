"""The pass that replaces operators by kernels."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Collection, Mapping

from tvm.ir import BaseFunc, IRModule, Op, RelayExpr
from tvm.target import Target

from ...expr import Call, Function
from ...expr_functor import PyExprMutator, post_order_visit
from ...op import has_op
from ...struct_info import TensorStructInfo
from ..graph_pass import graph_pass
from .common import Legalization, default_legalization, is_computed, on_mesh, registered

__all__ = ["LegalizeOps", "LegalizeUnfusableOps", "compact_kernels", "legalize_for_targets"]


class _Legalizer(PyExprMutator):
    def __init__(
        self,
        mod: IRModule,
        own: Mapping[str, Legalization],
        fusable: bool = True,
        stepwise: bool = False,
    ) -> None:
        super().__init__(mod)
        self._own = own
        self._fusable = fusable
        self._stepwise = stepwise

    def visit_call_(self, op: Call) -> RelayExpr:
        call = self.visit_expr_post_order(op)
        if not isinstance(call, Call) or not isinstance(call.op, Op):
            return call
        if not self._fusable and has_op(call.op):
            return call
        if call.struct_info is None:
            call = self.builder_.normalize(call)
        legal = on_mesh(call)
        if legal is not None:
            return self.builder_.normalize(legal(self.builder_, call))
        name = str(call.op.name)
        chosen = self._own.get(name) or registered(name)
        if chosen is not None:
            return self._legal_again(chosen, call)
        legal = default_legalization(call, self._stepwise)
        return call if legal is None else self.builder_.normalize(legal(self.builder_, call))

    def _legal_again(self, legal: Legalization, call: Call) -> RelayExpr:
        """What a function of the program gives, whose operators may have to become kernels too."""
        if self.builder_.current_block_is_dataflow():
            self.builder_.begin_dataflow_block()
        else:
            self.builder_.begin_binding_block()
        value = legal(self.builder_, call)
        for binding in self.builder_.end_block().bindings:
            self.visit_binding(binding)
        return value if value.same_as(call) else self.visit_expr(value)


@graph_pass("LegalizeOps")
def LegalizeOps(
    mod: IRModule, customize_legalize_map: Mapping | None = None, enable_warning: bool = False
) -> IRModule:
    """The module with operators as calls of kernels that it has then.

    Operators without a computation, and those of operands whose shape is unknown, stay. Constants
    of no dimension become part of the kernel.

    Parameters
    ----------
    customize_legalize_map : operator's name ("relax.add") to a function of the BlockBuilder and the
        call that gives what stands in its place; these go before those that `register_legalize` was
        told of, and these before the operator's own computation.
    enable_warning : warn of operators that stay, by name.
    """
    result = _legalized(_Legalizer(mod, dict(customize_legalize_map or {}), stepwise=True), mod)
    if enable_warning:
        for name in sorted(_left_in(result)):
            warnings.warn(f"LegalizeOps: no legalization of {name} was found", stacklevel=2)
    return result


def compact_kernels(mod: IRModule, own: Mapping[str, Legalization]) -> IRModule:
    """The module with operators as kernels of as few steps as possible, which nobody schedules.

    Parameters
    ----------
    own : what to do with some operators instead, as `LegalizeOps` takes it.
    """
    return _legalized(_Legalizer(mod, own), mod)


class _TargetedLegalizer(_Legalizer):
    def __init__(self, mod: IRModule, names: Collection[str]) -> None:
        super().__init__(mod, {})
        self._names = names

    def visit_call_(self, op: Call) -> RelayExpr:
        if not isinstance(op.op, Op) or str(op.op.name) not in self._names:
            return self.visit_expr_post_order(op)
        info = op.args[0].struct_info
        device = info.vdevice if isinstance(info, TensorStructInfo) else None
        target = Target.current() if device is None else device.target
        with target or contextlib.nullcontext():
            return super().visit_call_(op)


def legalize_for_targets(mod: IRModule, names: Collection[str]) -> IRModule:
    """The module with some operators as kernels for where their operands live.

    That is the target of the first operand's device, else the current one.
    """
    return _legalized(_TargetedLegalizer(mod, names), mod)


_CALLS = ("relax.call_", "relax.builtin.", "relax.memory.", "relax.vm.", "relax.invoke_")
"""What the names of operators begin with that are how other things are called."""


def _left_in(mod: IRModule) -> set[str]:
    names: set[str] = set()

    def look(expr: RelayExpr) -> None:
        if isinstance(expr, Call) and isinstance(expr.op, Op):
            name = str(expr.op.name)
            if not name.startswith(_CALLS):
                names.add(name)

    for func in mod.functions.values():
        if isinstance(func, Function):
            post_order_visit(func, look)
    return names


@graph_pass("LegalizeUnfusableOps")
def LegalizeUnfusableOps(mod: IRModule) -> IRModule:
    """The module with those operators as calls of kernels that fusion cannot compute."""
    if not any(_has_unfusable(func) for func in mod.functions.values()):
        return mod
    return _legalized(_Legalizer(mod, {}, fusable=False), mod)


def _has_unfusable(func: BaseFunc) -> bool:
    found = False

    def look(expr: RelayExpr) -> None:
        nonlocal found
        if isinstance(expr, Call) and isinstance(expr.op, Op) and not has_op(expr.op):
            found = found or registered(str(expr.op.name)) is not None or is_computed(expr.op)

    if isinstance(func, Function):
        post_order_visit(func, look)
    return found


def _legalized(mutator: _Legalizer, mod: IRModule) -> IRModule:
    for var, function in mod.functions.items():
        if isinstance(function, Function):
            mutator.builder_.update_func(var, mutator.visit_expr(function))
    return mutator.builder_.finalize()
