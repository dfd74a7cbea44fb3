"""Functions that make operations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tvm
from tvm import tir
from tvm.ir import Array, Range
from tvm.tir import IterVar, PrimExpr, Var

from . import _ffi_api
from .tag import current_tag
from .tensor import Operation, Tensor
from .tensor_intrin import TensorIntrinCall

__all__ = [
    "compute",
    "extern",
    "placeholder",
    "reduce_axis",
    "scan",
    "size_var",
    "thread_axis",
    "var",
]

Extent = int | PrimExpr


def _as_shape(shape: Any) -> list[PrimExpr]:
    if isinstance(shape, PrimExpr) or hasattr(shape, "__index__"):
        shape = [shape]
    extents = [_as_extent(extent) for extent in shape]
    for extent in extents:
        if isinstance(extent, tir.IntImm) and extent.value < 0:
            raise ValueError(f"extents must not be negative, got {extent} in shape {extents}")
    return extents


def _as_extent(extent: Any) -> PrimExpr:
    # ``size / factor`` of Python's numbers is a whole float.
    if isinstance(extent, float) and extent.is_integer():
        extent = int(extent)
    return tir.convert(extent)


def _outputs_of(op: Operation) -> Any:
    """The tensor of an operation; a tuple when it has several."""
    outputs = tuple(op.output(i) for i in range(op.num_outputs))
    return outputs if len(outputs) > 1 else outputs[0]


def _as_expr(value: Any, where: str) -> PrimExpr:
    """The element expression a body returned, numbers made constants."""
    if isinstance(value, Tensor):
        if value.ndim == 0:
            return value()
        raise TypeError(
            f"{where}: the body is tensor {value.name}, not an element of it; give an index for "
            f"each of its {value.ndim} axes"
        )
    expr = tir.convert(value)
    if not isinstance(expr, PrimExpr):
        raise TypeError(f"{where}: the body must be an expression, got {type(value).__name__}")
    return expr


def _as_range(dom: Any) -> Range:
    if isinstance(dom, Range):
        return dom
    if not isinstance(dom, (tuple, list, Array)) or len(dom) != 2:
        raise TypeError(f"the domain of an axis is a Range or (begin, end), got {dom!r}")
    return Range(dom[0], dom[1])


def _as_attrs(attrs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Attributes as objects: numbers become constants."""

    def as_object(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [as_object(item) for item in value]
        return tir.const(value) if isinstance(value, (bool, int, float)) else value

    return {key: as_object(value) for key, value in (attrs or {}).items()}


def _axis_names(
    fcompute: Callable[..., Any], ndim: int, varargs_names: Sequence[str] | None, name: str
) -> list[str]:
    """One name per index: the arguments' own, then ``varargs_names``, then ax0, ax1, ..."""
    parameters = list(inspect.signature(fcompute).parameters.values())
    names = [
        p.name
        for p in parameters
        if p.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        and p.default is inspect.Parameter.empty
    ]
    takes_more = any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters)
    missing = ndim - len(names)
    if missing < 0:
        raise _index_count_error(name, ndim, len(names))
    if varargs_names is not None:
        if len(varargs_names) != (missing if takes_more else 0):
            raise ValueError(
                f"compute {name}: varargs_names has {len(varargs_names)} names for "
                f"{missing if takes_more else 0} axes"
            )
        return names + list(varargs_names)
    if not takes_more:
        return names
    return names + [f"ax{i}" for i in range(len(names), ndim)]


def _index_count_error(name: str, ndim: int, count: int) -> ValueError:
    return ValueError(
        f"compute {name}: the shape has {ndim} axes but the function takes {count} indices; "
        "make them agree"
    )


def placeholder(
    shape: Extent | Sequence[Extent], dtype: str | None = None, name: str = "placeholder"
) -> Tensor:
    """An input tensor; ``dtype`` defaults to float32."""
    return _ffi_api.Placeholder(_as_shape(shape), dtype or "float32", name)


