"""Gathering, scattering, ordering and scanning."""

from __future__ import annotations

import math
from typing import Any

from tvm import tir
from tvm.ir import RelayExpr
from tvm.relax import op
from tvm.relax.expr import Tuple, TupleGetItem
from tvm.relax.struct_info import open_shape

from ..arguments import Arguments, converter, operator_name, refuse

__all__: list[str] = []


@converter("embedding.default")
def _embedding(a: Arguments) -> RelayExpr:
    return op.make_call("take", a["weight"], a["indices"], axis=0)


@converter("index_select.default")
def _index_select(a: Arguments) -> RelayExpr:
    data, index = a["self"], a["index"]
    if not a.rank("index"):
        index = a.emit(op.reshape(index, (1,)))
    if not a.rank("self"):
        return op.reshape(data, a.result_shape)
    return op.make_call("take", data, index, axis=a.axis())


@converter("gather.default")
def _gather(a: Arguments) -> RelayExpr:
    data, index = a["self"], a["index"]
    if not a.rank("self"):
        return op.reshape(data, a.result_shape)
    return op.make_call("gather_elements", data, index, axis=a.axis())


@converter("take_along_dim.default")
def _take_along_dim(a: Arguments) -> RelayExpr:
    data, index = a["self"], a["indices"]
    if a["dim"] is None:
        data, index = (a.emit(op.reshape(t, (-1,))) for t in (data, index))
        return op.make_call("gather_elements", data, index, axis=0)
    axis = a.axis()
    shape = list(a.result_shape)
    size = a.shape("self")[axis]
    data = a.tensor(data, [*shape[:axis], size, *shape[axis + 1 :]], a.result_dtype)
    return op.make_call(
        "gather_elements", data, a.tensor(index, shape, a.dtype("indices")), axis=axis
    )


def _index_places(a: Arguments) -> tuple[list[int], list[RelayExpr]]:
    """Dimensions that are indexed, and by what; from a list with None for those that are not."""
    axes, indices = [], []
    for axis, index in enumerate(a["indices"]):
        if index is not None:
            a.refuse_unless(
                str(index.struct_info.dtype) != "bool",
                "by a mask, whose result has a size that depends on the data",
            )
            axes.append(axis)
            indices.append(index)
    return axes, indices


@converter("index.Tensor")
def _index(a: Arguments) -> RelayExpr:
    axes, indices = _index_places(a)
    if not axes:
        return a["self"]
    # Neighbouring indexed dimensions are replaced where they stand, others move to the front.
    together = axes == list(range(axes[0], axes[-1] + 1))
    return op.make_call(
        "index_tensor", a["self"], Tuple(indices), axes=axes, out_axis=axes[0] if together else 0
    )


@converter("index_put.default", "_unsafe_index_put.default")
def _index_put(a: Arguments) -> RelayExpr:
    if _is_whole_mask(a):
        return _masked_put(a)
    axes, indices = _index_places(a)
    shape = a.shape("self")
    rest = [k for k in range(len(shape)) if k not in axes]
    order = [*axes, *rest]
    moved = order != list(range(len(shape)))
    data = a.emit(op.permute_dims(a["self"], order)) if moved else a["self"]
    common = _broadcast_shape([open_shape(i.struct_info) for i in indices])
    columns = [a.emit(op.reshape(a.tensor(i, common, "int64"), [*common, 1])) for i in indices]
    places = a.emit(op.concat(columns, len(common))) if len(columns) > 1 else columns[0]
    # The values have the shape of what indexing gives, in which the indices' dimensions may stand
    # behind others.
    at = axes[0] if axes == list(range(axes[0], axes[-1] + 1)) else 0
    lead = [shape[k] for k in rest[:at]]
    full = [*lead, *common, *(shape[k] for k in rest[at:])]
    values = a.tensor(a["values"], full, a.result_dtype)
    if at:
        n = len(common)
        values = a.emit(
            op.permute_dims(values, [*range(at, at + n), *range(at), *range(at + n, len(full))])
        )
    reduction = "add" if a["accumulate"] else "update"
    result = op.make_call("scatter_nd", data, places, values, reduction=reduction)
    if not moved:
        return result
    return op.permute_dims(a.emit(result), [order.index(k) for k in range(len(shape))])


