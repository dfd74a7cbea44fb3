"""Statements: loops, branches, memory, stores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm import error, ir, tir
from tvm.runtime import ndarray as nd
from tvm.tir import _ffi_api
from tvm.tir.buffer import strided_index

from ..base import IRBuilder
from .block import region_of
from .buffers import buffer
from .expressions import intrinsic
from .frames import ElseFrame, ForFrame, IfFrame, ScopeFrame, ThenFrame, add_statement
from .literals import annotations_of, expression, expressions, interval

__all__ = [
    "Assert",
    "Else",
    "If",
    "LetStmt",
    "Then",
    "While",
    "allocate",
    "allocate_const",
    "attr",
    "buffer_store",
    "decl_buffer",
    "evaluate",
    "grid",
    "launch_thread",
    "parallel",
    "prefetch",
    "realize",
    "serial",
    "thread_binding",
    "unroll",
    "vectorized",
    "view_of_memory",
]

# Alignment of memory that programs allocate, in bytes.
_ALLOCATION_ALIGNMENT = 64


def _loop(
    kind: tir.ForKind,
    start: Any,
    stop: Any,
    annotations: Mapping[str, Any] | None,
    thread: tir.IterVar | str | None = None,
) -> ForFrame:
    domain = interval(0, start) if stop is None else interval(start, stop)
    dtype = str(domain.extent.dtype)
    var = tir.Var("", dtype)
    if isinstance(thread, str):
        thread = tir.IterVar(None, tir.Var(thread, dtype), tir.IterVar.ThreadIndex, thread)
    notes = annotations_of(annotations)

    def make(body: tir.Stmt) -> tir.Stmt:
        loop = frame.variables[0]
        return _ffi_api.For(loop, domain.min, domain.extent, int(kind), body, thread, notes)

    frame = ForFrame([var], [domain], make)
    return frame


def serial(
    start: Any, stop: Any = None, *, annotations: Mapping[str, Any] | None = None
) -> ForFrame:
    """A loop from `start` to `stop`, or over `start` iterations from 0."""
    return _loop(tir.ForKind.SERIAL, start, stop, annotations)


def parallel(
    start: Any, stop: Any = None, *, annotations: Mapping[str, Any] | None = None
) -> ForFrame:
    """A loop whose iterations are shared among threads."""
    return _loop(tir.ForKind.PARALLEL, start, stop, annotations)


def vectorized(
    start: Any, stop: Any = None, *, annotations: Mapping[str, Any] | None = None
) -> ForFrame:
    """A loop whose iterations are the lanes of vectors."""
    return _loop(tir.ForKind.VECTORIZED, start, stop, annotations)


def unroll(
    start: Any, stop: Any = None, *, annotations: Mapping[str, Any] | None = None
) -> ForFrame:
    """A loop whose iterations are written one after another."""
    return _loop(tir.ForKind.UNROLLED, start, stop, annotations)


def thread_binding(
    start: Any,
    stop: Any = None,
    thread: Any = None,
    *,
    annotations: Mapping[str, Any] | None = None,
) -> ForFrame:
    """A loop whose iterations are threads, such as "threadIdx.x"."""
    if thread is None and isinstance(stop, str):
        stop, thread = None, stop
    if thread is None:
        raise error.ValueError('the thread is missing, for instance thread="threadIdx.x"')
    return _loop(tir.ForKind.THREAD_BINDING, start, stop, annotations, thread)


def grid(*extents: Any) -> ForFrame:
    """A nest of loops, one for each extent or (begin, end)."""
    if not extents:
        raise error.ValueError("T.grid needs at least one extent")
    domains = [
        interval(*extent) if isinstance(extent, list | tuple) else interval(0, extent)
        for extent in extents
    ]
    variables = [tir.Var("", str(domain.extent.dtype)) for domain in domains]

    def make(body: tir.Stmt) -> tir.Stmt:
        for var, domain in zip(reversed(variables), reversed(domains)):
            body = _ffi_api.For(
                var, domain.min, domain.extent, int(tir.ForKind.SERIAL), body, None, {}
            )
        return body

    return ForFrame(variables, domains, make)


def Assert(condition: Any, message: Any) -> ScopeFrame:
    """What follows runs only if the condition holds; otherwise the function fails."""
    test, text = expression(condition), expression(message)
    return ScopeFrame(lambda body: tir.AssertStmt(test, text, body))


def LetStmt(value: Any, type_annotation: Any = None, *, var: tir.Var | None = None) -> ScopeFrame:
    """A name for a value; the name after ``as`` is the variable.

    Parameters
    ----------
    type_annotation : type of the variable when it is not that of the value.
    var : a variable made before.
    """
    if var is None:
        var = _typed_var(type_annotation) if type_annotation is not None else None
    bound = expression(value, var)
    made = tir.Var("", str(bound.dtype)) if var is None else var
    return ScopeFrame(lambda body: tir.LetStmt(made, bound, body), made)


def _typed_var(kind: Any) -> tir.Var:
    if isinstance(kind, ir.Type):
        return tir.Var("", kind)
    made = kind() if callable(kind) else kind
    if not isinstance(made, tir.Var):
        raise error.TypeError(f"`{kind!r}` is not a type of variables, such as T.int32")
    return made


def let(var: tir.Var, value: Any) -> ScopeFrame:
    """A value for a variable made before."""
    return LetStmt(value, var=var)


def allocate(
    extents: Sequence[Any],
    dtype: Any,
    scope: str = "global",
    condition: Any = None,
    annotations: Mapping[str, Any] | None = None,
    type: Any = None,
) -> ScopeFrame:
    """Memory; the name after ``as`` is its pointer, which may be indexed like a buffer.

    Parameters
    ----------
    condition : the memory is there only if this holds.
    type : of the pointer, when it is not that of the elements.
    """
    element = str(dtype)
    shape = expressions(extents)
    held = tir.const(True) if condition is None else expression(condition)
    if type is None:
        # A boolean occupies a byte in memory.
        pointee = ir.PrimType("int8" if element.startswith("bool") else element)
        var = tir.Var("", ir.PointerType(pointee, "" if scope == "global" else scope))
    else:
        var = _typed_var(type)
    notes = annotations_of(annotations)
    frame = ScopeFrame(lambda body: _ffi_api.Allocate(var, element, shape, held, body, notes), var)
    _remember_view(var, tir.Buffer(var, element, shape, (), None, "", _ALLOCATION_ALIGNMENT))
    return frame


def _remember_view(pointer: tir.Var, view: tir.Buffer) -> None:
    if IRBuilder.is_in_scope():
        IRBuilder.current().memory_views[pointer] = view


def view_of_memory(pointer: tir.Var) -> tir.Buffer | None:
    """The buffer that indexing the name of an allocation reads; None for other variables."""
    if not IRBuilder.is_in_scope():
        return None
    return IRBuilder.current().memory_views.get(pointer)


def attr(node: Any, attr_key: str, value: Any) -> ScopeFrame:
    """A fact about something that holds in what follows."""
    about = _about(node)
    said = expression(value)
    return ScopeFrame(lambda body: _ffi_api.AttrStmt(about, attr_key, said, body))


def _about(node: Any) -> Any:
    if isinstance(node, list | tuple):
        return [_about(item) for item in node]
    if node is None or isinstance(node, tir.Buffer | tir.IterVar | tir.CommReducer):
        return node
    is_value = isinstance(node, str | bool | int | float) or hasattr(node, "asobject")
    return expression(node) if is_value else node


def launch_thread(thread: Any, extent: Any) -> ScopeFrame:
    """What follows runs on threads; the name after ``as`` is their index.

    Parameters
    ----------
    thread : "threadIdx.x" and the like, or what T.env_thread made.
    """
    size = expression(extent)
    if isinstance(thread, str):
        thread = tir.IterVar(None, tir.Var("", str(size.dtype)), tir.IterVar.ThreadIndex, thread)
    if not isinstance(thread, tir.IterVar):
        raise error.TypeError(f"`{thread}` is not a thread made by T.env_thread")
    virtual = str(thread.thread_tag).startswith("vthread")
    key = "virtual_thread" if virtual else "thread_extent"
    return ScopeFrame(lambda body: _ffi_api.AttrStmt(thread, key, size, body), thread.var)


def realize(buffer_slice: Any, storage_scope: str = "", condition: Any = True) -> ScopeFrame:
    """A region of a buffer exists in what follows."""
    region = region_of(buffer_slice)
    held = expression(condition)
    scope = str(region.buffer.scope)

    def make(body: tir.Stmt) -> tir.Stmt:
        realized = tir.BufferRealize(region.buffer, region.region, held, body)
        if storage_scope in ("", scope):
            return realized
        # The pointer says one scope and the text another one: TVM keeps the latter beside.
        return tir.AttrStmt(region.buffer, "realize_scope", tir.StringImm(storage_scope), realized)

    return ScopeFrame(make)


def decl_buffer(
    shape: Any,
    dtype: Any = "float32",
    data: tir.Var | None = None,
    strides: Sequence[Any] | None = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
) -> ScopeFrame:
    """A buffer over memory in what follows; without `data` also the memory."""
    made = buffer(
        shape,
        dtype,
        data,
        strides,
        elem_offset,
        scope,
        align,
        offset_factor,
        buffer_type,
        axis_separators,
    )

    def make(body: tir.Stmt) -> tir.Stmt:
        declared = tir.DeclBuffer(made, body)
        if data is not None:
            return declared
        yes = tir.const(True)
        return _ffi_api.Allocate(made.data, str(made.dtype), made.shape, yes, declared, {})

    return ScopeFrame(make, made)


def allocate_const(
    data: Any,
    dtype: Any,
    extents: Sequence[Any],
    annotations: Mapping[str, Any] | None = None,
    irmod_storage_idx: int | None = None,
) -> ScopeFrame:
    """Constant memory; the name after ``as`` is its pointer, which may be indexed like a buffer.

    Parameters
    ----------
    data : the elements, as a list, a numpy array or an NDArray; None where
        `irmod_storage_idx` says which constant of the module it is.
    """
    element = str(dtype)
    shape = expressions(extents)
    var = tir.Var("", ir.PointerType(ir.PrimType(element)))
    notes = annotations_of(annotations)
    held: Any = irmod_storage_idx
    if data is not None:
        lengths = [int(extent) for extent in shape]
        held = data if isinstance(data, nd.NDArray) else _constant_tensor(data, element, lengths)
    elif irmod_storage_idx is None:
        raise error.ValueError("T.allocate_const: give the elements")
    _remember_view(var, tir.Buffer(var, element, shape, (), None, "", _ALLOCATION_ALIGNMENT))
    return ScopeFrame(lambda body: tir.AllocateConst(var, element, shape, held, body, notes), var)


def _constant_tensor(data: Any, dtype: str, shape: list[int]) -> nd.NDArray:
    values = [getattr(item, "value", item) for item in data] if isinstance(data, list) else data
    array = np.asarray(values, dtype)
    if array.size != math.prod(shape):
        raise error.ValueError(
            f"T.allocate_const: there are {array.size} elements for the extents {shape}"
        )
    return nd.array(array.reshape(shape))


def While(condition: Any) -> ScopeFrame:
    """A loop that runs as long as a condition holds."""
    test = expression(condition)
    return ScopeFrame(lambda body: tir.While(test, body))


def If(condition: Any) -> IfFrame:
    """A branch, which holds T.Then and T.Else."""
    return IfFrame(expression(condition))


def Then() -> ThenFrame:
    """What a branch does if its condition holds."""
    return ThenFrame()


def Else() -> ElseFrame:
    """What a branch does otherwise."""
    return ElseFrame()


def buffer_store(
    buffer: tir.Buffer, value: Any, indices: Sequence[Any], predicate: Any = None
) -> None:
    """``buffer[indices] = value``; a slice among the indices stores a vector.

    Raises
    ------
    ValueError : there is a `predicate`: stores of some lanes only are conditionals here.
    """
    if predicate is not None:
        raise error.ValueError("T.buffer_store: it has no predicate; put the store under `if`")
    places = [_index(item) for item in indices]
    element = tir.BufferLoad(buffer, places)
    add_statement(tir.BufferStore(buffer, expression(value, element), places))


def _index(item: Any) -> tir.PrimExpr:
    if not isinstance(item, slice):
        return expression(item)
    if item.start is None or item.stop is None:
        raise error.ValueError("a vector of indices needs both its ends, `start:stop`")
    domain = interval(item.start, item.stop)
    step = 1 if item.step is None else int(item.step)
    return strided_index(domain.min, domain.extent, step)


def prefetch(buffer: Any, bounds: Any = None, *more: Any) -> tir.Call | None:
    """A hint that a region is read soon: ``T.prefetch(A[0:4])`` or a buffer and its ranges.

    With an address it is the call of the intrinsic of this name.
    """
    if not isinstance(buffer, tir.Buffer | tir.BufferLoad | tir.BufferRegion):
        return intrinsic("prefetch")(buffer, bounds, *more)
    if bounds is None:
        region = region_of(buffer)
        buffer, bounds = region.buffer, region.region
    add_statement(tir.Prefetch(buffer, list(bounds)))
    return None


def evaluate(value: Any) -> None:
    """An expression for its effect."""
    add_statement(tir.Evaluate(expression(value)))
