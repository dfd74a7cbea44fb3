"""Blocks: their axes, what they read and write, and the buffers they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tvm import error, ir, tir

from ..base import IRBuilder
from .frames import BlockFrame, BlockInitFrame, ForFrame
from .literals import annotations_of, expression, interval

__all__ = ["AXES", "axis", "block", "block_attr", "init", "reads", "region_of", "where", "writes"]

# Kinds of axes by the names that scripts have for them.
AXES = {
    "spatial": tir.IterVar.DataPar,
    "reduce": tir.IterVar.CommReduce,
    "scan": tir.IterVar.Ordered,
    "opaque": tir.IterVar.DimInfo,
    "DataPar": tir.IterVar.DataPar,
    "ThreadIndex": tir.IterVar.ThreadIndex,
    "CommReduce": tir.IterVar.CommReduce,
    "Ordered": tir.IterVar.Ordered,
    "Opaque": tir.IterVar.DimInfo,
    "Unrolled": tir.IterVar.Unrolled,
    "Vectorized": tir.IterVar.Vectorized,
    "Parallelized": tir.IterVar.Parallelized,
    "Tensorized": tir.IterVar.Tensorized,
}
# Letters of T.axis.remap.
_LETTERS = {"S": "spatial", "R": "reduce", "C": "scan", "O": "opaque"}


def block(name: str = "", no_realize: bool = False) -> BlockFrame:
    """A block, for a ``with``; `no_realize` leaves it without values for its axes."""
    return BlockFrame(name, no_realize)


def init() -> BlockInitFrame:
    """What the block does in the first iteration over its reduction axes, for a ``with``."""
    return BlockInitFrame()


def _block(what: str) -> BlockFrame:
    frame = IRBuilder.current().find(BlockFrame)
    if frame is None:
        raise error.ValueError(f'{what} stands in a block; open one with T.block("name")')
    return frame


def where(predicate: Any) -> None:
    """The block runs only for values of its axes for which this holds."""
    frame = _block("T.where")
    if frame.predicate is not None:
        raise error.ValueError("a block has one T.where")
    frame.predicate = expression(predicate)


def region_of(value: Any) -> tir.BufferRegion:
    """An element, a region, or a whole buffer as a region."""
    if isinstance(value, tir.BufferRegion):
        return value
    if isinstance(value, tir.Buffer):
        return tir.BufferRegion(value)
    if isinstance(value, tir.BufferLoad):
        return tir.BufferRegion(value.buffer, [_range_of(index) for index in value.indices])
    raise error.TypeError(f"a region of a buffer is needed here, such as A[i, 0:8], not {value!r}")


def _range_of(index: tir.PrimExpr) -> ir.Range:
    if isinstance(index, tir.Ramp):
        if not (isinstance(index.stride, tir.IntImm) and int(index.stride) == 1):
            raise error.ValueError(f"a region has no steps, but {index} has")
        return ir.Range.from_min_extent(index.base, index.lanes.astype(str(index.base.dtype)))
    return ir.Range.from_min_extent(index, tir.const(1, str(index.dtype)))


def _regions(items: tuple[Any, ...]) -> list[tir.BufferRegion]:
    flat: list[Any] = []
    for item in items:
        flat += item if isinstance(item, list | tuple) else [item]
    return [region_of(item) for item in flat]


def reads(*buffer_slices: Any) -> None:
    """What the block reads; without it, that is worked out."""
    frame = _block("T.reads")
    if frame.reads is not None:
        raise error.ValueError("a block has one T.reads")
    frame.reads = _regions(buffer_slices)


def writes(*buffer_slices: Any) -> None:
    """What the block writes; without it, that is worked out."""
    frame = _block("T.writes")
    if frame.writes is not None:
        raise error.ValueError("a block has one T.writes")
    frame.writes = _regions(buffer_slices)


def block_attr(attrs: Mapping[str, Any]) -> None:
    """Annotations of the block."""
    frame = _block("T.block_attr")
    if frame.annotations is not None:
        raise error.ValueError("a block has one T.block_attr")
    frame.annotations = annotations_of(attrs)


class axis:
    """Axes of blocks: ``T.axis.spatial(extent, value)``; ``T.axis.remap`` makes several.

    Axes of a block without values (``T.block(name, no_realize=True)``) need no value.
    """

    @staticmethod
    def spatial(dom: Any, binding: Any = None, dtype: str = "int32") -> tir.Var:
        """An axis whose iterations write different elements."""
        return _push("spatial", dom, binding, dtype)

    @staticmethod
    def reduce(dom: Any, binding: Any = None, dtype: str = "int32") -> tir.Var:
        """An axis over which elements are combined."""
        return _push("reduce", dom, binding, dtype)

    @staticmethod
    def scan(dom: Any, binding: Any = None, dtype: str = "int32") -> tir.Var:
        """An axis whose iterations run in order."""
        return _push("scan", dom, binding, dtype)

    @staticmethod
    def opaque(dom: Any, binding: Any = None, dtype: str = "int32") -> tir.Var:
        """An axis of which nothing is promised."""
        return _push("opaque", dom, binding, dtype)

    S, R = spatial, reduce

    @staticmethod
    def remap(kinds: str, bindings: Any, dtype: str = "int32") -> Any:
        """One axis a loop, with the loop's domain: ``v_i, v_k = T.axis.remap("SR", [i, k])``."""
        loops = list(bindings) if isinstance(bindings, list | tuple) else [bindings]
        if len(kinds) != len(loops):
            raise error.ValueError(
                f"T.axis.remap has {len(kinds)} letters and {len(loops)} loops; each axis needs "
                "one of each"
            )
        axes = []
        for letter, loop in zip(kinds, loops):
            if letter not in _LETTERS:
                raise error.ValueError(f"there are no axes {letter!r}; S is spatial, R is reduce")
            axes.append(_add(_LETTERS[letter], _domain_of(loop), loop))
        return axes[0] if len(axes) == 1 else axes


def _domain_of(loop: Any) -> ir.Range:
    for frame in reversed(IRBuilder.current().frames):
        if isinstance(frame, ForFrame):
            for variable, domain in zip(frame.variables, frame.domains):
                if variable.same_as(loop):
                    return domain
    raise error.ValueError(
        f"`{loop}` is not a loop; T.axis.spatial(extent, value) takes any expression"
    )


def _push(kind: str, dom: Any, binding: Any, dtype: str) -> tir.Var:
    if isinstance(dom, ir.Range):
        domain = dom
    elif isinstance(dom, list | tuple):
        if len(dom) != 2:
            raise error.ValueError("a domain is an extent or (begin, end)")
        domain = interval(*dom)
    else:
        domain = interval(0, dom)
    if binding is None:
        if not _block("an axis").no_realize:
            raise error.ValueError(f"T.axis.{kind} needs a value: T.axis.{kind}(extent, value)")
        return _add(kind, domain, None)
    value = expression(binding, domain.extent)
    if str(value.dtype) == "int64" and str(domain.extent.dtype) == "int32":
        # The value is looked at as a whole, so the axis is as wide.
        domain = ir.Range.from_min_extent(domain.min.astype("int64"), domain.extent.astype("int64"))
    return _add(kind, domain, value)


def _add(kind: str, domain: ir.Range, value: tir.PrimExpr | None) -> tir.Var:
    frame = _block("an axis")
    var = tir.Var("", str(domain.extent.dtype))
    frame.axes.append(tir.IterVar(domain, var, AXES[kind]))
    if value is not None:
        frame.values.append(value)
    return var
