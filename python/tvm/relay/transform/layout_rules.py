"""In which layouts operators take and give tensors, and how their settings follow.

A layout is text such as "NCHW16c": capital letters are axes, small ones blocks of them. "" is the
layout of what has one element, which fits all; None is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm.ir import TensorType

from ..op.registry import OpPattern, OpRow
from ..op.shapes import extent_number

__all__ = ["Laid", "fits_rank", "infer_layouts", "letters_of", "plain_letters"]

Layout = str | None
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Laid:
    """Layouts of the tensors that a call takes and gives.

    Attributes
    ----------
    settings : those that change with the layouts.
    """

    inputs: Sequence[Layout]
    outputs: Sequence[Layout]
    settings: Settings


Rule = Callable[
    [Settings, Sequence[Layout] | None, Sequence[Layout], Sequence[TensorType]], Laid | None
]

_PART = re.compile(r"([A-Z])|(\d+)([a-z])")


def letters_of(layout: str) -> list[tuple[str, int | None]]:
    """Axes in order: a letter, and the length of those that are blocks."""
    return [
        (m[1], None) if m[1] else (m[3], int(m[2])) for m in _PART.finditer(layout)
    ]  # fmt: skip


def plain_letters(layout: str) -> str:
    """The axes without blocks, such as NCHW of NCHW16c."""
    return "".join(letter for letter, size in letters_of(layout) if size is None)


def fits_rank(layout: str, type_: TensorType) -> bool:
    """Whether a tensor has as many axes as a layout."""
    return len(letters_of(layout)) == len(type_.shape)


def _joined(parts: Sequence[tuple[str, int | None]]) -> str:
    return "".join(f"{size or ''}{letter}" for letter, size in parts)


def _block(layout: str, letter: str) -> int:
    """Length of all blocks of an axis, 1 if it has none."""
    total = 1
    for part, size in letters_of(layout):
        if size is not None and part.upper() == letter:
            total *= size
    return total


def _place(layout: str, letter: str) -> int:
    return [part for part, _ in letters_of(layout)].index(letter)


def _same_axes(a: str, b: str) -> bool:
    return sorted(plain_letters(a)) == sorted(plain_letters(b))


def _is_whole(layout: str) -> bool:
    """Whether every block is of an axis that is there."""
    plain = plain_letters(layout)
    return all(letter.upper() in plain for letter, _ in letters_of(layout))


def _changed(new: Sequence[Layout] | None, old: Sequence[Layout]) -> str | None:
    """The layout that the first operand is to be in now, if it is another than before."""
    if new is None or new[0] is None or old[0] is None or new[0] == old[0]:
        return None
    return new[0] if _same_axes(new[0], old[0]) else None


def _has_axes(layout: str, part: str) -> bool:
    return set(plain_letters(part)) <= set(plain_letters(layout))


def _extents(layout: str, type_: TensorType) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for (letter, _), extent in zip(letters_of(layout), type_.shape):
        key = letter.upper()
        sizes[key] = sizes.get(key, 1) * (extent_number(extent) or 0)
    return sizes


# One operand, all of whose axes mean what they did.


def _elementwise(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
    layout = (new or old)[0]
    return None if layout is None else Laid([layout], [layout], {})


def _two_results(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
    layout = (new or old)[0]
    return None if layout is None else Laid([layout], [layout, layout], {})


# Operands that broadcast.


def _one_element(type_: TensorType) -> bool:
    return all(extent_number(e) == 1 for e in type_.shape)


def _suffix(layout: str, rank: int) -> str:
    parts = letters_of(layout)
    return _joined(parts[len(parts) - rank :])


def _adjusted(target: str, layout: str, type_: TensorType) -> str:
    """The target with blocks of one for axes along which an operand is repeated."""
    sizes = _extents(layout, type_)
    return _joined([
        (letter, size if size is None or sizes.get(letter.upper(), 1) != 1 else 1)
        for letter, size in letters_of(target)
    ])  # fmt: skip


def _broadcast(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
    ranks = [len(t.shape) for t in types]
    single = [_one_element(t) for t in types]
    if all(single):
        single = [False] * len(types)
    wide = max(ranks[k] for k in range(len(types)) if not single[k])
    if any(rank > wide for rank in ranks):
        return None
    wides = [k for k in range(len(types)) if ranks[k] == wide and not single[k]]
    if new is None:
        return _broadcast_before(wides, single, old, types)
    base = old[wides[0]]
    target = next((new[k] for k in wides if new[k] != old[k]), new[wides[0]])
    if not _same_axes(target, base) or not _is_whole(target):
        return None
    inputs = []
    for k, type_ in enumerate(types):
        if single[k] or target == base:
            inputs.append(old[k])
        elif not (_is_whole(old[k]) and _is_whole(new[k]) and _has_axes(target, old[k])):
            return None
        else:
            inputs.append(_adjusted(target, old[k], type_) if k not in wides[:1] else target)
    if any(_adjusted(target, old[k], types[k]) == target for k in wides):
        return Laid(inputs, [target], {})
    return None


def _broadcast_before(wides: Any, single: Any, old: Any, types: Any) -> Laid | None:
    layout = next((old[k] for k in wides if old[k] is not None), None)
    if layout is None or not fits_rank(layout, types[wides[0]]):
        return None
    inputs = []
    for k, type_ in enumerate(types):
        expected = _suffix(layout, len(type_.shape))
        if single[k]:
            inputs.append(old[k] or "")
        elif old[k] not in (None, expected):
            return None
        else:
            inputs.append(expected)
    return Laid(inputs, [layout], {})


# Operators whose settings name layouts.


def _convolution(s: Settings, new: Any, old: Any, types: Any) -> Laid:
    data, kernel = s["data_layout"], s["kernel_layout"]
    return Laid([data, kernel], [s["out_layout"] or data], {})


def _window(s: Settings, new: Any, old: Any, types: Any) -> Laid:
    """Pooling, resizing: along spatial axes, which have to be whole; channels may be in blocks."""
    layout = s["layout"]
    wanted = _changed(new, old)
    if wanted is not None and not s.get("out_layout"):
        blocked = [p for p, size in letters_of(wanted) if size is not None]
        if all(p.upper() in "NC" for p in blocked) and _same_axes(wanted, layout):
            return Laid([wanted], [wanted], {"layout": wanted})
    return Laid([layout], [s.get("out_layout") or layout], {})


def _dense(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
    if old[0] not in (None, "NC") or len(types[0].shape) != 2:
        return None
    return Laid(["NC", s.get("weight_layout", "NC")], ["NC"], {})


# Operators along axes that a setting counts.


def _along(vectors: int, results: int = 1, more: int = 0) -> Rule:
    """Along one axis that is not in blocks; operands behind the first are vectors along it, as are
    results behind those of the first's shape."""

    def rule(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
        layout = old[0]
        if layout is None or not fits_rank(layout, types[0]):
            return None
        letter, size = letters_of(layout)[s["axis"]]
        settings: dict[str, Any] = {}
        wanted = _changed(new, old)
        if size is not None:
            return None
        if wanted is not None and _block(wanted, letter) == 1:
            layout = wanted
            settings = {"axis": _place(wanted, letter)}
        return Laid([layout] + [letter] * vectors, [layout] * results + [letter] * more, settings)

    return rule


def _axes_given(axis: Any, rank: int) -> list[int]:
    given = [axis] if isinstance(axis, int) else list(axis)
    return [a % rank for a in given]


def _reduction(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
    layout = old[0]
    if layout is None or not fits_rank(layout, types[0]):
        return None
    parts, axis = letters_of(layout), s["axis"]
    chosen = None if axis is None else [parts[a] for a in _axes_given(axis, len(parts))]
    if chosen is not None and any(
        letter.upper() != letter or _block(layout, letter) != 1 for letter, _ in chosen
    ):
        return None
    named = {letter for letter, _ in chosen or parts}
    wanted, settings = _changed(new, old), dict[str, Any]()
    if wanted is not None:
        layout = wanted
        if chosen is not None:
            now = letters_of(wanted)
            settings = {"axis": [k for k, (p, _) in enumerate(now) if p.upper() in named]}
    gone = named if not s["exclude"] else {p for p in plain_letters(layout) if p not in named}
    if axis is None:
        gone = set(plain_letters(layout))
    kept = []
    for letter, size in letters_of(layout):
        if letter.upper() not in gone:
            kept.append((letter, size))
        elif s["keepdims"]:
            kept.append((letter, None if size is None else 1))
    return Laid([layout], [_joined(kept)], settings)


def _concatenation(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
    layout = next((o for o in old if o is not None), None)
    if layout is None or any(o not in (None, layout) for o in old):
        return None
    if not all(fits_rank(layout, t) for t in types):
        return None
    letter, size = letters_of(layout)[s["axis"]]
    if size is not None:
        return None
    settings = {}
    if new is not None:
        wanted = next((n for n in new if n is not None and n != layout), None)
        if wanted is not None and _same_axes(wanted, layout) and _is_whole(wanted):
            block = _block(wanted, letter)
            if all(_extents(layout, t)[letter] % block == 0 for t in types):
                layout, settings = wanted, {"axis": _place(wanted, letter)}
    return Laid([layout] * len(types), [layout], settings)


def _division(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
    cuts = s["indices_or_sections"]
    count = cuts if isinstance(cuts, int) else len(cuts) + 1
    return _along(0, results=count)(s, new, old, types)


def _border(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
    layout = old[0]
    if layout is None or not fits_rank(layout, types[0]):
        return None
    wanted = _changed(new, old)
    widths = {p: list(w) for (p, _), w in zip(letters_of(layout), s["pad_width"])}
    others = [""] * (len(types) - 1)
    if wanted is None or any(
        any(width) and _block(wanted, p) != 1 for p, width in widths.items() if p.isupper()
    ):
        return Laid([layout, *others], [layout], {})
    now = [widths[p] if size is None else [0, 0] for p, size in letters_of(wanted)]
    return Laid([wanted, *others], [wanted], {"pad_width": now})


def _slice(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
    layout = old[0]
    if layout is None or not fits_rank(layout, types[0]):
        return None
    same = Laid([layout], [layout], {})
    wanted = _changed(new, old)
    parts = letters_of(layout)
    if wanted is None or any(size is not None for _, size in parts):
        return same
    axes = range(len(s["begin"])) if s["axes"] is None else _axes_given(s["axes"], len(parts))
    sizes = _extents(layout, types[0])
    strides = list(s["strides"]) * (len(s["begin"]) if len(s["strides"]) == 1 else 1)
    cuts = {}
    for k, axis in enumerate(axes):
        letter = parts[axis][0]
        low, high, step = s["begin"][k], s["end"][k], strides[k] if k < len(strides) else 1
        block = _block(wanted, letter)
        if block > 1:
            if s["slice_mode"] == "end":
                high = min(high, sizes[letter])
            if step != 1 or low % block or high % block or low < 0 or high < 0:
                return same
            low, high = low // block, high // block
        cuts[letter] = (low, high, step)
    order = [p for p, size in letters_of(wanted) if size is None]
    if s["axes"] is None:
        whole = -1 if s["slice_mode"] == "size" else None
        order = order[: max(order.index(p) for p in cuts) + 1]
        full = [cuts.get(p, (0, sizes[p] // _block(wanted, p) if whole is None else whole, 1))
                for p in order]  # fmt: skip
        settings: dict[str, Any] = {}
        place = [_place(wanted, p) for p in order]
        if place != list(range(len(place))):
            settings["axes"] = place
    else:
        letters = [parts[axis][0] for axis in axes]
        full = [cuts[p] for p in letters]
        settings = {"axes": [_place(wanted, p) for p in letters]}
    low_high_step = [list(column) for column in zip(*full)]
    settings |= dict(zip(("begin", "end", "strides"), low_high_step))
    return Laid([wanted], [wanted], settings)


def _stated(s: Settings, new: Any, old: Any, types: Any) -> Laid:
    return Laid([s["src_layout"]], [s["dst_layout"]], {})


# Quantised operators. Scales and zero points are numbers, or vectors along one axis of what they
# belong to: they stay as they are.


def _with_numbers(rule: Rule, count: Callable[[int], int]) -> Rule:
    """A rule for the first operands; `count` says how many these are of all.

    Axes of several scales are not followed where a rule does not count them.
    """

    def whole(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
        n = count(len(types))
        numbers = types[n:]
        if rule is not _convolution and not all(_one_element(t) for t in numbers):
            return None
        found = rule(s, new and new[:n], old[:n], types[:n])
        if found is None:
            return None
        return Laid([*found.inputs, *[""] * len(numbers)], found.outputs, found.settings)

    return whole


def _rescaled(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
    """One tensor whose scales, if they are several, are along the axis that is counted."""
    numbers = [""] * (len(types) - 1)
    if all(_one_element(t) for t in types[1:]):
        layout = (new or old)[0]
        settings = {} if layout is None else {"axis": s["axis"] if new is None else -1}
        return None if layout is None else Laid([layout, *numbers], [layout], settings)
    found = _along(0)(s, new and new[:1], old[:1], types[:1])
    if found is None:
        return None
    return Laid([*found.inputs, *numbers], found.outputs, found.settings)


_REDUCTIONS = ("sum", "mean", "prod", "max", "min", "all", "any", "argmax", "argmin")
_RULES: dict[str, Rule] = {
    **{f"nn.conv{k}d": _convolution for k in (1, 2, 3)},
    **{f"nn.conv{k}d_transpose": _convolution for k in (1, 2, 3)},
    "nn.contrib_conv2d_NCHWc": _convolution,
    "nn.contrib_depthwise_conv2d_NCHWc": _convolution,
    **{f"nn.{kind}_pool{k}d": _window for kind in ("max", "avg") for k in (1, 2, 3)},
    **{f"nn.adaptive_{kind}_pool{k}d": _window for kind in ("max", "avg") for k in (1, 2, 3)},
    **{f"nn.global_{kind}_pool2d": _window for kind in ("max", "avg")},
    **{f"image.resize{k}d": _window for k in (1, 2, 3)},
    "nn.upsampling": _window,
    "nn.upsampling3d": _window,
    "nn.dense": _dense,
    "nn.contrib_dense_pack": _dense,
    "nn.dropout": _two_results,
    "nn.batch_norm": _along(4, results=1, more=2),
    "nn.bias_add": _along(1),
    "nn.prelu": _along(1),
    "nn.softmax": _along(0),
    "nn.log_softmax": _along(0),
    "nn.lrn": _along(0),
    "nn.pad": _border,
    **dict.fromkeys(_REDUCTIONS, _reduction),
    "concatenate": _concatenation,
    "split": _division,
    "strided_slice": _slice,
    "layout_transform": _stated,
    **{
        f"qnn.{n}": _with_numbers(_convolution, lambda _: 2) for n in ("conv2d", "conv2d_transpose")
    },
    **{f"qnn.{n}": _with_numbers(_broadcast, lambda _: 2) for n in ("add", "subtract", "mul")},
    "qnn.concatenate": _with_numbers(_concatenation, lambda operands: (operands - 2) // 3),
    **{f"qnn.{n}": _rescaled for n in ("quantize", "dequantize", "requantize")},
}


def _variance(s: Settings, new: Any, old: Any, types: Any) -> Laid | None:
    found = _reduction(s, new and new[:1], old[:1], types[:1])
    if found is None:
        return None
    # The mean has the axes that are left, each of one element.
    means = _reduction({**s, "keepdims": True}, new and new[:1], old[:1], types[:1])
    assert means is not None
    return Laid([found.inputs[0], *means.outputs], found.outputs, found.settings)


_RULES["variance"] = _variance


def infer_layouts(
    row: OpRow,
    settings: Settings,
    new: Sequence[Layout] | None,
    old: Sequence[Layout],
    types: Sequence[TensorType],
) -> Laid | None:
    """The layouts of a call's tensors; None if they do not follow.

    Parameters
    ----------
    new : layouts that operands are in now; None asks for those of the program as it was.
    old : layouts that they had in the program.
    types : types that they had in the program; fields of tuples are operands of their own.
    """
    rule = _RULES.get(row.name)
    if rule is None:
        if len(types) == 1 and row.pattern == OpPattern.ELEMWISE:
            rule = _elementwise
        elif len(types) == 2 and row.pattern in (OpPattern.ELEMWISE, OpPattern.BROADCAST):
            rule = _broadcast
        else:
            return None
    found = rule(settings, new, old, types)
    if found is None or None in found.inputs or None in found.outputs:
        return None
    return found
