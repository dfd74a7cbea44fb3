"""Operators that write elements at places an index tensor names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tvm import te, tir

from .broadcast import divide
from .creation import ones_like
from .loops import loop_nest
from .utils import Extent, as_int, get_const_tuple, normalize_axis

__all__ = ["scatter", "scatter_add", "scatter_elements", "scatter_nd", "sparse_to_dense"]

_REDUCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "update": lambda old, new: new,
    "add": lambda old, new: old + new,
    "mul": lambda old, new: old * new,
    "min": tir.min,
    "max": tir.max,
}


def _scatter(
    shape: Sequence[Extent],
    dtype: str,
    inputs: Sequence[te.Tensor],
    start: Callable[..., Any],
    updates: Sequence[Extent],
    place: Callable[..., Sequence[Any]],
    value: Callable[..., Any],
    combine: Callable[[Any, Any], Any],
    serial: Sequence[int],
    name: str,
) -> te.Tensor:
    """A tensor filled from ``start``, then updated in order.

    Parameters
    ----------
    inputs : tensors whose buffers the functions below get in front of their indices.
    start : the element at an index before the updates.
    updates : extents of the loops over the updates.
    place, value : where an update goes, and what it is; one out of range is left out.
    serial : loops over the updates that may meet at one place.
    """

    def body(ins: Any, outs: Any) -> tir.Stmt:
        result = outs[0]

        def update(*i: Any) -> tir.Stmt:
            at = [p.astype(index_dtype(e)) for p, e in zip(place(ins, *i), shape)]
            # A loop's variable is in range as it is.
            inside = [
                condition
                for p, extent in zip(at, shape)
                if not isinstance(p, tir.Var)
                for condition in (p >= 0, p < extent)
            ]
            store = tir.BufferStore(result, combine(result[tuple(at)], value(ins, *i)), at)
            return tir.IfThenElse(tir.all(*inside), store) if inside else store

        fill = loop_nest(shape, lambda *i: tir.BufferStore(result, start(ins, *i), i), name="j")
        return tir.stmt_seq(fill, loop_nest(updates, update, serial=serial))

    return te.extern([tuple(shape)], list(inputs), body, name=name, dtype=[dtype], tag=name)


def index_dtype(extent: Extent) -> str:
    """Element type of indices along a dimension: that of a symbolic extent, else int32."""
    return str(extent.dtype) if isinstance(extent, tir.PrimExpr) else "int32"


def _count_from_front(index: Any, extent: Extent) -> Any:
    index = index.astype(index_dtype(extent))
    return tir.Select(index < 0, index + extent, index)


def _reduction(where: str, name: str) -> Callable[[Any, Any], Any]:
    if name not in _REDUCTIONS:
        raise ValueError(f"topi.{where}: reduction is one of {sorted(_REDUCTIONS)}, got {name!r}")
    return _REDUCTIONS[name]


def scatter_elements(
    data: te.Tensor,
    indices: te.Tensor,
    updates: te.Tensor,
    axis: int = 0,
    reduction: str = "update",
) -> te.Tensor:
    """data with out[i][indices[i][j][k]][k] set from updates[i][j][k], for axis 1, and so on.

    Parameters
    ----------
    indices : integers with the shape of updates; negative ones count from the end, and what is
        still out of range is left out.
    reduction : how an update meets what is there: "update" replaces it (of several the last one
        stays), "add", "mul", "min", "max", and "mean" of the element and all its updates.
    """
    shape, own = get_const_tuple(data.shape), get_const_tuple(indices.shape)
    at = normalize_axis(axis, len(shape))
    if len(own) != len(shape) or len(updates.shape) != len(shape):
        raise ValueError(
            f"topi.scatter_elements: data has {len(shape)} dimensions, indices {len(own)}, updates "
            f"{len(updates.shape)}; they must agree"
        )
    if updates.dtype != data.dtype:
        raise TypeError(
            f"topi.scatter_elements: data is {data.dtype}, updates {updates.dtype}; cast one"
        )
    if reduction == "mean":
        total = scatter_elements(data, indices, updates, axis, "add")
        count = scatter_elements(ones_like(data), indices, ones_like(updates), axis, "add")
        return divide(total, count)
    return _scatter(
        shape,
        data.dtype,
        [data, indices, updates],
        lambda ins, *i: ins[0][i],
        own,
        lambda ins, *i: [*i[:at], _count_from_front(ins[1][i], shape[at]), *i[at + 1 :]],
        lambda ins, *i: ins[2][i],
        _reduction("scatter_elements", reduction),
        [at],
        "T_scatter_elements",
    )


def scatter(data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int = 0) -> te.Tensor:
    """:func:`scatter_elements` that replaces."""
    return scatter_elements(data, indices, updates, axis, "update")


def scatter_add(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, axis: int = 0
) -> te.Tensor:
    """:func:`scatter_elements` that adds."""
    return scatter_elements(data, indices, updates, axis, "add")


def scatter_nd(
    data: te.Tensor, indices: te.Tensor, updates: te.Tensor, mode: str = "update"
) -> te.Tensor:
    """data with slices at index tuples updated.

    Parameters
    ----------
    indices : integers (depth, ...): the first dimension holds the tuple, for the first dimensions
        of data; negative ones count from the end, and what is still out of range is left out.
    updates : the dimensions of indices behind the first, then those of data behind the tuple.
    mode : "update", "add", "mul", "min" or "max", as in :func:`scatter_elements`.
    """
    shape, own = get_const_tuple(data.shape), get_const_tuple(indices.shape)
    depth, rest = as_int(own[0]), len(own) - 1
    if depth > len(shape) or len(updates.shape) != rest + len(shape) - depth:
        raise ValueError(
            f"topi.scatter_nd: tuples of {depth} numbers and updates of {len(updates.shape)} "
            f"dimensions do not fit data of {len(shape)} and indices of {len(own)} dimensions"
        )

    def place(ins: Any, *i: Any) -> list[Any]:
        where = [ins[1][[k, *i[:rest]]] for k in range(depth)]
        return [*(_count_from_front(p, n) for p, n in zip(where, shape)), *i[rest:]]

    return _scatter(
        shape,
        data.dtype,
        [data, indices, updates],
        lambda ins, *i: ins[0][i],
        get_const_tuple(updates.shape),
        place,
        lambda ins, *i: ins[2][i],
        _reduction("scatter_nd", mode),
        list(range(rest)),
        "T_scatter_nd",
    )


def sparse_to_dense(
    sparse_indices: te.Tensor,
    output_shape: Sequence[Extent],
    sparse_values: te.Tensor,
    default_value: float | te.Tensor = 0,
) -> te.Tensor:
    """A tensor of a default value with some elements set.

    Parameters
    ----------
    sparse_indices : integers: (count, dimensions); (count,) for one dimension; () for one element
        of one dimension.
    sparse_values : (count,), or () for one value.
    default_value : a number, or a tensor of one element.
    """
    shape = get_const_tuple(output_shape)
    own = get_const_tuple(sparse_indices.shape)
    if len(own) > 2 or (len(own) == 2 and own[1] != len(shape)) or (len(own) < 2 < len(shape) + 1):
        raise ValueError(
            f"topi.sparse_to_dense: indices of shape {own} do not fit an output of {len(shape)} "
            "dimensions"
        )
    is_one_value = len(sparse_values.shape) == 0

    def place(ins: Any, j: Any) -> list[Any]:
        if len(own) == 2:
            return [ins[0][(j, k)] for k in range(len(shape))]
        return [ins[0][(j,) if own else ()]]

    inputs = [sparse_indices, sparse_values]
    if isinstance(default_value, te.Tensor):
        inputs.append(default_value)
        only = (0,) * len(default_value.shape)

    def start(ins: Any, *i: Any) -> Any:
        if isinstance(default_value, te.Tensor):
            return ins[2][only].astype(sparse_values.dtype)
        return tir.const(default_value, sparse_values.dtype)

    return _scatter(
        shape,
        sparse_values.dtype,
        inputs,
        start,
        [own[0] if own else 1],
        place,
        lambda ins, j: ins[1][() if is_one_value else (j,)],
        _REDUCTIONS["update"],
        [0],
        "T_sparse_to_dense",
    )