def compute(
    shape: Extent | Sequence[Extent],
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
    varargs_names: Sequence[str] | None = None,
) -> Any:
    """Tensor whose element at indices ``i, j, ...`` is ``fcompute(i, j, ...)``.

    Parameters
    ----------
    shape : one extent per axis.
    fcompute : takes one index per axis; its argument names become the axes' names, and axes
        taken by ``*args`` are called ax0, ax1, ... A tuple result gives as many tensors. It may
        return a call of a tensor intrinsic, which computes the axes it takes no index for.
    tag : kind of the operation, for schedules that look for it.
    attrs : further facts about the operation.
    varargs_names : names of the axes taken by ``*args``.

    Returns
    -------
    Tensor, or a tuple of tensors when ``fcompute`` returns several values.

    Raises
    ------
    ValueError : the function does not take as many indices as there are axes, or a reduction is
        only a part of the body. TypeError : the body is not an expression.

    Examples
    --------
    >>> from tvm import te
    >>> A = te.placeholder((4, 8), name="A")
    >>> B = te.compute((8, 4), lambda i, j: A[j, i] + 1.0, name="B")
    >>> [str(axis.var.name_hint) for axis in B.op.axis]
    ['i', 'j']
    """
    tag = current_tag(tag, f"compute {name}")
    extents = _as_shape(shape)
    names = _axis_names(fcompute, len(extents), varargs_names, name)
    axes = [
        IterVar(
            Range(tir.const(0, extent.dtype), extent), Var(axis_name, extent.dtype), IterVar.DataPar
        )
        for axis_name, extent in zip(names, extents)
    ]
    result = fcompute(*(axis.var for axis in axes))
    if isinstance(result, TensorIntrinCall):
        # The axes that the function takes no index for are inside of the blocks.
        inner = [
            IterVar(Range(tir.const(0, extent.dtype), extent), f"ax{i}", IterVar.DimInfo)
            for i, extent in enumerate(extents[len(axes) :], len(axes))
        ]
        op = _ffi_api.TensorComputeOp(name, tag, _as_attrs(attrs), axes + inner, len(axes), result)
        return _outputs_of(op)
    if len(axes) != len(extents):
        raise _index_count_error(name, len(extents), len(axes))
    values = result if isinstance(result, (tuple, list)) else [result]
    body = [_as_expr(value, f"compute {name}") for value in values]
    return _outputs_of(_ffi_api.ComputeOp(name, tag, _as_attrs(attrs), axes, body))


def reduce_axis(dom: Any, name: str = "rv", thread_tag: str = "", span: Any = None) -> IterVar:
    """Axis to reduce over; ``dom`` is a Range or (begin, end)."""
    extent_range = _as_range(dom)
    dtype = str(extent_range.extent.dtype)
    return IterVar(extent_range, Var(name, dtype), IterVar.CommReduce, thread_tag)


def thread_axis(dom: Any = None, tag: str = "", name: str = "", span: Any = None) -> IterVar:
    """Thread axis for :meth:`Stage.bind`, called as ``thread_axis("threadIdx.x")``.

    Parameters
    ----------
    dom : (begin, end) to fix the extent, an int for (0, int), or None to take the loop's.
    tag : "blockIdx.x", "threadIdx.y", "vthread", ...
    """
    if isinstance(dom, str):
        dom, tag = None, dom
    if not tag:
        raise ValueError("thread_axis: tag is missing; give for example tag='threadIdx.x'")
    if isinstance(dom, int):
        dom = (0, dom)
    extent_range = None if dom is None else _as_range(dom)
    dtype = "int32" if extent_range is None else str(extent_range.extent.dtype)
    return IterVar(extent_range, Var(name or tag, dtype), IterVar.ThreadIndex, tag)


def var(name: str = "tindex", dtype: str = "int32", span: Any = None) -> Var:
    """A variable, for symbolic shapes."""
    return Var(name, dtype, span)


def size_var(name: str = "size", dtype: str = "int32", span: Any = None) -> Var:
    """A variable that is at least one, for symbolic shapes and tile sizes."""
    return tir.SizeVar(name, dtype, span)