def _broadcast_shape(shapes: list[tuple[int, ...]]) -> list[int]:
    rank = max(len(shape) for shape in shapes)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return [next((n for n in extents if n != 1), 1) for extents in zip(*padded)]


def _is_whole_mask(a: Arguments) -> bool:
    """Whether the one index is a mask, and the values are one for all that it selects."""
    indices = [i for i in a["indices"] if i is not None]
    return (
        len(indices) == 1
        and a["indices"][0] is indices[0]
        and str(indices[0].struct_info.dtype) == "bool"
        and all(n == 1 for n in a.shape("values"))
    )


def _masked_put(a: Arguments) -> RelayExpr:
    (mask,) = (i for i in a["indices"] if i is not None)
    trailing = a.rank("self") - int(mask.struct_info.ndim)
    if trailing:
        mask = a.emit(op.reshape(mask, [*open_shape(mask.struct_info), *[1] * trailing]))
    value = a.emit(op.reshape(a.operand("values"), ()))
    if a["accumulate"]:
        value = a.emit(op.add(a["self"], value))
    return op.make_call("where", mask, value, a["self"])


refuse(
    "gives a result whose size depends on the data",
    "nonzero.default", "masked_select.default", "unique_consecutive.default", "_unique2.default",
    "nonzero_numpy.default", "repeat_interleave.Tensor",
)  # fmt: skip


@converter("index_add.default", "index_copy.default", "index_reduce.default")
def _index_update(a: Arguments) -> RelayExpr:
    """Whole slices at an index vector; the same as a scatter with the indices repeated."""
    axis, shape = a.axis(), a.shape("source")
    if not a.rank("self"):
        # Of a single number as of a vector with one.
        ones = {name: a.emit(op.reshape(a[name], [1])) for name in ("self", "source")}
        return op.reshape(a.emit(_index_update(a.replaced(ones))), ())
    apart = [1] * len(shape)
    apart[axis] = shape[axis]
    index = a.tensor(a.emit(op.reshape(a["index"], apart)), shape, a.dtype("index"))
    source = a.operand("source")
    if a.name == "index_add" and a["alpha"] != 1:
        source = a.emit(op.multiply(source, a.cast(a["alpha"], a.result_dtype)))
    how = {"index_add": "add", "index_copy": "update"}.get(a.name)
    return _scattered(a, a["self"], index, source, how or _REDUCTIONS[a["reduce"]])


_REDUCTIONS = {"sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max",
               "amin": "min", "mean": "mean"}  # fmt: skip


@converter("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce",
           "scatter_add.default", "scatter_reduce.two")  # fmt: skip
def _scatter(a: Arguments) -> RelayExpr:
    data, index = a["self"], a["index"]
    shape = a.shape("index")
    if 0 in shape:
        return data
    source = a["src"] if a.get("src") is not None else a["value"]
    if isinstance(source, RelayExpr):
        extents = open_shape(source.struct_info)
        if extents != shape:
            # Only the part of the source that the indices cover is read.
            axes = list(range(len(shape)))
            source = a.emit(op.strided_slice(source, axes, [0] * len(shape), list(shape)))
        updates = a.cast(source, a.result_dtype)
    else:
        updates = a.tensor(source, shape, a.result_dtype)
    reduction = a.get("reduce")
    if "scatter_add" in a.name:
        reduction = "add"
    how = "update" if reduction is None else _REDUCTIONS[reduction]
    scalar = not a.rank("self")
    if scalar:
        data, index, updates = (a.emit(op.reshape(t, (1,))) for t in (data, index, updates))
    result = _scattered(a, data, index, updates, how)
    return op.reshape(a.emit(result), ()) if scalar else result


