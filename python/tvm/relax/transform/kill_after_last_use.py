"""Objects that are let go of after the last place that reads them."""

from __future__ import annotations

from tvm.ir import IRModule, RelayExpr

from ..analysis import all_vars
from ..expr import Binding, Call, Function, SeqExpr, Var
from ..expr_functor import PyExprMutator, mutator
from ..op import get_op
from ..op.builtin import memory, vm
from ..struct_info import ObjectStructInfo, TensorStructInfo
from .graph_pass import graph_pass

__all__ = ["KillAfterLastUse"]

# Their results are the operand, or a part of its memory.
_SAME_MEMORY = ("memory.alloc_tensor", "vm.alloc_tensor", "reshape")


def _is_call(value: RelayExpr, *names: str) -> bool:
    return isinstance(value, Call) and any(value.op.same_as(get_op(name)) for name in names)


def _released(binding: Binding) -> Call | None:
    """What lets go of a variable; None for values that hold no memory of their own."""
    var, value = binding.var, binding.value
    if _is_call(value, "memory.alloc_storage"):
        return memory.kill_storage(var)
    if _is_call(value, "memory.alloc_tensor"):
        return memory.kill_tensor(var)
    holds_memory = isinstance(var.struct_info, (ObjectStructInfo, TensorStructInfo))
    return vm.kill_object(var) if holds_memory and isinstance(value, Call) else None


def _is_storage(release: Call) -> bool:
    return _is_call(release, "memory.kill_storage")


class _Readers:
    """The last place of a body that reads each variable, or memory that is a part of its own."""

    def __init__(self, expr: SeqExpr) -> None:
        self._owners: dict[Var, list[Var]] = {}
        self.last: dict[Var, Var | None] = {}
        for block in expr.blocks:
            for binding in block.bindings:
                read = all_vars(binding.value)
                for var in read:
                    self._read_at(var, binding.var)
                if _is_alias(binding.value):
                    self._owners[binding.var] = read
                # What nobody reads is let go of at once.
                self.last[binding.var] = binding.var
        for var in all_vars(expr.body):
            self._read_at(var, None)

    def _read_at(self, var: Var, place: Var | None) -> None:
        if var in self.last:
            self.last[var] = place
        for owner in self._owners.get(var, ()):
            self._read_at(owner, place)


def _is_alias(value: RelayExpr) -> bool:
    return not isinstance(value, Call) or _is_call(value, *_SAME_MEMORY)


@mutator
class _Killer(PyExprMutator):
    def visit_seq_expr_(self, op: SeqExpr) -> RelayExpr:
        last: dict[Var, list[Var]] = {}
        for var, place in _Readers(op).last.items():
            if place is not None:
                last.setdefault(place, []).append(var)
        bindings = {b.var: b for block in op.blocks for b in block.bindings}
        blocks = []
        for block in op.blocks:
            self.builder_.begin_binding_block()
            for binding in block.bindings:
                self.visit_binding(binding)
                releases = [_released(bindings[var]) for var in last.get(binding.var, ())]
                # Tensors go before the storage that they are in.
                for release in sorted(filter(None, releases), key=_is_storage):
                    self.builder_.emit(release, "_")
            blocks.append(self.builder_.end_block())
        return SeqExpr(blocks, op.body)


@graph_pass("KillAfterLastUse")
def KillAfterLastUse(mod: IRModule) -> IRModule:
    """The module with objects let go of right after the last binding that reads them.

    Storage, tensors in storage, and other tensors and objects that calls give are let go of by
    ``memory.kill_storage``, ``memory.kill_tensor`` and ``vm.kill_object``. Reshaped tensors, fields
    and other names keep alive what they are of. Expects plain blocks, as `ToNonDataflow` leaves
    them, and functions that may have effects.
    """
    functions = {
        gvar: _Killer(mod).visit_expr(func) if isinstance(func, Function) else func
        for gvar, func in mod.functions.items()
    }
    return mod.with_functions(functions)