def extern(
    shape: Sequence[Any],
    inputs: Sequence[Tensor],
    fcompute: Callable[[Sequence[Any], Sequence[Any]], Any],
    name: str = "extern",
    dtype: str | Sequence[str] | None = None,
    in_buffers: tir.Buffer | Sequence[tir.Buffer] | None = None,
    out_buffers: tir.Buffer | Sequence[tir.Buffer] | None = None,
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Tensors written by a statement, such as a call of a library function.

    Parameters
    ----------
    shape : of the output, or a list of shapes for several outputs.
    inputs : tensors read.
    fcompute : gets the input and the output buffers, returns a statement or a call.
    dtype : of the outputs; needed unless all inputs share one.

    Returns
    -------
    Tensor, or a tuple of tensors when there are several shapes.
    """
    tag = current_tag(tag, f"extern {name}")
    is_joint = bool(shape) and isinstance(shape[0], (tuple, list, Array))
    shapes = list(shape) if is_joint else [shape]
    if dtype is None:
        dtypes = {str(t.dtype) for t in inputs}
        if len(dtypes) != 1:
            raise ValueError(f"extern {name}: cannot infer the dtype of the outputs; give dtype=")
        dtype = dtypes.pop()
    out_dtypes = [dtype] * len(shapes) if isinstance(dtype, str) else list(dtype)
    in_buffers = [in_buffers] if isinstance(in_buffers, tir.Buffer) else in_buffers
    out_buffers = [out_buffers] if isinstance(out_buffers, tir.Buffer) else out_buffers
    ins = list(in_buffers or [tir.decl_buffer(t.shape, t.dtype, t.name) for t in inputs])
    outs = list(out_buffers or [tir.decl_buffer(s, t, name) for s, t in zip(shapes, out_dtypes)])
    if len(outs) != len(shapes):
        raise ValueError(
            f"extern {name}: {len(shapes)} shapes but {len(outs)} buffers of outputs; give one each"
        )
    body = fcompute(ins, outs)
    if isinstance(body, PrimExpr):
        body = tir.Evaluate(body)
    if not isinstance(body, tir.Stmt):
        raise TypeError(
            f"extern {name}: fcompute must return a statement or a call, got {type(body).__name__}"
        )
    return _outputs_of(
        _ffi_api.ExternOp(name, tag, _as_attrs(attrs), list(inputs), ins, outs, body)
    )


def _split_parameters(
    name: str, primfunc: tir.PrimFunc, buffers: list[tir.Buffer], num_inputs: int
) -> tuple[list[tir.Buffer], list[tir.Buffer]]:
    """The parameters that `num_inputs` tensors stand for, and those that are outputs."""
    read: set[Any] = set()
    written: set[Any] = set()

    def visit(node: Any) -> None:
        if isinstance(node, tir.BufferLoad):
            read.add(node.buffer.data)
        elif isinstance(node, tir.BufferStore):
            written.add(node.buffer.data)
        elif isinstance(node, tir.Var) and any(node.same_as(b.data) for b in buffers):
            # The pointer goes to a call, which may do anything.
            read.add(node)
            written.add(node)

    tir.stmt_functor.post_order_visit(primfunc.body, visit)
    behind = buffers[num_inputs:]
    if not all(buffer.data in written for buffer in behind):
        behind = [b for b in buffers if b.data in written and b.data not in read]
    before = [b for b in buffers if not any(b.same_as(other) for other in behind)]
    if len(before) != num_inputs or not behind:
        raise ValueError(
            f"{name}: {num_inputs} inputs leave no outputs among the {len(buffers)} parameters of "
            f"the function, of which it writes {[b.name for b in buffers if b.data in written]}; "
            "give a tensor for each other parameter"
        )
    return before, behind


def extern_primfunc(
    input_tensors: Sequence[Tensor],
    primfunc: tir.PrimFunc,
    name: str | None = None,
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """Tensors written by a function of tir.

    Parameters
    ----------
    input_tensors : one for each buffer parameter that is no output, in their order. Outputs are the
        parameters behind them if all of those are written, otherwise those that are written and
        not read.
    primfunc : takes buffers only; its buffers are read and written as their tensors are.

    Returns
    -------
    Tensor, or a tuple of tensors when there are several outputs.

    Raises
    ------
    ValueError : a parameter is no buffer, or does not fit its tensor, or the number of tensors
        does not leave the outputs.
    """
    name = name or "extern_primfunc"
    buffers = []
    for param in primfunc.params:
        if param not in primfunc.buffer_map:
            raise ValueError(f"{name}: parameter {param} is no buffer; pass buffers only")
        buffers.append(primfunc.buffer_map[param])
    inputs, outputs = _split_parameters(name, primfunc, buffers, len(input_tensors))
    for tensor, buffer in zip(input_tensors, inputs):
        if str(tensor.dtype) != str(buffer.dtype) or not tvm.ir.structural_equal(
            tensor.shape, buffer.shape
        ):
            raise ValueError(
                f"{name}: tensor {tensor.name} has {list(tensor.shape)} of {tensor.dtype}, "
                f"parameter {buffer.name} has {list(buffer.shape)} of {buffer.dtype}"
            )
    return extern(
        [list(buffer.shape) for buffer in outputs],
        input_tensors,
        lambda ins, outs: primfunc.body,
        name=name,
        dtype=[str(buffer.dtype) for buffer in outputs],
        in_buffers=inputs,
        out_buffers=outputs,
        tag=tag,
        attrs=attrs,
    )


def scan(
    init: Tensor | Sequence[Tensor],
    update: Tensor | Sequence[Tensor],
    state_placeholder: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor] | None = None,
    name: str = "scan",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Any:
    """A recurrence over the first axis.

    Parameters
    ----------
    init : the first positions of each state, computed from anything but the states.
    update : position ``t`` of each state, computed from positions before ``t``.
    state_placeholder : the placeholders by which updates read the states.
    inputs : tensors that the updates read besides; what they depend on is not a part of the steps.

    Returns
    -------
    The states, as many as were given; a single tensor when tensors and no lists were given.

    Raises
    ------
    ValueError : starts, updates and states do not agree in number, shape or dtype.

    Examples
    --------
    Running sums of the rows of ``X``:

    >>> from tvm import te
    >>> X = te.placeholder((8, 4), name="X")
    >>> state = te.placeholder((8, 4), name="state")
    >>> start = te.compute((1, 4), lambda _, i: X[0, i])
    >>> step = te.compute((8, 4), lambda t, i: state[t - 1, i] + X[t, i])
    >>> sums = te.scan(start, step, state, inputs=[X])
    """

    tag = current_tag(tag, f"scan {name}")

    def as_list(value: Tensor | Sequence[Tensor]) -> list[Tensor]:
        return [value] if isinstance(value, Tensor) else list(value)

    outputs = _ffi_api.Scan(
        name,
        tag,
        _as_attrs(attrs),
        as_list(init),
        as_list(update),
        as_list(state_placeholder),
        as_list(inputs or []),
    )
    return tuple(outputs) if len(outputs) > 1 else outputs[0]


def replace_tensors(
    outputs: Sequence[Tensor], replacements: Sequence[tuple[Tensor, Tensor]]
) -> list[Tensor]:
    """The outputs computed from other tensors; operations that depend on none of these stay.

    Parameters
    ----------
    replacements : a tensor that is read, and one of the same shape and dtype to read instead.

    Raises
    ------
    ValueError : two of such tensors differ in shape or dtype.
    """
    for old, new in replacements:
        if list(map(str, old.shape)) != list(map(str, new.shape)) or old.dtype != new.dtype:
            raise ValueError(
                f"replace_tensors: {old} is {old.dtype} of shape {list(old.shape)}, the one for it "
                f"{new.dtype} of shape {list(new.shape)}"
            )
    made: dict[Operation, Operation] = {}

    def rebuilt(tensor: Tensor) -> Tensor:
        for old, new in replacements:
            if tensor.op.same_as(old.op) and tensor.value_index == old.value_index:
                return new
        if tensor.op not in made:
            read = list(tensor.op.input_tensors)
            instead = [rebuilt(operand) for operand in read]
            same = all(
                a.op.same_as(b.op) and int(a.value_index) == int(b.value_index)
                for a, b in zip(read, instead)
            )
            made[tensor.op] = (
                tensor.op if same else _ffi_api.OperationReplaceInputs(tensor.op, read, instead)
            )
        return made[tensor.op].output(int(tensor.value_index))

    return [rebuilt(tensor) for tensor in outputs]
