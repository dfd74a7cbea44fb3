"""Loop nests that copy, written anew by a function of the target's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tvm
from tvm import arith, error
from tvm.ir.transform import Pass

from .. import expr, stmt
from ..buffer import Buffer
from ..function import PrimFunc
from ..functor import StmtExprMutator
from ..op import max as max_of
from .function_pass import prim_func_pass

__all__ = ["InjectCopyIntrin"]

# (source, destination, pad_before, pad_after, pad_value) -> statement
Writer = Callable[[Buffer, Buffer, list[Any], list[Any], Any], stmt.Stmt]


def _read(value: tvm.ir.PrimExpr) -> tuple[Any, Any, Any]:
    """What a copy stores: the element read, when it is read, and what is stored otherwise."""
    condition = otherwise = None
    if isinstance(value, expr.Select):
        condition, value, otherwise = value.condition, value.true_value, value.false_value
    elif isinstance(value, expr.Call) and getattr(value.op, "name", "") == "tir.if_then_else":
        condition, value, otherwise = value.args
    elif isinstance(value, expr.Cast):
        value = value.value
    return value, condition, otherwise


class _Nest:
    """A perfect nest of loops from zero around one store."""

    def __init__(self, body: stmt.Stmt) -> None:
        self.loops: list[stmt.For] = []
        while isinstance(body, stmt.For):
            self.loops.append(body)
            body = body.body
        self.body = body
        self.vars = [loop.loop_var for loop in self.loops]
        self.analyzer = arith.Analyzer()

    def rewrite(self, write: Writer) -> stmt.Stmt:
        """The nest as `write` has it; ValueError if it is no copy."""
        store = self.body
        if not isinstance(store, stmt.BufferStore):
            raise self._no_copy("its body is no single store")
        if any(not self.analyzer.can_prove_equal(loop.min, 0) for loop in self.loops):
            raise self._no_copy("a loop does not begin at zero")
        load, condition, otherwise = _read(store.value)
        if not isinstance(load, expr.BufferLoad) or "x" in str(load.dtype):
            raise self._no_copy("what is stored is no element of a buffer")
        extents = [loop.extent for loop in self.loops]
        target = self._strides(store)
        source = self._strides(load)
        read = extents
        before: list[Any] = []
        after: list[Any] = []
        if condition is not None:
            before, after = self._padding(condition)
            source[-1] = sum((p * s for p, s in zip(before, source)), source[-1])
            read = [e - p - q for e, p, q in zip(extents, before, after)]
        result = write(
            self._region(load.buffer, str(load.dtype), read, source),
            self._region(store.buffer, str(store.value.dtype), extents, target),
            before,
            after,
            otherwise,
        )
        if not isinstance(result, stmt.Stmt):
            raise error.TypeError(
                f"InjectCopyIntrin: the function returned {result!r}; return the statement that "
                "copies"
            )
        return result

    def _no_copy(self, why: str) -> error.ValueError:
        nest = self.loops[0] if self.loops else self.body
        return error.ValueError(f"InjectCopyIntrin: {why} in\n{nest}")

    def _strides(self, access: Any) -> list[Any]:
        """Elements that the place moves by with each loop, then where it begins."""
        found = arith.detect_linear_equation(access.buffer.offset_of(access.indices)[-1], self.vars)
        if not found:
            raise self._no_copy(f"places in {access.buffer.name} are not linear in the loops")
        return list(found)

    def _padding(self, condition: Any) -> tuple[list[Any], list[Any]]:
        bounds = arith.detect_clip_bound(condition, self.vars)
        if not bounds:
            raise self._no_copy(f"the condition {condition} does not bound single loops")
        before, after = [], []
        for i, loop in enumerate(self.loops):
            zero = expr.const(0, str(loop.loop_var.dtype))
            least, most = bounds[2 * i : 2 * i + 2]
            skipped = zero if least is None else max_of(least, zero)
            missing = zero if most is None else max_of(loop.extent - most - 1, zero)
            before.append(self.analyzer.simplify(skipped))
            after.append(self.analyzer.simplify(missing))
        return before, after

    def _region(self, buffer: Buffer, dtype: str, shape: Sequence[Any], place: list[Any]) -> Buffer:
        simplify = self.analyzer.simplify
        one = expr.const(1, "int32")
        return Buffer(
            buffer.data,
            dtype,
            [simplify(extent) for extent in shape] or [one],
            place[:-1] or [one],
            simplify(place[-1]),
            buffer.name,
            0,
            0,
        )


class _Injector(StmtExprMutator):
    def __init__(self, key: str, write: Writer) -> None:
        self._key = key
        self._write = write

    def visit_attr_stmt_(self, op: stmt.AttrStmt) -> stmt.Stmt:
        if op.attr_key != self._key:
            return self._visit_below(op)
        return _Nest(op.body).rewrite(self._write)


def InjectCopyIntrin(pragma_key: str, fintrin: Writer) -> Pass:
    """Replace the loop nests under a pragma, which have to copy, by statements of a function.

    Parameters
    ----------
    pragma_key : the pragma without its prefix, as in ``s[B].pragma(axis, "memcpy")``.
    fintrin : called as ``fintrin(src, dst, pad_before, pad_after, pad_value)``. ``src`` and ``dst``
        are buffers with the shape, the strides and the offset of what is copied, one axis a loop
        (one of extent 1 without loops). If elements are read on a condition only, ``src`` is as
        small as what is read, and the paddings say how many elements lie before and after on each
        axis and what they are; else they are ``[]``, ``[]`` and None.

    Raises
    ------
    ValueError : (when run) the nest is no copy of elements at linear places.
    TypeError : (when run) the function does not return a statement.
    """

    def run(func: PrimFunc, mod: Any, ctx: Any) -> PrimFunc:
        body = _Injector(f"pragma_{pragma_key}", fintrin).visit(func.body)
        return func if body.same_as(func.body) else func.with_body(body)

    return prim_func_pass(run, opt_level=0, name="tir.InjectCopyIntrin")
