"""Primitives that say how loops run, and that annotate loops and blocks."""

from __future__ import annotations

from typing import Any

from tvm.error import ScheduleError

from ..expr import IterVar, Var, convert
from ..stmt import ForKind
from .loops import constant_extent
from .tree import BlockNode, FuncTree, Loop, is_const

__all__ = ["annotate", "bind", "mark", "unannotate"]

THREAD_TAGS = tuple(
    [f"{kind}.{axis}" for kind in ("blockIdx", "threadIdx", "vthread") for axis in "xyz"]
)


def mark(tree: FuncTree, loop: Loop, kind: ForKind) -> None:
    """Run the iterations of a loop in parallel, as lanes of vectors, or written one by one."""
    if kind is not ForKind.PARALLEL:
        constant_extent(loop)
    loop.kind = kind
    loop.thread_binding = None


def bind(tree: FuncTree, loop: Loop, thread_axis: str | IterVar) -> None:
    """Let threads run the iterations of a loop."""
    tag = thread_axis if isinstance(thread_axis, str) else str(thread_axis.thread_tag)
    if tag not in THREAD_TAGS and tag != "vthread":
        raise ScheduleError(f"{tag!r} is no thread axis; there are {', '.join(THREAD_TAGS)}")
    if not is_const(loop.min, 0):
        raise ScheduleError(f"loop {loop.name} starts at {loop.min}; threads count from zero")
    loop.kind = ForKind.THREAD_BINDING
    loop.thread_binding = IterVar(None, Var(tag, loop.var.dtype), IterVar.ThreadIndex, tag)


def annotate(tree: FuncTree, node: Loop | BlockNode, key: str, value: Any) -> None:
    """Attach a value to a loop or a block."""
    node.annotations[key] = convert(value)


def unannotate(tree: FuncTree, node: Loop | BlockNode, key: str) -> None:
    """Remove what :func:`annotate` attached."""
    if key not in node.annotations:
        known = ", ".join(sorted(map(str, node.annotations))) or "none"
        raise ScheduleError(f"{node.name} has no annotation {key!r}; it has {known}")
    del node.annotations[key]
