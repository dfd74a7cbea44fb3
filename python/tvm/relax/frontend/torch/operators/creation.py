"""Tensors made of numbers alone."""

from __future__ import annotations

import numpy as np

from tvm.ir import PrimExpr, RelayExpr
from tvm.relax import op
from tvm.relax.expr import PrimValue, ShapeExpr, const

from ..arguments import Arguments, converter, refuse

__all__: list[str] = []


def _filled(a: Arguments, value: float) -> RelayExpr:
    number = const(_number(a, value), a.result_dtype)
    return op.full(ShapeExpr(a.result_shape), number, a.result_dtype)


def _number(a: Arguments, value: float) -> bool | int | float:
    if a.result_dtype == "bool":
        return bool(value)
    return float(value) if a.result_dtype.startswith(("float", "bfloat")) else int(value)


@converter("full.default", "full_like.default", "new_full.default", "fill.Scalar")
def _full(a: Arguments) -> RelayExpr:
    value = a["fill_value"] if a.get("fill_value") is not None else a["value"]
    if isinstance(value, (RelayExpr, PrimExpr)):
        return a.tensor(value, a.result_shape, a.result_dtype)
    return _filled(a, value)


@converter("fill.Tensor")
def _fill(a: Arguments) -> RelayExpr:
    return a.tensor(a["value"], a.result_shape, a.result_dtype)


@converter("zeros.default", "zeros_like.default", "new_zeros.default", "zero.default",
           "empty.memory_format", "empty_strided.default", "empty_like.default",
           "new_empty.default", "new_empty_strided.default", "empty_permuted.default")  # fmt: skip
def _zeros(a: Arguments) -> RelayExpr:
    # What a program reads of memory that it has not written is its own affair; zeros are allowed.
    return _filled(a, 0)


@converter("ones.default", "ones_like.default", "new_ones.default")
def _ones(a: Arguments) -> RelayExpr:
    return _filled(a, 1)


@converter("scalar_tensor.default")
def _scalar_tensor(a: Arguments) -> RelayExpr:
    return a.cast(a["s"], a.result_dtype)


@converter("arange.default", "arange.start", "arange.start_step")
def _arange(a: Arguments) -> RelayExpr:
    (count,) = a.result_shape
    limits = [a.get("start", 0), a.get("step", 1)]
    if any(isinstance(n, PrimExpr) for n in (count, *limits)):
        first, gap = (n if isinstance(n, PrimExpr) else int(n) for n in limits)
        a.refuse_unless(limits == [first, gap], "of an open number of steps that are no integers")
        last = PrimValue(first + count * gap)
        whole = a.emit(op.arange(PrimValue(first), last, PrimValue(gap), "int64"))
        return a.cast(whole, a.result_dtype)
    start, step = _number(a, a.get("start", 0)), _number(a, a.get("step", 1))
    # The count is known; half a step off, no rounding changes it.
    end = start + (count - 0.5 if isinstance(start, float) else count) * step
    return op.arange(start, end, step, a.result_dtype)


@converter("linspace.default")
def _linspace(a: Arguments) -> RelayExpr:
    (count,) = a.result_shape
    a.refuse_unless(isinstance(count, int), "of an open number of steps")
    return const(np.linspace(a["start"], a["end"], count), a.result_dtype)


@converter("eye.default", "eye.m")
def _eye(a: Arguments) -> RelayExpr:
    rows, columns = a.result_shape
    if isinstance(rows, int) and isinstance(columns, int):
        return const(np.eye(rows, columns), a.result_dtype)
    down, across = (
        a.emit(op.arange(0, PrimValue(extent), 1, "int64")) for extent in (rows, columns)
    )
    same = a.call("equal", a.emit(op.reshape(down, (rows, 1))), across)
    return op.astype(same, a.result_dtype)


@converter("one_hot.default")
def _one_hot(a: Arguments) -> RelayExpr:
    classes = a.result_shape[-1]
    index = a.emit(op.reshape(a["self"], (*a.shape("self"), 1)))
    kinds = const(np.arange(classes), a.dtype("self"))
    return op.astype(a.call("equal", index, kinds), a.result_dtype)


@converter("tril_indices.default", "triu_indices.default")
def _triangle_indices(a: Arguments) -> RelayExpr:
    name = "tril" if "tril" in a.name else "triu"
    a.refuse_unless(
        isinstance(a["row"], int) and isinstance(a["col"], int), "of a matrix of open sizes"
    )
    make = np.tril_indices if name == "tril" else np.triu_indices
    found = make(int(a["row"]), int(a["offset"]), int(a["col"]))
    return const(np.stack(found), a.result_dtype)


refuse(
    "is a step of training",
    "_adaptive_avg_pool2d_backward.default", "avg_pool2d_backward.default",
    "convolution_backward.default", "embedding_dense_backward.default",
    "max_pool2d_with_indices_backward.default", "native_group_norm_backward.default",
    "native_layer_norm_backward.default",
)  # fmt: skip
refuse(
    "takes a number out of a tensor, which the exported program then computes with",
    "_local_scalar_dense.default", "item.default",
)  # fmt: skip
refuse(
    "asks how a tensor lies in memory, which the compiler decides",
    "sym_storage_offset.default", "sym_stride.int", "sym_is_contiguous.default",
)  # fmt: skip
refuse("writes to a tensor that is given to it", "atan2.out", "resize.default", "resize_.default")
