"""Statements of tensor programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import tvm._ffi
from tvm.ir import IntImm, PrimExpr, Range
from tvm.ir.base import KeepsSpan
from tvm.ir.script_text import Scriptable
from tvm.runtime import NDArray, Object

from . import _ffi_api
from .buffer import Buffer
from .expr import NE, IterVar, StringImm, Var, _number_like, convert

__all__ = [
    "Allocate",
    "AllocateConst",
    "AssertStmt",
    "AttrStmt",
    "BufferRealize",
    "BufferStore",
    "DeclBuffer",
    "Evaluate",
    "For",
    "ForKind",
    "IfThenElse",
    "LetStmt",
    "Prefetch",
    "ProducerRealize",
    "ProducerStore",
    "SeqStmt",
    "Stmt",
    "While",
    "stmt_list",
    "stmt_seq",
]


@tvm._ffi.register_object("tir.Stmt")
class Stmt(Object, KeepsSpan, Scriptable):
    """Base of all statements."""


def _annotations(values: Mapping[str, Any] | None) -> dict[str, Any]:
    # Numbers are literals of the program; texts stay what they are.
    return {
        key: value if isinstance(value, str) else convert(value)
        for key, value in (values or {}).items()
    }


@tvm._ffi.register_object("tir.LetStmt")
class LetStmt(Stmt):
    """`body` with `var` bound to `value`."""

    def __init__(self, var: Var, value: Any, body: Stmt, span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.LetStmt, var, _number_like(value, var), body)


@tvm._ffi.register_object("tir.AttrStmt")
class AttrStmt(Stmt):
    """A fact about `body`: `attr_key` of `node` is `value`."""

    def __init__(self, node: Any, attr_key: str, value: Any, body: Stmt, span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.AttrStmt, node, attr_key, convert(value), body)


@tvm._ffi.register_object("tir.AssertStmt")
class AssertStmt(Stmt):
    """Fails with `message` unless `condition`."""

    def __init__(self, condition: Any, message: Any, body: Stmt, span: Any = None) -> None:
        if isinstance(message, str):
            message = StringImm(message)
        self.__init_handle_by_constructor__(_ffi_api.AssertStmt, convert(condition), message, body)


class ForKind(IntEnum):
    """How the iterations of a loop are carried out."""

    SERIAL = 0
    PARALLEL = 1
    VECTORIZED = 2
    UNROLLED = 3
    THREAD_BINDING = 4


@tvm._ffi.register_object("tir.For")
class For(Stmt):
    """`body` for loop_var = min .. min + extent - 1."""

    def __init__(
        self,
        loop_var: Var,
        min: Any,
        extent: Any,
        kind: int,
        body: Stmt,
        thread_binding: IterVar | None = None,
        annotations: Mapping[str, Any] | None = None,
        span: Any = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.For,
            loop_var,
            _number_like(min, loop_var),
            _number_like(extent, loop_var),
            int(kind),
            body,
            thread_binding,
            _annotations(annotations),
        )


@tvm._ffi.register_object("tir.While")
class While(Stmt):
    """`body` as long as `condition` holds."""

    def __init__(self, condition: Any, body: Stmt, span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.While, convert(condition), body)


@tvm._ffi.register_object("tir.BufferStore")
class BufferStore(Stmt):
    """buffer[indices] = value."""

    def __init__(
        self, buffer: Buffer, value: Any, indices: Sequence[Any], span: Any = None
    ) -> None:
        indices = convert(list(indices))
        if not isinstance(value, PrimExpr):
            value = _number_like(value, tvm.tir.BufferLoad(buffer, indices))
        self.__init_handle_by_constructor__(_ffi_api.BufferStore, buffer, value, indices)


@tvm._ffi.register_object("tir.BufferRealize")
class BufferRealize(Stmt):
    """`bounds` of `buffer` exist while `body` runs."""

    def __init__(
        self,
        buffer: Buffer,
        bounds: Sequence[Range],
        condition: Any,
        body: Stmt,
        span: Any = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.BufferRealize, buffer, list(bounds), convert(condition), body
        )


@tvm._ffi.register_object("tir.ProducerStore")
class ProducerStore(Stmt):
    """producer[indices] = value, of a tensor that is not a buffer yet.

    Raises
    ------
    ValueError : there are not as many indices as axes.
    TypeError : the value has another type than the producer.
    """

    def __init__(self, producer: Any, value: Any, indices: Sequence[Any], span: Any = None) -> None:
        indices = convert(list(indices))
        if not isinstance(value, PrimExpr):
            value = _number_like(value, tvm.tir.ProducerLoad(producer, indices))
        self.__init_handle_by_constructor__(_ffi_api.ProducerStore, producer, value, indices)


@tvm._ffi.register_object("tir.ProducerRealize")
class ProducerRealize(Stmt):
    """`bounds` of `producer` exist while `body` runs, in memory of `storage_scope`.

    Raises
    ------
    ValueError : there are not as many bounds as axes.
    TypeError : the condition is no scalar bool.
    """

    def __init__(
        self,
        producer: Any,
        bounds: Sequence[Range],
        condition: Any,
        body: Stmt,
        storage_scope: str = "",
        span: Any = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.ProducerRealize,
            producer,
            list(bounds),
            convert(condition),
            body,
            storage_scope,
        )


@tvm._ffi.register_object("tir.Allocate")
class Allocate(Stmt):
    """Memory for product(extents) elements of `dtype`, alive while `body` runs."""

    def __init__(
        self,
        buffer_var: Var,
        dtype: str,
        extents: Sequence[Any],
        condition: Any,
        body: Stmt,
        annotations: Mapping[str, Any] | None = None,
        span: Any = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Allocate,
            buffer_var,
            dtype,
            convert(list(extents)),
            convert(condition),
            body,
            _annotations(annotations),
        )


@tvm._ffi.register_object("tir.AllocateConst")
class AllocateConst(Stmt):
    """Memory that holds a constant from the start and is only read.

    Parameters
    ----------
    data_or_idx : NDArray of `dtype` with the product of `extents` elements, or the number of the
        constant among those of the module.
    """

    def __init__(
        self,
        buffer_var: Var,
        dtype: str,
        extents: Sequence[Any],
        data_or_idx: NDArray | int,
        body: Stmt,
        annotations: Mapping[str, Any] | None = None,
        span: Any = None,
    ) -> None:
        is_data = isinstance(data_or_idx, NDArray)
        self.__init_handle_by_constructor__(
            _ffi_api.AllocateConst,
            buffer_var,
            dtype,
            convert(list(extents)),
            body,
            data_or_idx if is_data else None,
            None if is_data else convert(data_or_idx),
            _annotations(annotations),
        )


@tvm._ffi.register_object("tir.DeclBuffer")
class DeclBuffer(Stmt):
    """`buffer` views memory that exists already, while `body` runs."""

    def __init__(self, buffer: Buffer, body: Stmt, span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.DeclBuffer, buffer, body)


@tvm._ffi.register_object("tir.SeqStmt")
class SeqStmt(Stmt):
    """Statements in order; those of a sequence among them take its place."""

    def __init__(self, seq: Sequence[Stmt], span: Any = None) -> None:
        flat: list[Stmt] = []
        for item in seq:
            flat += item.seq if isinstance(item, SeqStmt) else [item]
        self.__init_handle_by_constructor__(_ffi_api.SeqStmt, flat)

    def __getitem__(self, i: int) -> Stmt:
        return self.seq[i]

    def __len__(self) -> int:
        return len(self.seq)


@tvm._ffi.register_object("tir.IfThenElse")
class IfThenElse(Stmt):
    """One of two statements; `else_case` may be None.

    An integer counts as true where it is not zero.
    """

    def __init__(
        self, condition: Any, then_case: Stmt, else_case: Stmt | None = None, span: Any = None
    ) -> None:
        condition = convert(condition)
        if str(condition.dtype).startswith(("int", "uint")):
            condition = NE(condition, IntImm(str(condition.dtype), 0))
        self.__init_handle_by_constructor__(_ffi_api.IfThenElse, condition, then_case, else_case)


@tvm._ffi.register_object("tir.Evaluate")
class Evaluate(Stmt):
    """An expression for its effect; ``Evaluate(0)`` is the empty statement."""

    def __init__(self, value: Any, span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Evaluate, convert(value))


@tvm._ffi.register_object("tir.Prefetch")
class Prefetch(Stmt):
    """A hint that `bounds` of `buffer` will be read soon."""

    def __init__(self, buffer: Buffer, bounds: Sequence[Range], span: Any = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Prefetch, buffer, list(bounds))


def stmt_seq(*args: Stmt | PrimExpr) -> Stmt:
    """One statement for all arguments; expressions are evaluated, no-ops dropped."""
    return _ffi_api.SeqStmtFlatten(
        [item if isinstance(item, Stmt) else Evaluate(item) for item in args]
    )


def stmt_list(stmt: Stmt) -> list[Stmt]:
    """The statements of a sequence, or the one statement."""
    if isinstance(stmt, SeqStmt):
        return [item for child in stmt.seq for item in stmt_list(child)]
    return [stmt]
