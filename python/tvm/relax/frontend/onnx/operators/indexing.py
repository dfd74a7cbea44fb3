"""Operators that read and write at computed places, sort and search."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..errors import OnnxError
from .registry import Node, operator
from .shapes import normalized

__all__: list[str] = []


def _wrapped(indices: torch.Tensor, extent: int) -> torch.Tensor:
    """Indices from the front, where negative ones count from the end."""
    whole = indices.to(torch.int64)
    return torch.where(whole < 0, whole + extent, whole)


@operator("Gather")
def _gather(n: Node, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    axis = normalized(n.attr("axis", 0), x.dim())
    flat = _wrapped(indices, x.shape[axis]).reshape(-1)
    found = torch.index_select(x, axis, flat)
    return found.reshape([*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]])


@operator("GatherElements")
def _gather_elements(n: Node, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    axis = normalized(n.attr("axis", 0), x.dim())
    return torch.gather(x, axis, _wrapped(indices, x.shape[axis]))


def _tuple_index(indices: torch.Tensor, shape: torch.Size, batch_dims: int = 0) -> tuple[Any, ...]:
    """The last axis of `indices` as an index into dimensions `batch_dims` and on."""
    count = indices.shape[-1]
    parts = [_wrapped(indices[..., i], shape[batch_dims + i]) for i in range(count)]
    lead: list[torch.Tensor] = []
    rank = indices.dim() - 1
    for i in range(batch_dims):
        extents = [1] * rank
        extents[i] = shape[i]
        lead.append(torch.arange(shape[i]).reshape(extents))
    return (*lead, *parts)


@operator("GatherND")
def _gather_nd(n: Node, x: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    return x[_tuple_index(indices, x.shape, n.attr("batch_dims", 0))]


_REDUCTIONS = {"mul": "prod", "max": "amax", "min": "amin", "add": "sum"}


@operator("Scatter", "ScatterElements")
def _scatter_elements(
    n: Node, x: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor
) -> torch.Tensor:
    axis = normalized(n.attr("axis", 0), x.dim())
    where = _wrapped(indices, x.shape[axis])
    reduction = n.attr("reduction", "none")
    if reduction == "none":
        return torch.scatter(x, axis, where, updates)
    return torch.scatter_reduce(x, axis, where, updates, _REDUCTIONS[reduction])


@operator("ScatterND")
def _scatter_nd(
    n: Node, x: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor
) -> torch.Tensor:
    reduction = n.attr("reduction", "none")
    index = _tuple_index(indices, x.shape)
    if reduction in ("none", "add"):
        return x.index_put(index, updates, accumulate=reduction == "add")
    # Rows by one number, so that equal ones are reduced together.
    count = indices.shape[-1]
    flat = torch.zeros(indices.shape[:-1], dtype=torch.int64)
    rows = 1
    for i, part in enumerate(index):
        flat = flat * x.shape[i] + part
        rows *= x.shape[i]
    inner = list(x.shape[count:])
    places = flat.reshape(-1, *[1] * len(inner)).expand(flat.numel(), *inner)
    result = torch.scatter_reduce(
        x.reshape(rows, *inner),
        0,
        places,
        updates.reshape(flat.numel(), *inner),
        _REDUCTIONS[reduction],
    )
    return result.reshape(x.shape)


@operator("TensorScatter")
def _tensor_scatter(
    n: Node, past: torch.Tensor, update: torch.Tensor, starts: torch.Tensor | None = None
) -> torch.Tensor:
    axis = normalized(n.attr("axis", -2), past.dim())
    batch, length = past.shape[0], update.shape[axis]
    begin = torch.zeros(batch, dtype=torch.int64) if starts is None else starts.to(torch.int64)
    places = begin[:, None] + torch.arange(length)[None, :]
    if n.attr("mode", "linear") == "circular":
        places = torch.remainder(places, past.shape[axis])
    shape = [1] * past.dim()
    shape[0], shape[axis] = batch, length
    return torch.scatter(past, axis, places.reshape(shape).expand(update.shape), update)


@operator("NonZero")
def _non_zero(n: Node, x: torch.Tensor) -> torch.Tensor:
    return torch.nonzero(x).t()


@operator("Compress")
def _compress(n: Node, x: torch.Tensor, condition: torch.Tensor) -> torch.Tensor:
    chosen = torch.nonzero(condition).reshape(-1)
    axis = n.attr("axis")
    return x.reshape(-1)[chosen] if axis is None else torch.index_select(x, axis, chosen)


@operator("Unique")
def _unique(n: Node, x: torch.Tensor) -> list[torch.Tensor]:
    array = x.numpy()
    found = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, axis=n.attr("axis")
    )
    values, first, inverse, counts = found
    inverse = inverse.reshape(-1)
    if not n.attr("sorted", 1):
        order = np.argsort(first)
        values = np.take(values, order, axis=n.attr("axis") or 0)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        first, inverse, counts = first[order], places[inverse], counts[order]
    rest = [torch.from_numpy(part.astype(np.int64)) for part in (first, inverse, counts)]
    return [torch.from_numpy(np.ascontiguousarray(values)), *rest]


@operator("TopK")
def _top_k(n: Node, x: torch.Tensor, k: torch.Tensor) -> list[torch.Tensor]:
    count = int((n.ints(1) or [0])[0])
    axis = normalized(n.attr("axis", -1), x.dim())
    if count > x.shape[axis]:
        raise OnnxError(f"the {count} largest of {x.shape[axis]} elements")
    # Sorted stably, because of equal elements the first ones count.
    wide = x.to(torch.int64) if x.dtype in (torch.uint16, torch.uint32, torch.uint64) else x
    largest = bool(n.attr("largest", 1))
    _, places = torch.sort(wide, dim=axis, descending=largest, stable=True)
    places = places.narrow(axis, 0, count)
    return [torch.gather(x, axis, places), places]


@operator("ArgMax", "ArgMin")
def _arg_extreme(n: Node, x: torch.Tensor) -> torch.Tensor:
    axis = normalized(n.attr("axis", 0), x.dim())
    function = torch.argmax if n.op_type == "ArgMax" else torch.argmin
    keep = bool(n.attr("keepdims", 1))
    if not n.attr("select_last_index", 0):
        return function(x, dim=axis, keepdim=keep)
    return x.shape[axis] - 1 - function(torch.flip(x, [axis]), dim=axis, keepdim=keep)


@operator("CumSum", "CumProd")
def _cumulative(n: Node, x: torch.Tensor, axis: torch.Tensor) -> torch.Tensor:
    dim = normalized(int((n.ints(1) or [0])[0]), x.dim())
    function = torch.cumsum if n.op_type == "CumSum" else torch.cumprod
    neutral = torch.full_like(x.narrow(dim, 0, min(1, x.shape[dim])), int(n.op_type == "CumProd"))
    if n.attr("reverse", 0):
        x = torch.flip(x, [dim])
    result = function(x, dim).to(x.dtype)
    if n.attr("exclusive", 0):
        result = torch.cat([neutral, result.narrow(dim, 0, x.shape[dim] - 1)], dim)
    return torch.flip(result, [dim]) if n.attr("reverse", 0) else result


@operator("ReverseSequence")
def _reverse_sequence(n: Node, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    batch_axis, time_axis = n.attr("batch_axis", 1), n.attr("time_axis", 0)
    steps = torch.arange(x.shape[time_axis])
    shape = [1] * x.dim()
    shape[time_axis] = -1
    at = steps.reshape(shape)
    shape = [1] * x.dim()
    shape[batch_axis] = -1
    ends = lengths.to(torch.int64).reshape(shape)
    places = torch.where(at < ends, ends - 1 - at, at)
    return torch.gather(x, time_axis, places.expand(x.shape))


@operator("ArrayFeatureExtractor", domain="ai.onnx.ml")
def _array_feature_extractor(n: Node, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    found = torch.index_select(x, x.dim() - 1, y.reshape(-1).to(torch.int64))
    return found.reshape(1, -1) if x.dim() == 1 else found


@operator("Binarizer", domain="ai.onnx.ml")
def _binarizer(n: Node, x: torch.Tensor) -> torch.Tensor:
    return (x > n.attr("threshold", 0.0)).to(x.dtype)


def _sequence_position(n: Node, index: int, length: int) -> int:
    given = n.ints(index)
    position = length if given is None else given[0]
    return position + length if position < 0 else position


@operator("SequenceEmpty")
def _sequence_empty(n: Node) -> tuple[list[Any]]:
    return ([],)


@operator("SequenceConstruct")
def _sequence_construct(n: Node, *tensors: torch.Tensor) -> tuple[list[Any]]:
    return (list(tensors),)


@operator("SequenceInsert")
def _sequence_insert(
    n: Node, sequence: list[Any], tensor: torch.Tensor, position: torch.Tensor | None = None
) -> tuple[list[Any]]:
    at = _sequence_position(n, 2, len(sequence))
    return ([*sequence[:at], tensor, *sequence[at:]],)


@operator("SequenceErase")
def _sequence_erase(
    n: Node, sequence: list[Any], position: torch.Tensor | None = None
) -> tuple[list[Any]]:
    at = len(sequence) - 1 if position is None else _sequence_position(n, 1, len(sequence))
    return ([*sequence[:at], *sequence[at + 1 :]],)


@operator("SequenceAt")
def _sequence_at(n: Node, sequence: list[Any], position: torch.Tensor) -> Any:
    return sequence[_sequence_position(n, 1, len(sequence))]


@operator("SequenceLength")
def _sequence_length(n: Node, sequence: list[Any]) -> torch.Tensor:
    return torch.from_numpy(np.array(len(sequence), np.int64))


@operator("ConcatFromSequence")
def _concat_from_sequence(n: Node, sequence: list[Any]) -> torch.Tensor:
    join = torch.stack if n.attr("new_axis", 0) else torch.cat
    return join(sequence, n.attr("axis"))


@operator("SplitToSequence")
def _split_to_sequence(
    n: Node, x: torch.Tensor, split: torch.Tensor | None = None
) -> tuple[list[Any]]:
    axis = normalized(n.attr("axis", 0), x.dim())
    if split is None:
        parts = torch.split(x, 1, axis)
        keep = n.attr("keepdims", 1)
        return (list(parts) if keep else [part.squeeze(axis) for part in parts],)
    sizes = n.ints(1) or []
    return (list(torch.split(x, sizes if split.dim() else sizes[0], axis)),)


@operator("Optional")
def _optional(n: Node, value: Any = None) -> tuple[Any]:
    return (value,)


@operator("OptionalHasElement")
def _optional_has_element(n: Node, value: Any = None) -> torch.Tensor:
    return torch.from_numpy(np.array(value is not None))


@operator("OptionalGetElement")
def _optional_get_element(n: Node, value: Any) -> tuple[Any]:
    return (value,)