def _scattered(
    a: Arguments, data: RelayExpr, index: RelayExpr, updates: RelayExpr, how: str
) -> RelayExpr:
    """Elements reduced into data along the node's dimension, without those that were in their
    places (include_self) if it says so."""
    axis, dtype = a.axis(), a.result_dtype

    def scatter(data: RelayExpr, values: RelayExpr, reduction: str) -> RelayExpr:
        return op.make_call("scatter_elements", data, index, values, axis=axis, reduction=reduction)

    included = how == "update" or bool(a.get("include_self", True))
    is_float = dtype.startswith(("float", "bfloat"))
    # Means of integers are rounded down.
    if included and (how != "mean" or is_float):
        return scatter(data, updates, how)
    if not included:
        start = a.call("full_like", updates, a.cast(_start_of(how, dtype), dtype))
        data = a.emit(scatter(data, start, "update"))
    if how != "mean":
        return scatter(data, updates, how)
    total = a.emit(scatter(data, updates, "add"))
    before = a.call("ones_like" if included else "zeros_like", data, dtype="int32")
    count = a.emit(scatter(before, a.call("ones_like", updates, dtype="int32"), "add"))
    count = a.cast(a.call("maximum", count, a.cast(1, "int32")), dtype)
    return op.make_call("divide" if is_float else "floor_divide", total, count)


def _start_of(how: str, dtype: str) -> float:
    """What changes no sum, mean, product or extreme."""
    if how not in ("max", "min"):
        return 1 if how == "mul" else 0
    if dtype.startswith(("float", "bfloat")):
        return -math.inf if how == "max" else math.inf
    return int((tir.min_value if how == "max" else tir.max_value)(dtype).value)


@converter("masked_scatter.default")
def _masked_scatter(a: Arguments) -> RelayExpr:
    shape = a.result_shape
    mask = a.tensor(a["mask"], shape, "bool")
    # The n-th place that is set gets the n-th element of the source.
    flat = a.emit(op.reshape(a.emit(op.astype(mask, "int64")), (-1,)))
    count = a.call("cumsum", flat, axis=0)
    place = a.emit(op.subtract(count, a.cast(1, "int64")))
    source = a.emit(op.reshape(a["source"], (-1,)))
    chosen = a.call("take", source, place, axis=0)
    return op.make_call("where", mask, a.emit(op.reshape(chosen, shape)), a["self"])


@converter("cumsum.default", "cumprod.default")
def _scan(a: Arguments) -> RelayExpr:
    if not a.rank("self"):
        return a.operand("self")
    name = "cumsum" if "cumsum" in a.name else "cumprod"
    return _scanned(a, name)


def _scanned(a: Arguments, name: str) -> RelayExpr:
    wide = {"float16": "float32", "bfloat16": "float32"}.get(a.result_dtype)
    if wide is None:
        return op.make_call(name, a.operand("self"), axis=a.axis())
    return op.astype(a.call(name, a.operand("self", wide), axis=a.axis()), a.result_dtype)


@converter("logcumsumexp.default")
def _logcumsumexp(a: Arguments) -> RelayExpr:
    return _scanned(a, "logcumsumexp") if a.rank("self") else a.operand("self")


@converter("cummax.default", "cummin.default")
def _extremes(a: Arguments) -> list[RelayExpr | None]:
    """With each extreme the last place up to there that has it."""
    if not a.rank("self"):
        return [a["self"], a.tensor(0, (), "int64")]
    axis, shape = a.axis(), a.shape("self")
    values = a.call(a.name, a["self"], axis=axis)
    if not a.reads_result(1):
        return [values, None]
    has_it = a.call("equal", a["self"], values)
    if a.dtype("self").startswith(("float", "bfloat")):
        has_it = a.call("logical_or", has_it, a.call("not_equal", a["self"], a["self"]))
    lined_up = [1] * len(shape)
    lined_up[axis] = shape[axis]
    place = a.emit(op.reshape(a.emit(op.arange(0, shape[axis], 1, "int64")), lined_up))
    return [values, a.call("cummax", a.call("where", has_it, place, a.cast(0, "int64")), axis=axis)]


