"""Operators that move whole dimensions: orders, sizes, joints and pieces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import te, tir

from . import tag
from .utils import (
    Extent,
    as_int,
    equal_const_int,
    get_const_tuple,
    is_constant,
    normalize_axes,
    normalize_axis,
    prod,
    ravel_index,
    same_extent,
    simplify,
    unravel_index,
)

__all__ = [
    "concatenate",
    "expand_dims",
    "expand_like",
    "flatten",
    "flip",
    "infer_reshape",
    "layout_transform",
    "repeat",
    "reshape",
    "reverse_sequence",
    "sliding_window",
    "split",
    "squeeze",
    "stack",
    "tile",
    "transpose",
]


def _move(x: te.Tensor, shape: Sequence[Extent], place: Any, name: str) -> te.Tensor:
    """Tensor whose element at an index is that of x at ``place(*index)``."""
    return te.compute(shape, lambda *i: x(*place(*i)), name=f"T_{name}", tag=tag.INJECTIVE)


def expand_like(a: te.Tensor, shape_like: te.Tensor, axis: int | Sequence[int]) -> te.Tensor:
    """a repeated along new axes, as many times as another tensor is long there.

    Parameters
    ----------
    shape_like : has the shape of the result.
    axis : of `shape_like`, those that `a` does not have; the others agree.

    Raises
    ------
    ValueError : they do not.
    """
    shape = get_const_tuple(shape_like.shape)
    new = set(normalize_axes(axis, len(shape)))
    kept = [k for k in range(len(shape)) if k not in new]
    own = get_const_tuple(a.shape)
    if len(own) != len(kept) or not all(same_extent(x, shape[k]) for x, k in zip(own, kept)):
        raise ValueError(
            f"expand_like: without axes {sorted(new)} the shape {list(shape)} is not that of the "
            f"data, {list(own)}"
        )
    return _move(a, shape, lambda *i: [i[k] for k in kept], "expand_like")


def infer_reshape(shape: Sequence[Extent], newshape: Sequence[Extent]) -> tuple[Extent, ...]:
    """New shape with a single -1 replaced by what the element count leaves.

    Raises
    ------
    ValueError : the element counts are known to differ, or there is more than one -1.
    """
    target = list(get_const_tuple(newshape))
    unknown = [k for k, extent in enumerate(target) if equal_const_int(extent, -1)]
    count = simplify(prod(shape))
    if len(unknown) > 1:
        raise ValueError(f"topi.reshape: at most one -1 is allowed, got {tuple(target)}")
    if unknown:
        rest = simplify(prod(e for k, e in enumerate(target) if k not in unknown))
        constant = is_constant(rest) and is_constant(count)
        if not constant or (rest and count % rest == 0):
            target[unknown[0]] = simplify(count // rest)
    total = simplify(prod(target))
    known = is_constant(total) and is_constant(count)
    if known and (total != count or any(equal_const_int(e, -1) for e in target)):
        raise ValueError(
            f"topi.reshape: {tuple(shape)} has {count} elements and does not fill {tuple(newshape)}"
        )
    return tuple(target)


def reshape(a: te.Tensor, newshape: Sequence[Extent]) -> te.Tensor:
    """The elements of a in row-major order under another shape; one extent may be -1."""
    shape = get_const_tuple(a.shape)
    target = infer_reshape(shape, newshape)
    return _move(a, target, lambda *i: unravel_index(ravel_index(i, target), shape), "reshape")


def flatten(x: te.Tensor) -> te.Tensor:
    """All dimensions but the first merged into one."""
    shape = get_const_tuple(x.shape)
    return reshape(x, (shape[0], prod(shape[1:])))


def transpose(a: te.Tensor, axes: Sequence[int] | None = None) -> te.Tensor:
    """Dimension k of the result is dimension axes[k] of a; None reverses the order."""
    shape = get_const_tuple(a.shape)
    order = (
        tuple(reversed(range(len(shape))))
        if axes is None
        else tuple(normalize_axis(as_int(k), len(shape)) for k in axes)
    )
    if sorted(order) != list(range(len(shape))):
        raise ValueError(f"topi.transpose: axes {axes} do not permute {len(shape)} dimensions")
    inverse = [order.index(axis) for axis in range(len(shape))]
    return _move(
        a, [shape[axis] for axis in order], lambda *i: [i[k] for k in inverse], "transpose"
    )


def expand_dims(a: te.Tensor, axis: int, num_newaxis: int = 1) -> te.Tensor:
    """New dimensions of size 1, the first of them at position axis of the result."""
    shape = get_const_tuple(a.shape)
    at = normalize_axis(axis, len(shape) + 1)
    return _move(
        a,
        shape[:at] + (1,) * num_newaxis + shape[at:],
        lambda *i: i[:at] + i[at + num_newaxis :],
        "expand_dims",
    )


def squeeze(a: te.Tensor, axis: int | Sequence[int] | None = None) -> te.Tensor:
    """a without the given dimensions of size 1; None drops all of size 1."""
    shape = get_const_tuple(a.shape)
    if axis is None:
        dropped = tuple(k for k, extent in enumerate(shape) if equal_const_int(extent, 1))
    else:
        dropped = normalize_axes(axis, len(shape))
    for k in dropped:
        if is_constant(shape[k]) and shape[k] != 1:
            raise ValueError(f"topi.squeeze: dimension {k} of {shape} has size {shape[k]}, not 1")
    kept = [k for k in range(len(shape)) if k not in dropped]
    zero = tir.const(0, "int32")

    def place(*indices: Any) -> list[Any]:
        own = iter(indices)
        return [next(own) if k in kept else zero for k in range(len(shape))]

    return _move(a, [shape[k] for k in kept], place, "squeeze")


def flip(a: te.Tensor, axis: int = 0) -> te.Tensor:
    """a with the order along one dimension reversed."""
    shape = get_const_tuple(a.shape)
    at = normalize_axis(axis, len(shape))
    return _move(a, shape, lambda *i: (*i[:at], shape[at] - 1 - i[at], *i[at + 1 :]), "flip")


def reverse_sequence(
    x: te.Tensor, seq_lengths: te.Tensor, seq_axis: int = 1, batch_axis: int = 0
) -> te.Tensor:
    """x with the first elements along ``seq_axis`` reversed, as many as the batch says.

    Parameters
    ----------
    seq_lengths : int32 or int64, (extent of batch_axis,); one above the extent of seq_axis means
        all elements, one below zero none.

    Raises
    ------
    ValueError : there is not one length for each index along ``batch_axis``.
    """
    shape = get_const_tuple(x.shape)
    seq, batch = normalize_axis(seq_axis, len(shape)), normalize_axis(batch_axis, len(shape))
    lengths = get_const_tuple(seq_lengths.shape)
    if len(lengths) != 1 or (
        is_constant(lengths[0]) and is_constant(shape[batch]) and lengths[0] != shape[batch]
    ):
        raise ValueError(
            f"topi.reverse_sequence: takes one length for each of the {shape[batch]} indices "
            f"along axis {batch}, got lengths of shape {list(lengths)}"
        )

    def place(*i: Any) -> list[Any]:
        # A length beyond the axis would read past the end of the tensor.
        length = tir.min(seq_lengths(i[batch]).astype("int32"), shape[seq])
        position = list(i)
        position[seq] = tir.Select(i[seq] < length, length - 1 - i[seq], i[seq])
        return position

    return _move(x, shape, place, "reverse_sequence")


# Of so many tensors that are joined, an element finds its own by asking for one after the other.
_LONGEST_CHAIN = 32


def concatenate(a_tuple: Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """Tensors joined along one dimension; the other dimensions must agree."""
    if not a_tuple:
        raise ValueError("topi.concatenate: needs at least one tensor")
    shapes = [get_const_tuple(t.shape) for t in a_tuple]
    rank = len(shapes[0])
    at = normalize_axis(axis, rank)
    for shape in shapes[1:]:
        agree = len(shape) == rank and all(
            k == at or not (is_constant(x) and is_constant(y)) or same_extent(x, y)
            for k, (x, y) in enumerate(zip(shape, shapes[0]))
        )
        if not agree:
            raise ValueError(
                f"topi.concatenate: {shape} and {shapes[0]} differ outside dimension {at}"
            )
    ends: list[Extent] = []
    for shape in shapes:
        ends.append(simplify(shape[at] + (ends[-1] if ends else 0)))

    def read(*indices: Any) -> Any:
        where = indices[at]

        def element(k: int) -> Any:
            start = ends[k - 1] if k else 0
            return a_tuple[k](*indices[:at], where - start, *indices[at + 1 :])

        def among(first: int, last: int) -> Any:
            # A chain of all would be as deep as there are tensors, and as slow.
            if last - first > _LONGEST_CHAIN:
                middle = (first + last) // 2
                return tir.if_then_else(
                    where < ends[middle], among(first, middle), among(middle + 1, last)
                )
            value = element(last)
            for k in reversed(range(first, last)):
                value = tir.if_then_else(where < ends[k], element(k), value)
            return value

        return among(0, len(a_tuple) - 1)

    out = (*shapes[0][:at], ends[-1], *shapes[0][at + 1 :])
    return te.compute(out, read, name="T_concat", tag=tag.INJECTIVE)


def stack(a: Sequence[te.Tensor], axis: int = 0) -> te.Tensor:
    """Tensors of one shape joined along a new dimension."""
    if not a:
        raise ValueError("topi.stack: needs at least one tensor")
    at = normalize_axis(axis, len(a[0].shape) + 1)
    return concatenate([expand_dims(t, at) for t in a], at)


def split(
    ary: te.Tensor, indices_or_sections: int | Sequence[int], axis: int = 0
) -> list[te.Tensor]:
    """Consecutive pieces along one dimension, as NumPy's split.

    Parameters
    ----------
    indices_or_sections : a count of equal pieces, or the positions in front of which to cut.

    Raises
    ------
    ValueError : equal pieces do not divide the extent, or the positions do not rise within it.
    """
    shape = get_const_tuple(ary.shape)
    at = normalize_axis(axis, len(shape))
    extent = shape[at]
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        if sections < 1 or (is_constant(extent) and extent % sections):
            raise ValueError(f"topi.split: {sections} equal pieces do not divide {extent}")
        cuts = [simplify(extent // sections * k) for k in range(sections + 1)]
    else:
        cuts = [0, *get_const_tuple(indices_or_sections), extent]
        if any(
            is_constant(low) and is_constant(high) and low > high
            for low, high in zip(cuts, cuts[1:])
        ):
            raise ValueError(
                f"topi.split: positions {tuple(indices_or_sections)} do not rise within {extent}"
            )

    def piece(low: Extent, high: Extent) -> te.Tensor:
        size = simplify(high - low)
        return _move(
            ary,
            (*shape[:at], size, *shape[at + 1 :]),
            lambda *i: (*i[:at], i[at] + low, *i[at + 1 :]),
            "split",
        )

    return [piece(low, high) for low, high in zip(cuts, cuts[1:])]


def repeat(a: te.Tensor, repeats: int, axis: int) -> te.Tensor:
    """Each element along one dimension several times in a row."""
    shape = get_const_tuple(a.shape)
    at = normalize_axis(axis, len(shape))
    return _move(
        a,
        (*shape[:at], simplify(shape[at] * repeats), *shape[at + 1 :]),
        lambda *i: (*i[:at], i[at] // repeats, *i[at + 1 :]),
        "repeat",
    )


def tile(a: te.Tensor, reps: Sequence[Extent]) -> te.Tensor:
    """a several times along each dimension, as NumPy's tile."""
    shape, times = get_const_tuple(a.shape), get_const_tuple(reps)
    rank = max(len(shape), len(times))
    padded = (1,) * (rank - len(shape)) + shape
    times = (1,) * (rank - len(times)) + times
    return _move(
        a,
        [simplify(n * t) for n, t in zip(padded, times)],
        lambda *i: [
            index % n if not equal_const_int(t, 1) else index
            for index, n, t in zip(i, padded, times)
        ][rank - len(shape) :],
        "tile",
    )


