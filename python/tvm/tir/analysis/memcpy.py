"""Loops that copy one stretch of memory to another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import tvm._ffi
from tvm.arith import Analyzer, detect_linear_equation
from tvm.ir import IntImm, PrimExpr

from ..buffer import Buffer, BufferRegion
from ..expr import BufferLoad, StringImm, Var
from ..statement import BufferStore, For, Stmt
from ..stmt_functor import pre_order_visit
from . import _ffi_api

__all__ = ["identify_memcpy"]


@dataclass
class _Stretch:
    """The elements that a nest touches, as a sum over its variables from `base` on."""

    base: PrimExpr
    steps: list[int]
    touched: int


def identify_memcpy(loop: For) -> tuple[BufferRegion, BufferRegion] | str:
    """The source and the destination of a loop nest that copies memory as it lies.

    The nest copies if its elements are neighbours on both sides, in the same order.

    Returns
    -------
    The two regions, or a text that says why the loop does not copy so.
    """
    nest: list[For] = []
    body: Stmt = loop
    while isinstance(body, For):
        nest.append(body)
        body = body.body
    if not isinstance(body, BufferStore):
        return f"Expected innermost loop to have BufferStore body, but found {body}"
    load = body.value
    if not isinstance(load, BufferLoad):
        return f"Expected BufferStore's value to be BufferLoad, but found {load}"
    if not all(isinstance(axis.extent, IntImm) for axis in nest):
        return "Expected loops of known length"
    trips = math.prod(int(axis.extent) for axis in nest)
    sides: dict[str, _Stretch] = {}
    for side, buffer, indices in (
        ("src", load.buffer, load.indices),
        ("dst", body.buffer, body.indices),
    ):
        stretch = _stretch(buffer, list(indices), nest)
        if stretch is None:
            return f"The {side} index of {body} does not form a bijective transform of the loops"
        sides[side] = stretch
    for side, stretch in sides.items():
        if stretch.touched != trips:
            return (
                f"Mismatch between loop iterations ({trips}) and number of {side} indices touched "
                f"({stretch.touched})"
            )
    if sides["src"].steps != sides["dst"].steps:
        return f"Neighbours among the elements that {body} writes come from different source places"
    return (
        _region(load.buffer, nest, body, loads=True),
        _region(body.buffer, nest, body, loads=False),
    )


def _analyzer(nest: list[For]) -> Analyzer:
    analyzer = Analyzer()
    for axis in nest:
        analyzer.bind(axis.loop_var, tvm.ir.Range.from_min_extent(axis.min, axis.extent))
    return analyzer


def _stretch(buffer: Buffer, indices: list[PrimExpr], nest: list[For]) -> _Stretch | None:
    flat = _analyzer(nest).simplify(buffer.offset_of(indices)[-1])
    variables: list[Var] = [axis.loop_var for axis in nest]
    found = detect_linear_equation(flat, variables)
    if len(found) == 0 or not all(isinstance(step, IntImm) for step in found[:-1]):
        return None
    steps = [int(step) for step in found[:-1]]
    extents = [int(axis.extent) for axis in nest]
    # Every step has to go beyond what the smaller ones together reach.
    reached = 1
    for step, extent in sorted(pair for pair in zip(steps, extents) if pair[1] > 1):
        if step < reached:
            return None
        reached += step * (extent - 1)
    kept = [step for step, extent in zip(steps, extents) if extent > 1]
    return _Stretch(found[-1], kept, reached)


def _region(buffer: Buffer, nest: list[For], store: BufferStore, loads: bool) -> BufferRegion:
    ranges = tvm._ffi.get_global_func("arith.DomainTouched")(nest[0], buffer, loads, not loads)
    return BufferRegion(buffer, list(ranges))


@tvm._ffi.register_func("tir.analysis._identify_memcpy")
def _identify_all(stmt: Stmt) -> list[Any]:
    """What :func:`identify_memcpy` says of each loop, from the outermost inwards."""
    results: list[Any] = []

    def visit(node: Any) -> bool:
        if isinstance(node, For):
            found = identify_memcpy(node)
            results.append(StringImm(found) if isinstance(found, str) else list(found))
        return True

    pre_order_visit(stmt, visit)
    return results


# Functions that Python registers come after the module's names were looked up.
tvm._ffi._init_api("tir.analysis", _ffi_api.__name__)
