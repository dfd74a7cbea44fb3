"""Functions whose only effect is the value they return."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import Op

from ..block import Block
from ..expr import Call, Var
from ..function import PrimFunc
from ..functor import StmtExprVisitor
from ..statement import Allocate, BufferRealize, BufferStore
from .analysis import CallEffectKind

__all__ = ["assert_pure_function", "is_pure_function"]


class _Effects(StmtExprVisitor):
    """The first thing that a function does to the world outside of it."""

    def __init__(self) -> None:
        self.found = ""
        self._own: set[Var] = set()

    def visit_allocate_(self, op: Allocate) -> None:
        self._own.add(op.buffer_var)
        self._visit_below(op)

    def visit_buffer_realize_(self, op: BufferRealize) -> None:
        self._own.add(op.buffer.data)
        self._visit_below(op)

    def visit_block_(self, op: Block) -> None:
        self._own.update(buffer.data for buffer in op.alloc_buffers)
        self._visit_below(op)

    def visit_buffer_store_(self, op: BufferStore) -> None:
        if op.buffer.data not in self._own:
            self.found = self.found or f"it stores to buffer {op.buffer.name}, which its caller has"
        self._visit_below(op)

    def visit_call_(self, op: Call) -> None:
        self._visit_below(op)
        if not isinstance(op.op, Op):
            self.found = self.found or f"it calls {op.op}, which may have effects"
            return
        # Leaving the function is what it is for.
        effect = op.op.get_attr("TCallEffectKind")
        may = CallEffectKind.Opaque if effect is None else CallEffectKind(int(effect))
        if op.op.name != "tir.ret" and may > CallEffectKind.ReadState:
            self.found = self.found or f"it calls {op.op.name}, which may have effects"


def _first_effect(func: PrimFunc) -> str:
    effects = _Effects()
    effects.visit(func.body)
    return effects.found


def is_pure_function(func: PrimFunc) -> bool:
    """Whether a function does nothing but read its arguments and return a value.

    Memory that it allocates itself may be written.
    """
    return not _first_effect(func)


def assert_pure_function(func: PrimFunc) -> bool:
    """True for a pure function.

    Raises
    ------
    ValueError : the function has an effect, which the message names.
    """
    found = _first_effect(func)
    if found:
        name: Any = func.attrs.get("global_symbol", "main") if func.attrs else "main"
        raise error.ValueError(f"{name} is not pure: {found}")
    return True
