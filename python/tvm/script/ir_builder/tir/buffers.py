"""Types, variables and buffers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tvm import error, ir, target, tir

from ..base import IRBuilder
from .block import AXES, region_of
from .frames import BlockFrame, PrimFuncFrame
from .literals import constant, expression, expressions, is_number

__all__ = [
    "Buffer",
    "Ptr",
    "ScalarType",
    "alloc_buffer",
    "buffer",
    "env_thread",
    "handle",
    "is_dtype",
    "iter_var",
    "match_buffer",
    "scalar_type",
    "type_of",
    "var",
]

_DTYPE = re.compile(
    r"(bool|handle|void|bfloat16|(int|uint)\d+|float(16|32|64)|e4m3_float8|e5m2_float8"
    r"|float[468]_e\d+m\d+\w*)(x(vscalex)?\d+)?"
)


def is_dtype(name: str) -> bool:
    """Whether a name is that of an element type."""
    return _DTYPE.fullmatch(name) is not None


def type_of(value: Any) -> ir.Type:
    """A type, from itself, the name of an element type, or what ``T.handle(...)`` gives."""
    if isinstance(value, ir.Type):
        return value
    if isinstance(value, ScalarType):
        return ir.PrimType(value.dtype)
    if isinstance(value, tir.Var):
        return value.type_annotation
    if isinstance(value, str) and is_dtype(value):
        return ir.PrimType(value)
    raise error.TypeError(f'{value!r} is not a type; there are "float32", T.int32 and T.handle')


class ScalarType:
    """``T.int32``: called without an argument a variable, with one a literal or a conversion."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype

    def __call__(
        self, expr: Any = None, is_size_var: bool = False, kind: int = tir.SizeVar.OTHER
    ) -> Any:
        if expr is None:
            return (
                tir.SizeVar("", self.dtype, kind=kind) if is_size_var else tir.Var("", self.dtype)
            )
        if isinstance(expr, str):
            if expr not in ("nan", "inf", "-inf"):
                raise error.ValueError(
                    f'T.{self.dtype} takes a number, "nan", "inf" or "-inf", not {expr!r}'
                )
            return constant(float(expr), self.dtype)
        if is_number(expr):
            return constant(expr, self.dtype)
        value = expression(expr)
        if isinstance(value, tir.IntImm | tir.FloatImm):
            # A literal of another type is converted now, a printed conversion is T.Cast.
            return value.astype(self.dtype)
        return tir.Cast(self.dtype, value)

    def __str__(self) -> str:
        return self.dtype

    def __repr__(self) -> str:
        return f"T.{self.dtype}"


_types: dict[str, ScalarType] = {}


def scalar_type(dtype: str) -> ScalarType:
    """The one object that stands for an element type."""
    return _types.setdefault(dtype, ScalarType(dtype))


class _Handle(ScalarType):
    """``T.handle``: a pointer of any type, or with arguments to elements of one."""

    def __call__(  # type: ignore[override]
        self,
        dtype: Any = None,
        storage_scope: str = "global",
        *,
        is_size_var: bool = False,
    ) -> Any:
        if is_size_var:
            raise error.TypeError("T.handle: a pointer is no size")
        if dtype is None:
            return tir.Var("", "handle")
        if is_number(dtype) or isinstance(dtype, tir.PrimExpr) and not isinstance(dtype, tir.Var):
            return ScalarType.__call__(self, dtype)
        # The scope that goes without saying is written as none.
        scope = "" if storage_scope == "global" else storage_scope
        return tir.Var("", ir.PointerType(type_of(dtype), scope))


handle = _types["handle"] = _Handle("handle")


class _PointerType:
    """``T.Ptr``: another spelling of pointer types, also ``T.Ptr["float32", "shared"]``."""

    def __call__(self, dtype: Any, storage_scope: str = "global") -> tir.Var:
        return handle(dtype, storage_scope)

    def __getitem__(self, items: Any) -> tir.Var:
        return self(*items) if isinstance(items, tuple) else self(items)


Ptr = _PointerType()


def var(dtype: Any, name: str = "") -> tir.Var:
    """A variable of a type."""
    return tir.Var(name, type_of(dtype))


def _shape(shape: Any) -> list[tir.PrimExpr]:
    return expressions(shape)


def buffer(
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
) -> tir.Buffer:
    """A buffer; an extent alone may stand for a shape.

    Parameters
    ----------
    data : its pointer, a new one when None.
    strides : elements between neighbours; a text is a new variable of that name.
    elem_offset : elements before the first one; a text is a new variable of that name.
    scope : memory scope of a new pointer.
    align : bytes that the address is a multiple of; 0 or -1 for 64, as of what is allocated.
    offset_factor : number that the offset is a multiple of.
    buffer_type : "default", or "auto" for axes of one element that repeat it, see
        `tvm.tir.decl_buffer`.
    axis_separators : axes before which memory of several dimensions is cut.
    """
    extents = _shape(shape)
    steps = [tir.Var(item, "int32") if isinstance(item, str) else item for item in strides or ()]
    if isinstance(elem_offset, str):
        elem_offset = tir.Var(elem_offset, "int32")
    if data is not None and not isinstance(data, tir.Var):
        raise error.TypeError(f"T.Buffer: data is a variable, a pointer, not {data!r}")
    return tir.decl_buffer(
        extents,
        str(dtype),
        "",
        data,
        expressions(steps),
        None if elem_offset is None else expression(elem_offset),
        "" if scope == "global" else scope,
        max(align, 0),
        max(offset_factor, 0),
        buffer_type,
        axis_separators,
    )


