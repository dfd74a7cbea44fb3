"""Statements written as Python code: loops, branches and stores in the order they are emitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from tvm.ir import PrimExpr

from . import op as _op
from .buffer import Buffer, decl_buffer
from .expr import SizeVar, StringImm, Var, _number_like, const, convert
from .statement import (
    Allocate,
    AttrStmt,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    Stmt,
    While,
    stmt_seq,
)

__all__ = ["BufferVar", "IRBuilder", "WithScope", "create"]

_LOOP_KINDS = {
    "serial": ForKind.SERIAL,
    "parallel": ForKind.PARALLEL,
    "vectorize": ForKind.VECTORIZED,
    "vectorized": ForKind.VECTORIZED,
    "unroll": ForKind.UNROLLED,
    "unrolled": ForKind.UNROLLED,
}

# What is emitted: a statement, or one that still waits for the statements after it.
_Item = Stmt | Callable[[Stmt], Stmt]


class WithScope:
    """A block of emitted statements; ``with`` enters it and gives ``value``."""

    def __init__(self, value: Any, enter: Callable[[], None], leave: Callable[[], None]) -> None:
        self._value = value
        self._enter = enter
        self._leave = leave

    def __enter__(self) -> Any:
        self._enter()
        return self._value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The statement of a block that failed would only hide the error.
        if kind is None:
            self._leave()


class BufferVar:
    """A buffer whose elements are read and written as ``buf[i, j]``.

    One index into a buffer of several axes counts its elements in row-major order.
    """

    def __init__(self, builder: IRBuilder, buffer: Buffer) -> None:
        self._builder = builder
        self._buffer = buffer

    @property
    def buffer(self) -> Buffer:
        """The buffer that is accessed."""
        return self._buffer

    @property
    def dtype(self) -> str:
        """Type of an element."""
        return str(self._buffer.dtype)

    def asobject(self) -> Buffer:
        """The buffer that is accessed, for example to pass ``access_ptr`` of it to a call."""
        return self._buffer

    def _indices(self, index: Any) -> list[PrimExpr]:
        items = list(index) if isinstance(index, Sequence) else [index]
        indices = [convert(item) for item in items]
        shape = list(self._buffer.shape)
        if len(indices) == 1 and len(shape) > 1:
            (rest,) = indices
            unfolded = []
            for extent in reversed(shape[1:]):
                unfolded.append(rest % extent)
                rest = rest // extent
            indices = [rest, *reversed(unfolded)]
        if len(indices) != len(shape):
            raise ValueError(
                f"buffer {self._buffer.name} has {len(shape)} axes, got {len(indices)} indices"
            )
        return indices

    def __getitem__(self, index: Any) -> PrimExpr:
        return self._buffer[tuple(self._indices(index))]

    def __setitem__(self, index: Any, value: Any) -> None:
        indices = self._indices(index)
        value = _number_like(value, self._buffer[tuple(indices)])
        element = str(self._buffer.dtype)
        if str(value.dtype).partition("x")[0] != element.partition("x")[0]:
            raise TypeError(
                f"store to {self._buffer.name} of {element}: the value {value} has dtype "
                f"{value.dtype}; convert it with astype"
            )
        self._builder.emit(BufferStore(self._buffer, value, indices))

    # Indexing never runs out, so iteration by index would not end.
    __iter__ = None


class IRBuilder:
    """Collects statements and gives them as one.

    Examples
    --------
    >>> import tvm
    >>> ib = tvm.tir.ir_builder.create()
    >>> A = ib.allocate("float32", 8, name="A")
    >>> with ib.for_range(0, 8, name="i") as i:
    ...     with ib.if_scope(i % 2 == 0):
    ...         A[i] = 1.0
    ...     with ib.else_scope():
    ...         A[i] = 0.0
    >>> body = ib.get()
    """

    def __init__(self) -> None:
        self._blocks: list[list[_Item]] = [[]]

    def _close(self) -> Stmt:
        """The statements of the innermost block as one, and the block left."""
        body: Stmt | None = None
        for item in reversed(self._blocks.pop()):
            if isinstance(item, Stmt):
                body = item if body is None else stmt_seq(item, body)
            else:
                body = item(Evaluate(0) if body is None else body)
        return Evaluate(0) if body is None else body

    def _scope(self, value: Any, wrap: Callable[[Stmt], Stmt]) -> WithScope:
        return WithScope(
            value, lambda: self._blocks.append([]), lambda: self.emit(wrap(self._close()))
        )

    def emit(self, stmt: Stmt | PrimExpr | Callable[[Stmt], Stmt]) -> None:
        """Append a statement, an expression for its effect, or a function of what follows."""
        if isinstance(stmt, PrimExpr):
            stmt = Evaluate(stmt)
        if not isinstance(stmt, Stmt) and not callable(stmt):
            raise TypeError(f"emit: expected a statement or a call, got {type(stmt).__name__}")
        self._blocks[-1].append(stmt)

    def scope_attr(self, node: Any, attr_key: str, value: Any) -> None:
        """Attach an attribute to everything that is emitted after it in this block."""
        node = StringImm(node) if isinstance(node, str) else node
        value = convert(value)
        self.emit(lambda body: AttrStmt(node, attr_key, value, body))

    def for_range(
        self,
        begin: Any,
        end: Any,
        name: str = "i",
        dtype: str | None = None,
        kind: str = "serial",
    ) -> WithScope:
        """A loop over ``begin .. end - 1``; the value of the ``with`` is its variable.

        Parameters
        ----------
        dtype : of the variable; the type of the bounds when None.
        kind : "serial", "parallel", "vectorize" or "unroll".
        """
        if kind not in _LOOP_KINDS:
            raise ValueError(f"for_range: kind must be one of {sorted(_LOOP_KINDS)}, got {kind!r}")
        begin, end = convert(begin), convert(end)
        if dtype is None:
            dtype = str((end if str(begin.dtype) == "int32" else begin).dtype)
        begin, end = begin.astype(dtype), end.astype(dtype)
        var = Var(name, dtype)
        return self._scope(var, lambda body: For(var, begin, end - begin, _LOOP_KINDS[kind], body))

    def while_loop(self, condition: Any) -> WithScope:
        """A loop that runs as long as ``condition`` holds."""
        condition = convert(condition)
        return self._scope(None, lambda body: While(condition, body))

    def if_scope(self, cond: Any) -> WithScope:
        """What is done if ``cond`` holds."""
        cond = convert(cond)
        return self._scope(None, lambda body: IfThenElse(cond, body))

    def else_scope(self) -> WithScope:
        """What is done otherwise; follows an :meth:`if_scope` directly."""
        block = self._blocks[-1]
        last = block[-1] if block else None
        if not isinstance(last, IfThenElse) or last.else_case is not None:
            raise ValueError("else_scope: must follow an if_scope directly")

        def wrap(body: Stmt) -> Stmt:
            block.pop()
            return IfThenElse(last.condition, last.then_case, body)

        return self._scope(None, wrap)

    def new_scope(self) -> WithScope:
        """A block whose attributes and allocations end with it."""
        return self._scope(None, lambda body: body)

    def let(self, var_name: str, value: Any) -> Var:
        """A variable for ``value`` in what follows in this block."""
        value = convert(value)
        var = Var(var_name, value.dtype)
        self.emit(lambda body: LetStmt(var, value, body))
        return var

    def allocate(
        self,
        dtype: str,
        shape: Any,
        name: str = "buf",
        axis_separators: None = None,
        scope: str = "",
    ) -> BufferVar:
        """Memory that lasts until the end of this block.

        Parameters
        ----------
        shape : extents; a single one may be given without a tuple.
        scope : memory scope: "global" when empty, "local", "shared", ...
        axis_separators : must be None; memory is flat.
        """
        if axis_separators:
            raise ValueError("allocate: axis_separators is not supported, memory is flat")
        # The alignment of all memory that programs allocate.
        buffer = decl_buffer(shape, dtype, name, scope=scope, data_alignment=64)
        self.emit(lambda body: Allocate(buffer.data, dtype, buffer.shape, const(True), body))
        return BufferVar(self, buffer)

    def pointer(self, content_type: str, name: str = "ptr", scope: str = "") -> BufferVar:
        """A pointer of unknown length to elements of ``content_type``."""
        return BufferVar(
            self, decl_buffer((SizeVar(f"{name}_size"),), content_type, name, scope=scope)
        )

    def buffer_ptr(self, buf: Buffer, shape: Sequence[Any] | None = None) -> BufferVar:
        """A buffer as an indexable value.

        Parameters
        ----------
        shape : extents to index it by, for a buffer without strides.
        """
        if shape is None:
            return BufferVar(self, buf)
        if len(buf.strides) != 0:
            raise ValueError(f"buffer_ptr: {buf.name} has strides, so it has no other shape")
        view = decl_buffer(shape, buf.dtype, buf.name, data=buf.data, elem_offset=buf.elem_offset)
        return BufferVar(self, view)

    def likely(self, expr: Any) -> PrimExpr:
        """``expr``, marked as nearly always true."""
        return _op.likely(expr)

    def get(self) -> Stmt:
        """Everything emitted so far as one statement; the builder starts anew."""
        if len(self._blocks) != 1:
            raise ValueError("get: a block is still open; leave its with statement first")
        body = self._close()
        self._blocks = [[]]
        return body


def create() -> IRBuilder:
    """A new builder."""
    return IRBuilder()