@converter("sort.default", "sort.stable")
def _sort(a: Arguments) -> list[Any]:
    if not a.rank("self"):
        return [a["self"], a.tensor(0, (), "int64")]
    axis = a.axis()
    order = a.emit(op.argsort(a["self"], axis, bool(a["descending"]), "int64"))
    return [op.make_call("gather_elements", a["self"], order, axis=axis), order]


@converter("argsort.default", "argsort.stable")
def _argsort(a: Arguments) -> RelayExpr:
    return op.argsort(a["self"], a.axis(), bool(a["descending"]), "int64")


@converter("topk.default")
def _topk(a: Arguments) -> list[Any]:
    if not a.rank("self"):
        return [a["self"], a.tensor(0, (), "int64")]
    a.refuse_unless(int(a["k"]) > 0, "of no elements")
    both = a.emit(
        op.topk(a["self"], int(a["k"]), a.axis(), largest=bool(a["largest"]), dtype="int64")
    )
    return [TupleGetItem(both, 0), TupleGetItem(both, 1)]


def _in_order(a: Arguments, axis: int) -> tuple[RelayExpr, RelayExpr]:
    """The elements of `self` sorted along an axis, NaN last, and where each of them stood."""
    order = a.emit(op.argsort(a["self"], axis, False, "int64"))
    return a.call("gather_elements", a["self"], order, axis=axis), order


def _picked(a: Arguments, axis: int, rank: RelayExpr | int) -> list[RelayExpr]:
    """Along an axis the element that has a rank from the smallest, and where it stands.

    rank : a number, or numbers with an axis of one element in place of the one that goes.
    """
    values, order = _in_order(a, axis)
    shape = list(a.shape("self"))
    shape[axis] = 1
    index = a.tensor(rank, shape, "int64")
    out = a.result_shape
    return [
        op.reshape(a.call("gather_elements", each, index, axis=axis), out)
        for each in (values, order)
    ]


@converter("kthvalue.default")
def _kthvalue(a: Arguments) -> list[RelayExpr]:
    if not a.rank("self"):
        return [a["self"], a.tensor(0, (), "int64")]
    return _picked(a, a.axis(), int(a["k"]) - 1)


@converter("median.dim", "nanmedian.dim")
def _median(a: Arguments) -> list[RelayExpr]:
    if not a.rank("self"):
        return [a["self"], a.tensor(0, (), "int64")]
    return _middle(a, a.axis())


@converter("median.default", "nanmedian.default")
def _median_of_all(a: Arguments) -> RelayExpr:
    count = math.prod(a.shape("self"))
    a.refuse_unless(count > 0, "of no elements")
    flat = a.emit(op.reshape(a["self"], (count,)))
    return _middle(a.replaced({"self": flat}), 0)[0]