class _BufferType:
    """``T.Buffer``: the type of parameters, and a view of memory."""

    __call__ = staticmethod(buffer)

    def __getitem__(self, items: Any) -> tir.Buffer:
        # The spelling of older scripts, T.Buffer[(8,), "float32"].
        return buffer(*items) if isinstance(items, tuple) else buffer(items)


Buffer = _BufferType()


def match_buffer(
    param: Any,
    shape: Any = None,
    dtype: Any = "float32",
    data: tir.Var | None = None,
    strides: Sequence[Any] | None = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = 0,
    offset_factor: int = 0,
    buffer_type: str = "",
    axis_separators: Sequence[int] | None = None,
) -> tir.Buffer:
    """The buffer behind a parameter of type ``T.handle``, or a view of a region in a block.

    Parameters
    ----------
    shape : of a view it is that of the region unless given, as is the dtype.

    Raises
    ------
    ValueError : the parameter is none of the function, or its shape is missing.
    """
    builder = IRBuilder.current()
    details = (
        data,
        strides,
        elem_offset,
        scope,
        align,
        offset_factor,
        buffer_type,
        axis_separators,
    )
    if isinstance(param, tir.Var):
        frame = builder.find(PrimFuncFrame)
        if frame is None or not any(param.same_as(own) for own in frame.params):
            raise error.ValueError(
                "T.match_buffer is about a parameter of type T.handle, or a region of a buffer"
            )
        if shape is None:
            raise error.ValueError(
                f"T.match_buffer: give the shape of the buffer behind `{param.name}`"
            )
        made = buffer(shape, dtype, *details)
        if param in frame.buffer_map:
            raise error.ValueError(f"T.match_buffer: `{param.name}` has a buffer already")
        frame.buffer_map[param] = made
        return made
    if not isinstance(param, tir.Buffer | tir.BufferLoad | tir.BufferRegion):
        raise error.TypeError(
            "T.match_buffer is about a parameter of type T.handle, or a region of a buffer"
        )
    region = region_of(param)
    if shape is None:
        shape = [extent.extent for extent in region.region]
        dtype = region.buffer.dtype
    made = buffer(shape, dtype, *details)
    match = tir.MatchBufferRegion(made, region)
    block = builder.find(BlockFrame)
    function = builder.find(PrimFuncFrame)
    if block is not None:
        block.matches.append(match)
    elif function is not None:
        function.root_matches.append(match)
    else:
        raise error.ValueError("T.match_buffer of a region stands in a block")
    return made


def alloc_buffer(
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
) -> tir.Buffer:
    """A buffer that lives as long as the block it stands in runs."""
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
    builder = IRBuilder.current()
    block = builder.find(BlockFrame)
    function = builder.find(PrimFuncFrame)
    if block is not None:
        block.buffers.append(made)
    elif function is not None:
        function.root_buffers.append(made)
    else:
        raise error.ValueError("T.alloc_buffer stands in a block or a function")
    return made


def env_thread(thread_tag: str, dtype: str = "int32") -> tir.IterVar:
    """A thread, to be launched by T.launch_thread; in expressions it is its index."""
    return tir.IterVar(None, tir.Var("", dtype), tir.IterVar.ThreadIndex, thread_tag)


def iter_var(
    variable: Any, dom: Any, iter_type: str, thread_tag: str, dtype: str | None = None
) -> tir.IterVar:
    """An axis as attributes of statements have it.

    Parameters
    ----------
    variable : a variable, or the name of a new one.
    dom : a range, (begin, end), or None.
    """
    if iter_type not in AXES:
        raise error.ValueError(f"there is no type of axes {iter_type!r}")
    if isinstance(dom, list | tuple):
        dom = ir.Range(*dom)
    if dom is not None and not isinstance(dom, ir.Range):
        raise error.TypeError("a domain is T.Range(begin, end) or None")
    if isinstance(variable, tir.IterVar):
        variable = variable.var
    if isinstance(variable, str):
        kind = dtype or ("int32" if dom is None else str(dom.extent.dtype))
        variable = tir.Var(variable, kind)
    return tir.IterVar(dom, variable, AXES[iter_type], thread_tag)


def make_target(spec: Any, host: Any = None) -> target.Target:
    """``T.target``: a target by its text or its table of options."""
    return target.Target(spec, host=host)