def sliding_window(
    data: te.Tensor, axis: int, window_shape: Sequence[int], strides: Sequence[int]
) -> te.Tensor:
    """Windows over the dimensions from ``axis`` on.

    The result has the dimensions in front of ``axis``, then the position of the window along each
    other dimension, then the window itself.

    Raises
    ------
    ValueError : not one window extent and stride for each dimension, or a window that does not fit.
    """
    shape = get_const_tuple(data.shape)
    at = normalize_axis(axis, len(shape))
    window, steps = get_const_tuple(window_shape), get_const_tuple(strides)
    rest = shape[at:]
    if len(window) != len(rest) or len(steps) != len(rest):
        raise ValueError(
            f"topi.sliding_window: needs {len(rest)} window extents and strides, got {window} and "
            f"{steps}"
        )
    if any(is_constant(n) and w > n for n, w in zip(rest, window)):
        raise ValueError(f"topi.sliding_window: a window of {window} does not fit {rest}")
    counts = [simplify((n - w) // s + 1) for n, w, s in zip(rest, window, steps)]

    def place(*i: Any) -> list[Any]:
        position, inside = i[at : at + len(rest)], i[at + len(rest) :]
        return [*i[:at], *(p * s + k for p, s, k in zip(position, steps, inside))]

    return _move(data, (*shape[:at], *counts, *window), place, "sliding_window")


def _parse_layout(layout: str) -> list[tuple[str, int]]:
    """Letters of a layout with their blocks: "NCHW16c" is N, C, H, W and c of 16."""
    result, digits = [], ""
    for letter in layout:
        if letter.isdigit():
            digits += letter
            continue
        if letter.islower() != bool(digits):
            raise ValueError(
                f"topi.layout_transform: in layout {layout!r} a lower-case letter needs the "
                "block's size in front of it, as in NCHW16c, and only such a letter has one"
            )
        result.append((letter, int(digits or 0)))
        digits = ""
    whole = [letter for letter, _ in result if letter.isupper()]
    parts = {letter.upper() for letter, _ in result if letter.islower()}
    if digits or len(set(whole)) != len(whole) or not parts <= set(whole):
        raise ValueError(
            f"topi.layout_transform: layout {layout!r} must name each dimension once, blocks "
            "beside their dimension"
        )
    return result


def _blocks_of(parts: Sequence[tuple[str, int]], letter: str) -> list[int]:
    """Lengths of a dimension's blocks, the coarse ones first."""
    return [block for part, block in parts if block and part.upper() == letter]


def layout_transform(array: te.Tensor, src_layout: str, dst_layout: str) -> te.Tensor:
    """array with its dimensions in another order, or divided in blocks: NCHW to NHWC or NCHW16c.

    A block of ``16c`` holds 16 neighbours of dimension C, whose own extent becomes the number of
    blocks; the last one is filled with zeros where C is no multiple. A dimension may be divided
    again: in ``OIHW4i16o4i`` four neighbours along I are innermost, and four such groups, 16
    elements in all, make what the outer I counts.

    Raises
    ------
    ValueError : the layouts do not have the same dimensions, or do not fit array.
    """
    source, target = _parse_layout(src_layout), _parse_layout(dst_layout)
    shape = get_const_tuple(array.shape)
    outer = {letter for letter, _ in source if letter.isupper()}
    if len(shape) != len(source) or outer != {c for c, _ in target if c.isupper()}:
        raise ValueError(
            f"topi.layout_transform: {src_layout} to {dst_layout} does not fit a tensor of "
            f"{len(shape)} dimensions, or their dimensions differ"
        )
    blocks_in = {c: _blocks_of(source, c) for c in outer}
    blocks_out = {c: _blocks_of(target, c) for c in outer}
    width = {c: prod(blocks) for c, blocks in blocks_out.items()}
    full = {
        letter: simplify(n * prod(blocks_in[letter]))
        for (letter, _), n in zip(source, shape)
        if letter.isupper()
    }
    out = [block or simplify((full[c] + width[c] - 1) // width[c]) for c, block in target]

    def read(*indices: Any) -> Any:
        whole = {letter: index for (letter, _), index in zip(target, indices) if letter in outer}
        for (letter, block), index in zip(target, indices):
            if block:
                whole[letter.upper()] = whole[letter.upper()] * block + index
        position, seen = [], dict.fromkeys(outer, 0)
        for letter, block in source:
            blocks = blocks_in[letter.upper()]
            seen[letter.upper()] += bool(block)
            inner = prod(blocks[seen[letter.upper()] :] if block else blocks)
            at = whole[letter.upper()]
            at = at // inner if inner != 1 else at
            position.append(at % block if block else at)
        inside = [
            whole[c] < full[c]
            for c in sorted(outer)
            if blocks_out[c] and not equal_const_int(simplify(full[c] % width[c]), 0)
        ]
        value = array(*position)
        if not inside:
            return value
        return tir.if_then_else(tir.all(*inside), value, tir.const(0, array.dtype))

    return te.compute(out, read, name="T_layout_trans", tag=tag.INJECTIVE)
