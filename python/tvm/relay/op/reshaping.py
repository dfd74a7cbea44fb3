"""Operators that give a tensor another shape or another order of its elements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm import arith, error, relax, te, tir, topi
from tvm.ir import Op, RelayExpr, TensorType, TupleType, Type

from ..expr import Call, Constant, TupleWrapper, as_expr
from ..ty import Any as AnyExtent
from .registry import REQUIRED, OpPattern, define, make
from .shapes import extent_number, fields_of, normal_axis, product, simplified, tensor

__all__ = [
    "batch_to_space_nd",
    "space_to_batch_nd",
    "broadcast_to",
    "broadcast_to_like",
    "collapse_sum_like",
    "collapse_sum_to",
    "concatenate",
    "einsum",
    "expand_dims",
    "full",
    "full_like",
    "layout_transform",
    "meshgrid",
    "ndarray_size",
    "numbers_or_expr",
    "ones",
    "repeat",
    "reshape",
    "reshape_like",
    "reverse",
    "reverse_reshape",
    "reverse_sequence",
    "shape_of",
    "sliding_window",
    "split",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "zeros",
]

_I, _B, _O = OpPattern.INJECTIVE, OpPattern.BROADCAST, OpPattern.OPAQUE


def numbers_or_expr(value: Any) -> list[Any] | RelayExpr:
    """Settings that may be given as numbers or as a tensor: the numbers where they are known."""
    if isinstance(value, Constant):
        return [int(v) for v in np.atleast_1d(value.data.numpy())]
    if isinstance(value, RelayExpr) and not isinstance(value, tir.PrimExpr):
        return value
    if isinstance(value, (int, tir.PrimExpr)):
        return [value]
    items = list(value)
    if any(isinstance(v, RelayExpr) and not isinstance(v, tir.PrimExpr) for v in items):
        items = [v.data.numpy().item() if isinstance(v, Constant) else v for v in items]
    return [
        v if isinstance(v, tir.PrimExpr) and not isinstance(v, tir.IntImm) else int(v)
        for v in items
    ]


def unknown_shape(rank: int, dtype: Any) -> TensorType:
    """A tensor of which only the number of axes is known."""
    return TensorType([AnyExtent() for _ in range(rank)], str(dtype))


def _known_length(where: str, type_: Type) -> int:
    length = extent_number(tensor(where, type_, "the shape").shape[0])
    if length is None:
        raise error.TypeError(f"{where}: the length of the shape must be known")
    return length


def reshaped(shape: Sequence[Any], newshape: Sequence[Any], allowzero: bool = False) -> list[Any]:
    """The shape that a reshape gives.

    A number of `newshape` that is not positive stands for something: 0 for the same extent as
    before (unless `allowzero`), -1 for what is left, -2 for all extents that are left, -3 for the
    product of the next two, and -4 and two numbers for a split of the next one.

    Raises
    ------
    ValueError : the numbers of elements differ, or the codes do not fit the shape.
    """
    out: list[Any] = []
    used = 0
    inferred = None
    codes = list(newshape)
    i = 0

    def take() -> Any:
        nonlocal used
        if used >= len(shape):
            raise error.ValueError(
                f"relay.reshape: {list(newshape)} takes more extents than {list(shape)} has"
            )
        used += 1
        return shape[used - 1]

    while i < len(codes):
        code = extent_number(codes[i])
        if code is None or code > 0 or (code == 0 and allowzero):
            out.append(codes[i] if code is None else code)
            used += 1
        elif code == 0:
            out.append(take())
        elif code == -1:
            if inferred is not None:
                raise error.ValueError("relay.reshape: one extent at most may be -1")
            inferred = len(out)
            out.append(1)
            used += 1
        elif code == -2:
            out.extend(shape[used:])
            used = len(shape)
        elif code == -3:
            out.append(product([take(), take()]))
        elif code == -4:
            whole, (a, b) = take(), codes[i + 1 : i + 3]
            if a == -1:
                a = (
                    simplified(tir.floordiv(whole, b))
                    if extent_number(whole) is None
                    else (extent_number(whole) // b)
                )
            elif b == -1:
                b = (
                    simplified(tir.floordiv(whole, a))
                    if extent_number(whole) is None
                    else (extent_number(whole) // a)
                )
            out += [a, b]
            i += 2
        else:
            raise error.ValueError(f"relay.reshape: {code} means nothing in a new shape")
        i += 1
    total, given = product(shape), product(out)
    a, b = extent_number(total), extent_number(given)
    if inferred is not None:
        if isinstance(total, AnyExtent) or isinstance(given, AnyExtent):
            out[inferred] = AnyExtent()
        elif a is not None and b is not None:
            if b == 0 or a % b:
                raise error.ValueError(
                    f"relay.reshape: {list(shape)} cannot become {list(newshape)}"
                )
            out[inferred] = a // b
        else:
            out[inferred] = _quotient(shape, [e for k, e in enumerate(out) if k != inferred])
    elif a is not None and b is not None and a != b:
        raise error.ValueError(
            f"relay.reshape: {list(shape)} has {a} elements, {list(newshape)} would have {b}"
        )
    return out


def _quotient(shape: Sequence[Any], rest: Sequence[Any]) -> Any:
    """What is left of a shape when its other extents are known; equal extents cancel."""
    left = list(shape)
    over = []
    for extent in rest:
        found = next(
            (
                k
                for k, e in enumerate(left)
                if tir.analysis.expr_deep_equal(
                    tir.const(e) if isinstance(e, int) else e,
                    tir.const(extent) if isinstance(extent, int) else extent,
                )
            ),
            None,
        )
        if found is None:
            over.append(extent)
        else:
            left.pop(found)
    numerator, denominator = product(left), product(over)
    if extent_number(denominator) == 1:
        return numerator
    return arith.Analyzer().simplify(tir.floordiv(numerator, denominator))


def _reshape_rule(types: Sequence[Type], settings: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.reshape", types[0])
    shape = reshaped(data.shape, settings["newshape"], bool(settings.get("allowzero")))
    return TensorType(shape, str(data.dtype))


def _reshape_te(x: te.Tensor, newshape: Sequence[int], allowzero: bool = False) -> te.Tensor:
    return topi.reshape(x, reshaped(x.shape, newshape, allowzero))


def _static(shape: Sequence[Any]) -> list[Any]:
    return [e if (n := extent_number(e)) is None else n for e in shape]


def _reshape_lower(args: Sequence[RelayExpr], settings: Mapping[str, Any]) -> RelayExpr:
    shape = list(args[0].struct_info.shape.values)
    codes, allowzero = settings["newshape"], bool(settings.get("allowzero"))
    return relax.op.reshape(args[0], _static(reshaped(shape, codes, allowzero)))


def _from_back(shape: Sequence[Any], newshape: Sequence[Any]) -> list[Any]:
    codes = list(newshape)[::-1]
    return reshaped(list(shape)[::-1], codes)[::-1]


def _reshape_like_shape(types: Sequence[TensorType], s: Mapping[str, Any]) -> list[Any]:
    where = "relay.reshape_like"
    data, like = (tensor(where, t) for t in types)

    def span(shape: Sequence[Any], begin: Any, end: Any) -> tuple[int, int]:
        rank = len(shape)
        begin, end = begin or 0, rank if end is None else end
        return (begin % rank if begin < 0 else begin), (end % rank if end < 0 else end)

    a, b = span(data.shape, s.get("lhs_begin"), s.get("lhs_end"))
    c, d = span(like.shape, s.get("rhs_begin"), s.get("rhs_end"))
    shape = [*data.shape[:a], *like.shape[c:d], *data.shape[b:]]
    old, new = extent_number(product(data.shape)), extent_number(product(shape))
    if old is not None and new is not None and old != new:
        raise error.ValueError(f"{where}: {list(data.shape)} cannot become {shape}")
    return shape


define(
    "reshape",
    _reshape_te,
    _I,
    settings={"newshape": REQUIRED, "allowzero": False},
    rule=_reshape_rule,
    lower=_reshape_lower,
    num_inputs=1,
)
define(
    "contrib_reverse_reshape",
    lambda x, newshape: topi.reshape(x, _from_back(x.shape, newshape)),
    _I,
    settings={"newshape": REQUIRED},
    num_inputs=1,
    rule=lambda t, s, a: TensorType(_from_back(t[0].shape, s["newshape"]), str(t[0].dtype)),
)
define(
    "dyn.reshape",
    None,
    _O,
    settings={"newshape": (), "allowzero": False},
    num_inputs=2,
    rule=lambda t, s, a: unknown_shape(_known_length("relay.reshape", t[1]), t[0].dtype),
    host=lambda arrays, s: arrays[0].reshape(
        reshaped(arrays[0].shape, arrays[1].tolist(), bool(s["allowzero"]))
    ),
)
define(
    "reshape_like",
    lambda x, like, **s: topi.reshape(
        x, _reshape_like_shape([TensorType(x.shape), TensorType(like.shape)], s)
    ),
    _I,
    settings={"lhs_begin": 0, "lhs_end": None, "rhs_begin": 0, "rhs_end": None},
    rule=lambda t, s, a: TensorType(_reshape_like_shape(t, s), str(t[0].dtype)),
    num_inputs=2,
)


def reshape(data: RelayExpr, newshape: Any, allowzero: bool = False) -> Call:
    """The elements in another shape.

    Parameters
    ----------
    newshape : extents; 0, -1, -2, -3 and -4 stand for the same extent, what is left, all that are
        left, the product of two, and a split. A tensor for a shape known at run time.

    Raises
    ------
    ValueError : when its type is inferred, if the numbers of elements differ.
    """
    shape = numbers_or_expr(newshape)
    if isinstance(shape, RelayExpr):
        return make("dyn.reshape", [data, shape], allowzero=allowzero)
    return make("reshape", [data], newshape=shape, allowzero=allowzero)


def reverse_reshape(data: RelayExpr, newshape: Sequence[int]) -> Call:
    """As `reshape`, with the special values read from the last extent on."""
    return make("contrib_reverse_reshape", [data], newshape=numbers_or_expr(newshape))


def reshape_like(
    data: RelayExpr,
    shape_like: RelayExpr,
    lhs_begin: int = 0,
    lhs_end: int | None = None,
    rhs_begin: int = 0,
    rhs_end: int | None = None,
) -> Call:
    """The elements in the shape of another tensor, or a part of it."""
    return make(
        "reshape_like",
        [data, shape_like],
        lhs_begin=lhs_begin,
        lhs_end=lhs_end,
        rhs_begin=rhs_begin,
        rhs_end=rhs_end,
    )


def _expand_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.expand_dims", types[0])
    rank = len(data.shape)
    if not -rank - 1 <= s["axis"] <= rank:
        raise error.ValueError(f"relay.expand_dims: axis {s['axis']} of a tensor of {rank} axes")
    axis = s["axis"] if s["axis"] >= 0 else s["axis"] + rank + 1
    shape = [*data.shape[:axis], *[1] * s["num_newaxis"], *data.shape[axis:]]
    return TensorType(shape, str(data.dtype))


def _reshaped_by(rule: Any) -> Any:
    """Lowering of an operator that only changes the shape, by its type rule."""

    def lower(args: Sequence[RelayExpr], settings: Mapping[str, Any]) -> RelayExpr:
        info = args[0].struct_info
        result = rule([TensorType(info.shape.values, str(info.dtype))], settings, args)
        return relax.op.reshape(args[0], _static(result.shape))

    return lower


def _squeeze_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.squeeze", types[0])
    rank = len(data.shape)
    if s["axis"] is None:
        shape = [e for e in data.shape if extent_number(e) != 1]
        return TensorType(shape, str(data.dtype))
    axes = {normal_axis("relay.squeeze", a, rank) for a in s["axis"]}
    for axis in axes:
        if extent_number(data.shape[axis]) not in (1, None):
            raise error.ValueError(
                f"relay.squeeze: axis {axis} of {list(data.shape)} has more than one element"
            )
    return TensorType([e for k, e in enumerate(data.shape) if k not in axes], str(data.dtype))


define(
    "expand_dims",
    lambda x, axis, num_newaxis=1: topi.expand_dims(x, axis, num_newaxis),
    _I,
    settings={"axis": REQUIRED, "num_newaxis": 1},
    rule=_expand_rule,
    lower=_reshaped_by(_expand_rule),
    num_inputs=1,
)
define(
    "squeeze",
    lambda x, axis: topi.reshape(x, _squeeze_rule([TensorType(x.shape)], {"axis": axis}, ()).shape),
    _I,
    settings={"axis": None},
    rule=_squeeze_rule,
    lower=_reshaped_by(_squeeze_rule),
    num_inputs=1,
)
define(
    "dyn.expand_dims",
    None,
    _O,
    settings={"num_newaxis": 1},
    rule=lambda t, s, a: unknown_shape(len(t[0].shape) + s["num_newaxis"], t[0].dtype),
    host=lambda arrays, s: np.expand_dims(
        arrays[0], tuple(int(arrays[1]) + k for k in range(s["num_newaxis"]))
    ),
)


def _dyn_squeeze_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.squeeze", types[0])
    return unknown_shape(len(data.shape) - _known_length("relay.squeeze", types[1]), data.dtype)


define(
    "dyn.squeeze",
    None,
    _O,
    rule=_dyn_squeeze_rule,
    host=lambda arrays, s: np.squeeze(arrays[0], tuple(int(a) for a in arrays[1])),
    num_inputs=2,
)


def expand_dims(data: RelayExpr, axis: int | RelayExpr, num_newaxis: int = 1) -> Call:
    """The tensor with axes of one element put in before `axis`."""
    if isinstance(axis, RelayExpr) and not isinstance(axis, (tir.PrimExpr, Constant)):
        return make("dyn.expand_dims", [data, axis], num_newaxis=num_newaxis)
    axis = int(axis.data.numpy()) if isinstance(axis, Constant) else int(axis)
    return make("expand_dims", [data], axis=axis, num_newaxis=num_newaxis)


def squeeze(data: RelayExpr, axis: int | Sequence[int] | RelayExpr | None = None) -> Call:
    """The tensor without axes of one element: all of them, or those given, which may be a tensor
    of integers, shape (k,), that is known when the program runs."""
    axes = None if axis is None else numbers_or_expr(axis)
    if isinstance(axes, RelayExpr):
        return make("dyn.squeeze", [data, axes])
    return make("squeeze", [data], axis=axes)


def _transpose_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.transpose", types[0])
    rank = len(data.shape)
    axes = (
        range(rank)[::-1]
        if not s["axes"]
        else [normal_axis("relay.transpose", a, rank) for a in s["axes"]]
    )
    if sorted(axes) != list(range(rank)):
        raise error.ValueError(f"relay.transpose: {list(axes)} is no order of {rank} axes")
    return TensorType([data.shape[a] for a in axes], str(data.dtype))


define(
    "transpose",
    relax_name="permute_dims",
    settings={"axes": REQUIRED},
    rule=_transpose_rule,
    adapt=lambda s: {"axes": list(s["axes"])} if s.get("axes") else {},
    num_inputs=1,
)


def transpose(data: RelayExpr, axes: Sequence[int] | None = None) -> Call:
    """The tensor with its axes in another order, by default the reverse one."""
    return make("transpose", [data], axes=None if axes is None else [int(a) for a in axes])


define(
    "layout_transform",
    topi.layout_transform,
    _I,
    settings={"src_layout": REQUIRED, "dst_layout": REQUIRED},
    num_inputs=1,
)


def layout_transform(data: RelayExpr, src_layout: str, dst_layout: str) -> Call:
    """The elements in another layout, such as from "NCHW" to "NCHW16c"."""
    return make("layout_transform", [data], src_layout=src_layout, dst_layout=dst_layout)


def _joined(extents: Sequence[Any]) -> Any:
    numbers = [extent_number(e) for e in extents]
    if all(n is not None for n in numbers):
        return sum(n for n in numbers if n is not None)
    total = extents[0]
    for extent in extents[1:]:
        total = total + extent
    return AnyExtent() if any(isinstance(e, AnyExtent) for e in extents) else total


def _concatenate_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    where = "relay.concatenate"
    items = fields_of(where, types[0])
    rank = len(items[0].shape)
    axis = normal_axis(where, s["axis"], rank)
    shape = list(items[0].shape)
    for item in items[1:]:
        if str(item.dtype) != str(items[0].dtype):
            raise error.TypeError(f"{where}: all tensors must have one data type")
        if len(item.shape) != rank:
            raise error.ValueError(f"{where}: all tensors must have as many axes")
        for k, extent in enumerate(item.shape):
            a, b = extent_number(shape[k]), extent_number(extent)
            if k != axis and None not in (a, b) and a != b:
                raise error.ValueError(
                    f"{where}: shapes {shape} and {list(item.shape)} differ beside axis {axis}"
                )
            if isinstance(shape[k], AnyExtent) and k != axis:
                shape[k] = extent
    shape[axis] = _joined([item.shape[axis] for item in items])
    return TensorType(shape, str(items[0].dtype))


def _stack_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    items = fields_of("relay.stack", types[0])
    rank = len(items[0].shape)
    if any(len(item.shape) != rank for item in items):
        raise error.ValueError("relay.stack: all tensors must have as many axes")
    axis = normal_axis("relay.stack", s["axis"], rank + 1)
    shape = list(items[0].shape)
    return TensorType([*shape[:axis], len(items), *shape[axis:]], str(items[0].dtype))


define(
    "concatenate", relax_name="concat", settings={"axis": 0}, rule=_concatenate_rule, num_inputs=1
)
define(
    "einsum",
    lambda tensors, equation: topi.einsum(equation, *tensors),
    _O,
    settings={"equation": REQUIRED},
    num_inputs=1,
)
define("stack", topi.stack, _I, settings={"axis": 0}, rule=_stack_rule, num_inputs=1)


def einsum(data: Any, equation: str) -> Call:
    """Product of tensors in Einstein's notation, such as ``"bij,bjk->bik"``.

    Parameters
    ----------
    data : a tuple of tensors, or a sequence of them.
    """
    return make("einsum", [as_expr(data)], equation=equation)


def concatenate(data: Any, axis: int) -> Call:
    """Tensors joined along an axis.

    Raises
    ------
    ValueError : there are none.
    """
    items = as_expr(data)
    if not isinstance(axis, int):
        raise error.ValueError("relay.concatenate: axis must be a number")
    return make("concatenate", [items], axis=axis)


def stack(data: Any, axis: int) -> Call:
    """Tensors of one shape side by side along a new axis."""
    return make("stack", [as_expr(data)], axis=axis)


def _split_cuts(data: TensorType, s: Mapping[str, Any]) -> tuple[int, list[Any]]:
    where = "relay.split"
    axis = normal_axis(where, s["axis"], len(data.shape))
    whole, cuts = data.shape[axis], s["indices_or_sections"]
    size = extent_number(whole)
    if isinstance(cuts, int):
        if size is not None and size % cuts:
            raise error.ValueError(f"{where}: {size} elements do not give {cuts} equal parts")
        part = simplified(tir.floordiv(whole, cuts)) if size is None else size // cuts
        return axis, [part] * cuts
    edges = [0, *cuts, whole if size is None else size]
    return axis, [simplified(b - a) for a, b in zip(edges, edges[1:])]


def _split_rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    data = tensor("relay.split", types[0])
    axis, parts = _split_cuts(data, s)
    shapes = [[*data.shape[:axis], part, *data.shape[axis + 1 :]] for part in parts]
    return TupleType([TensorType(shape, str(data.dtype)) for shape in shapes])


define(
    "split",
    relax_name="split",
    settings={"indices_or_sections": REQUIRED, "axis": 0},
    rule=_split_rule,
    num_inputs=1,
    adapt=lambda s: {
        **s,
        "indices_or_sections": s["indices_or_sections"]
        if isinstance(s["indices_or_sections"], int)
        else list(s["indices_or_sections"]),
    },
)
# One kernel has one result in relax, so there a split is a kernel of its own; in a fused function
# of relay it is not.
Op.get("split").set_attr("TOpPattern", int(OpPattern.INJECTIVE))


def split(data: RelayExpr, indices_or_sections: Any, axis: int = 0) -> TupleWrapper:
    """The tensor cut along an axis, at places or into a number of equal parts."""
    cuts = indices_or_sections
    if isinstance(cuts, (int, tir.IntImm)):
        count = cuts = int(cuts)
    else:
        cuts = [int(c) for c in cuts]
        count = len(cuts) + 1
    return TupleWrapper(make("split", [data], indices_or_sections=cuts, axis=axis), count)


define("repeat", topi.repeat, _I, settings={"repeats": REQUIRED, "axis": 0}, num_inputs=1)
define(
    "tile", lambda x, reps: topi.tile(x, list(reps)), _I, settings={"reps": REQUIRED}, num_inputs=1
)
define(
    "dyn.tile",
    None,
    _O,
    num_inputs=2,
    rule=lambda t, s, a: unknown_shape(
        max(len(t[0].shape), _known_length("relay.tile", t[1])), t[0].dtype
    ),
    host=lambda arrays, s: np.tile(arrays[0], arrays[1].tolist()),
)
define("reverse", topi.flip, _I, settings={"axis": REQUIRED}, num_inputs=1)
define(
    "reverse_sequence",
    topi.reverse_sequence,
    _I,
    settings={"seq_axis": 1, "batch_axis": 0},
    num_inputs=2,
)
define(
    "sliding_window",
    topi.sliding_window,
    _I,
    settings={"axis": REQUIRED, "window_shape": REQUIRED, "strides": REQUIRED},
    num_inputs=1,
)
define("meshgrid", topi.meshgrid, _O, settings={"indexing": "ij"}, num_inputs=1)


def repeat(data: RelayExpr, repeats: int, axis: int) -> Call:
    """Every element along an axis a number of times."""
    return make("repeat", [data], repeats=repeats, axis=axis)


def tile(data: RelayExpr, reps: Any) -> Call:
    """The whole tensor a number of times along each axis."""
    reps = numbers_or_expr(reps)
    if isinstance(reps, RelayExpr):
        return make("dyn.tile", [data, reps])
    if any(r < 1 for r in reps):
        raise error.ValueError("relay.tile: every number of reps must be positive")
    return make("tile", [data], reps=reps)


def reverse(data: RelayExpr, axis: int) -> Call:
    """The elements along an axis from the last to the first."""
    return make("reverse", [data], axis=axis)


def reverse_sequence(
    data: RelayExpr, seq_lengths: RelayExpr, seq_axis: int = 1, batch_axis: int = 0
) -> Call:
    """The first elements along an axis reversed, as many as each batch entry says."""
    return make("reverse_sequence", [data, seq_lengths], seq_axis=seq_axis, batch_axis=batch_axis)


def sliding_window(
    data: RelayExpr, axis: int, window_shape: Sequence[int], strides: Sequence[int]
) -> Call:
    """Every window over the axes from `axis` on; windows follow those axes."""
    return make(
        "sliding_window", [data], axis=axis, window_shape=list(window_shape), strides=list(strides)
    )


def meshgrid(data: Any, indexing: str = "ij") -> TupleWrapper:
    """Grids of coordinates from vectors or scalars."""
    items = as_expr(data)
    size = len(items.fields) if hasattr(items, "fields") else len(data)
    return TupleWrapper(make("meshgrid", [items], indexing=indexing), size)


def _like(where: str) -> Any:
    return lambda t, s, a: TensorType(tensor(where, t[1]).shape, str(t[0].dtype))


def _to_shape(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
    return TensorType(list(s["shape"]), s.get("dtype") or str(types[0].dtype))


define(
    "broadcast_to",
    lambda x, shape, dtype="": topi.broadcast_to(x, list(shape)),
    _B,
    settings={"shape": REQUIRED, "dtype": ""},
    rule=_to_shape,
    num_inputs=1,
)
define(
    "dyn.broadcast_to",
    None,
    _O,
    num_inputs=2,
    rule=lambda t, s, a: unknown_shape(_known_length("relay.broadcast_to", t[1]), t[0].dtype),
    host=lambda arrays, s: np.broadcast_to(arrays[0], arrays[1].tolist()).copy(),
)
define(
    "broadcast_to_like",
    lambda x, like: topi.broadcast_to(x, like.shape),
    _B,
    rule=_like("relay.broadcast_to_like"),
    num_inputs=2,
    lower=lambda args, s: relax.op.broadcast_to(args[0], args[1].struct_info.shape),
)
define(
    "collapse_sum_like",
    lambda x, like: topi.collapse_sum(x, like.shape),
    OpPattern.COMM_REDUCE,
    rule=_like("relay.collapse_sum_like"),
    num_inputs=2,
    lower=lambda args, s: relax.op.collapse_sum_to(args[0], args[1].struct_info.shape),
)
define(
    "collapse_sum_to",
    lambda x, shape, dtype="": topi.collapse_sum(x, list(shape)),
    OpPattern.COMM_REDUCE,
    settings={"shape": REQUIRED, "dtype": ""},
    rule=_to_shape,
    num_inputs=1,
)


def broadcast_to(data: RelayExpr, shape: Any) -> Call:
    """The tensor repeated along axes of one element until it has a shape."""
    shape = numbers_or_expr(shape)
    if isinstance(shape, RelayExpr):
        return make("dyn.broadcast_to", [data, shape])
    return make("broadcast_to", [data], shape=shape)


def broadcast_to_like(data: RelayExpr, broadcast_type: RelayExpr) -> Call:
    """As `broadcast_to`, to the shape of another tensor."""
    return make("broadcast_to_like", [data, broadcast_type])


def collapse_sum_like(data: RelayExpr, collapse_type: RelayExpr) -> Call:
    """The sum over the axes along which the shape of another tensor would be repeated."""
    return make("collapse_sum_like", [data, collapse_type])


def collapse_sum_to(data: RelayExpr, shape: Any) -> Call:
    """As `collapse_sum_like`, to a shape."""
    return make("collapse_sum_to", [data], shape=numbers_or_expr(shape))


def _filled(name: str, compute: Any, inputs: int) -> None:
    define(
        name,
        compute,
        OpPattern.ELEMWISE,
        settings={"shape": REQUIRED, "dtype": REQUIRED},
        num_inputs=inputs,
        rule=lambda t, s, a: TensorType(list(s["shape"]), s["dtype"] or str(t[0].dtype)),
    )
    define(
        f"dyn.{name}",
        None,
        _O,
        settings={"dtype": REQUIRED},
        num_inputs=inputs + 1,
        rule=lambda t, s, a: unknown_shape(
            _known_length(f"relay.{name}", t[-1]), s["dtype"] or t[0].dtype
        ),
        host=lambda arrays, s: np.full(
            arrays[-1].tolist(),
            {"zeros": 0, "ones": 1}.get(name, arrays[0]),
            s["dtype"] or arrays[0].dtype,
        ),
    )


def _value(fill: Any) -> Any:
    return fill() if isinstance(fill, te.Tensor) else fill


_filled("zeros", lambda shape, dtype: topi.full(list(shape), dtype, 0), 0)
_filled("ones", lambda shape, dtype: topi.full(list(shape), dtype, 1), 0)
_filled(
    "full",
    lambda fill, shape, dtype: topi.full(list(shape), dtype or str(fill.dtype), _value(fill)),
    1,
)
define(
    "full_like",
    lambda x, fill: topi.full_like(x, _value(fill)),
    OpPattern.ELEMWISE,
    rule=lambda t, s, a: t[0],
    num_inputs=2,
)


def _fill_call(name: str, args: list[RelayExpr], shape: Any, dtype: str) -> Call:
    shape = numbers_or_expr(shape)
    if isinstance(shape, RelayExpr):
        return make(f"dyn.{name}", [*args, shape], dtype=dtype)
    return make(name, args, shape=shape, dtype=dtype)


def zeros(shape: Any, dtype: str) -> Call:
    """A tensor of zeros."""
    return _fill_call("zeros", [], shape, dtype)


def ones(shape: Any, dtype: str) -> Call:
    """A tensor of ones."""
    return _fill_call("ones", [], shape, dtype)


def full(fill_value: RelayExpr, shape: Any = (), dtype: str = "") -> Call:
    """A tensor of which every element is a scalar's value; `dtype` is the scalar's by default."""
    return _fill_call("full", [as_expr(fill_value)], shape, dtype)


def full_like(data: RelayExpr, fill_value: RelayExpr) -> Call:
    """A tensor of another's shape and type of which every element is a scalar's value."""
    return make("full_like", [data, fill_value])


def _constant_vector(values: Sequence[Any], dtype: str) -> te.Tensor:
    def element(i: Any) -> Any:
        result: Any = tir.const(0, dtype)
        for k, value in enumerate(values):
            result = tir.Select(
                i == k,
                tir.Cast(dtype, value)
                if isinstance(value, tir.PrimExpr)
                else tir.const(value, dtype),
                result,
            )
        return result

    return te.compute((len(values),), element, name="shape_of")


define(
    "shape_of",
    lambda x, dtype="int32": _constant_vector(list(x.shape), dtype),
    _O,
    settings={"dtype": "int32"},
    num_inputs=1,
    rule=lambda t, s, a: TensorType([len(tensor("relay.shape_of", t[0]).shape)], s["dtype"]),
    host=lambda arrays, s: np.array(arrays[0].shape, s["dtype"]),
)
define(
    "ndarray_size",
    topi.ndarray_size,
    _O,
    settings={"dtype": "int32"},
    num_inputs=1,
    rule=lambda t, s, a: TensorType([], s["dtype"]),
    host=lambda arrays, s: np.array(math.prod(arrays[0].shape), s["dtype"]),
)


def shape_of(data: RelayExpr, dtype: str = "int32") -> Call:
    """The extents as a tensor."""
    return make("shape_of", [data], dtype=dtype)


def ndarray_size(data: RelayExpr, dtype: str = "int32") -> Call:
    """The number of elements."""
    return make("ndarray_size", [data], dtype=dtype)


def _spread(compute: Any, name: str) -> Any:
    def run(x: te.Tensor, block_shape: Any, **s: Any) -> te.Tensor:
        pairs = [tuple(pair) for pair in s[name]]
        more = {"pad_value": s["pad_value"]} if "pad_value" in s else {}
        return compute(x, list(block_shape), [a for a, _ in pairs], [b for _, b in pairs], **more)

    return run


define(
    "nn.batch_to_space_nd",
    _spread(topi.nn.batch_to_space_nd, "crops"),
    _I,
    settings={"block_shape": REQUIRED, "crops": REQUIRED},
    num_inputs=1,
)
define(
    "nn.space_to_batch_nd",
    _spread(topi.nn.space_to_batch_nd, "paddings"),
    _I,
    settings={"block_shape": REQUIRED, "paddings": REQUIRED, "pad_value": 0.0},
    num_inputs=1,
)


def batch_to_space_nd(data: RelayExpr, block_shape: Sequence[int], crops: Any) -> Call:
    """Blocks of the batch axis spread over the spatial axes, with borders cut off."""
    return make("nn.batch_to_space_nd", [data], block_shape=list(block_shape), crops=crops)


def space_to_batch_nd(
    data: RelayExpr, block_shape: Sequence[int], paddings: Any, pad_value: float = 0.0
) -> Call:
    """Blocks of the spatial axes, padded by pairs of borders, moved to the batch axis."""
    return make(
        "nn.space_to_batch_nd",
        [data],
        block_shape=list(block_shape),
        paddings=paddings,
        pad_value=pad_value,
    )