def _middle(a: Arguments, axis: int) -> list[RelayExpr]:
    """The lower of the two in the middle: of the numbers, or NaN where one element is NaN."""
    count = a.shape("self")[axis]
    if not a.dtype("self").startswith(("float", "bfloat")):
        return _picked(a, axis, (count - 1) // 2)
    number = a.emit(op.astype(a.call("equal", a["self"], a["self"]), "int64"))
    numbers = a.emit(op.sum(number, [axis], True))
    if a.name == "nanmedian":
        last = a.emit(op.maximum(a.emit(op.subtract(numbers, a.cast(1, "int64"))),
                                 a.cast(0, "int64")))  # fmt: skip
        return _picked(a, axis, a.call("floor_divide", last, a.cast(2, "int64")))
    # The first NaN stands behind the numbers.
    whole = a.call("equal", numbers, a.cast(count, "int64"))
    rank = a.call("where", whole, a.cast((count - 1) // 2, "int64"), numbers)
    return _picked(a, axis, rank)


@converter("mode.default")
def _mode(a: Arguments) -> list[RelayExpr]:
    """The smallest of the elements that are there most often."""
    rank = a.rank("self")
    if not rank:
        return [a["self"], a.tensor(0, (), "int64")]
    axis, shape = a.axis(), a.shape("self")
    values, order = _in_order(a, axis)
    # Sorted, equal elements stand together: the last of n has n - 1 before it that are equal.
    to_end = [k for k in range(rank) if k != axis] + [axis]
    turned = [a.emit(op.permute_dims(each, to_end)) for each in (values, order)]
    start = a.call("searchsorted", turned[0], turned[0], right=False, out_dtype="int64")
    place = a.emit(op.arange(0, shape[axis], 1, "int64"))
    before = a.emit(op.subtract(place, start))
    at = a.call("argmax", before, axis=-1, keepdims=True, dtype="int64")
    return [
        op.reshape(a.call("gather_elements", each, at, axis=rank - 1), a.result_shape)
        for each in turned
    ]


@converter("bucketize.Tensor", "searchsorted.Tensor")
def _searchsorted(a: Arguments) -> RelayExpr:
    sequence = a["boundaries"] if a.get("boundaries") is not None else a["sorted_sequence"]
    if a.get("sorter") is not None:
        last = a.rank("sorted_sequence") - 1
        sequence = a.call("gather_elements", sequence, a["sorter"], axis=last)
    return op.make_call(
        "searchsorted", sequence, a["self"], right=bool(a["right"]) or a.get("side") == "right",
        out_dtype=a.result_dtype,
    )  # fmt: skip


def _are_equal_bags(a: Arguments, bags: int, count: int) -> bool:
    """Whether offsets are counted in equal steps, as for bags that are rows of a matrix."""
    made = a.source("offsets")
    if made is None or operator_name(made.target) != "aten.arange.start_step":
        return False
    return count % max(bags, 1) == 0 and tuple(made.args[:3]) == (0, count, count // max(bags, 1))


@converter("_embedding_bag.default", "embedding_bag.padding_idx")
def _embedding_bag(a: Arguments) -> list[RelayExpr | None]:
    a.refuse_unless(a["padding_idx"] in (None, -1), "with padding_idx")
    mode = ("sum", "mean", "max")[int(a["mode"])]
    bags, width = a.result_shape
    (count,) = a.shape("indices")
    rows = a.call("take", a["weight"], a["indices"], axis=0)
    if a["per_sample_weights"] is not None:
        factors = a.emit(op.reshape(a["per_sample_weights"], (count, 1)))
        rows = a.emit(op.multiply(rows, factors))
    if _are_equal_bags(a, bags, count):
        together = a.emit(op.reshape(rows, (bags, count // bags, width)))
        return [op.make_call(mode, together, axis=[1]), None, None, None]
    # A bag reaches from its offset to the next one.
    kind = a.dtype("offsets")
    places = a.emit(op.arange(0, count, 1, kind))
    behind = a.call("searchsorted", a["offsets"], places, right=True, out_dtype="int64")
    bag = a.emit(op.reshape(a.emit(op.subtract(behind, a.cast(1, "int64"))), (count, 1)))
    index = a.tensor(bag, (count, width), "int64")
    dtype = a.result_dtype

    def collected(start: float, values: RelayExpr, how: str) -> RelayExpr:
        first = a.tensor(start, (bags, width), dtype)
        return a.call("scatter_elements", first, index, values, axis=0, reduction=how)

    if mode == "sum":
        return [collected(0, rows, "add"), None, None, None]
    sizes = collected(0, a.tensor(1, (count, width), dtype), "add")
    if mode == "mean":
        most = a.emit(op.maximum(sizes, a.cast(1, dtype)))
        return [op.divide(collected(0, rows, "add"), most), None, None, None]
    largest = collected(-math.inf, rows, "max")
    empty = a.call("equal", sizes, a.cast(0, dtype))
    return [op.make_call("where", empty, a.cast(0, dtype), largest), None, None, None]
