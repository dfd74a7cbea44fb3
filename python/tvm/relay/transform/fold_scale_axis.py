"""Scales of channels made part of the weights of convolutions and matrix products around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import tvm
from tvm.ir import IRModule, Op, RelayExpr, TensorType
from tvm.ir.transform import Pass, Sequential

from .. import op
from ..expr import Call, Constant, Function
from ..expr_functor import PostOrderMutator, post_order_visit
from ..op import elementwise as ew
from ..op.registry import settings_of
from .base import expression_pass
from .simplify import FoldConstant

__all__ = ["BackwardFoldScaleAxis", "FoldScaleAxis", "ForwardFoldScaleAxis"]


@dataclass(frozen=True)
class _Room:
    """A scale that a value may be freed of, or given.

    Attributes
    ----------
    axes : axes of the value that the scale lies along: channels, or blocks of them and their parts.
    positive : whether the scale has to be positive, because it moves past a maximum with zero.
    """

    axes: tuple[int, ...]
    positive: bool


def _name(expr: Any) -> str:
    return str(expr.op.name) if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def _extents(expr: RelayExpr) -> list[int]:
    return [int(e) for e in expr.checked_type.shape]


def _is_fixed(expr: RelayExpr) -> bool:
    type_ = expr.checked_type_
    return isinstance(type_, TensorType) and all(isinstance(e, tvm.tir.IntImm) for e in type_.shape)


_KEEPS_VALUES = ("expand_dims", "reshape", "squeeze", "transpose", "repeat", "tile", "broadcast_to")


def _is_positive(expr: RelayExpr) -> bool:
    while _name(expr) in _KEEPS_VALUES:
        expr = expr.args[0]
    return isinstance(expr, Constant) and bool(np.all(expr.data.numpy() > 0))


def _along(whole: Sequence[int], part: Sequence[int], axes: Sequence[int]) -> bool:
    """Whether a part broadcasts to a whole along the given axes and no others."""
    skipped = len(whole) - len(part)
    if skipped < 0 or any(a < skipped for a in axes):
        return False
    wanted = [whole[a] if a in axes else 1 for a in range(skipped, len(whole))]
    return list(part) == wanted


def _scale_of(value: RelayExpr, scale: RelayExpr, axes: Sequence[int]) -> RelayExpr | None:
    """The scale with the axes alone, None if it lies along others."""
    whole, part = _extents(value), _extents(scale)
    if not part:
        return op.broadcast_to(scale, [whole[a] for a in axes])
    if not _along(whole, part, axes):
        return None
    skipped = len(whole) - len(part)
    ones = [a - skipped for a in range(skipped, len(whole)) if a not in axes]
    return op.squeeze(scale, axis=ones) if ones else scale


def _fitted(scale: RelayExpr, shape: Sequence[int], axes: Sequence[int]) -> RelayExpr:
    """The scale in a form that broadcasts along axes of a shape."""
    if len(axes) > 1:
        return op.reshape(scale, [e if k in axes else 1 for k, e in enumerate(shape)])
    behind = len(shape) - 1 - axes[0]
    return op.expand_dims(scale, axis=1, num_newaxis=behind) if behind else scale


def _places(layout: str, letter: str) -> tuple[int, ...]:
    """Axes of a letter and of its blocks."""
    letters = [c for c in layout if c.isalpha()]
    return tuple(k for k, c in enumerate(letters) if c == letter or c == letter.lower())


@dataclass(frozen=True)
class _Product:
    """What to know of an operator that multiplies by weights."""

    data: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    result: tuple[int, ...]


def _product(call: Call) -> _Product | None:
    """The axes of channels of a convolution or a matrix product; None for others."""
    name, s = _name(call), settings_of(call)
    if name == "nn.dense":
        return _Product((1,), (1,), (0,), (1,)) if len(_extents(call)) == 2 else None
    if name not in ("nn.conv1d", "nn.conv2d", "nn.conv3d"):
        return None
    result = _places(s["out_layout"] or s["data_layout"], "C")
    data, kernel = _places(s["data_layout"], "C"), s["kernel_layout"]
    inputs, outputs = _places(kernel, "I"), _places(kernel, "O")
    if s["groups"] != 1:
        weight = _extents(call.args[1])
        if int(np.prod([weight[k] for k in inputs])) != 1 or s["groups"] != int(
            np.prod([weight[k] for k in outputs])
        ):
            # Of several channels a group, neither axis of the weights has all.
            return None if s["groups"] == 1 else _Product((), (), outputs, result)
        # One filter a channel: its place among the filters is the channel's.
        inputs = outputs
    return _Product(data, inputs, outputs, result)


def _fits(expr: RelayExpr, axes: Sequence[int], other: RelayExpr, places: Sequence[int]) -> bool:
    """Whether axes of two tensors count the same channels in the same blocks."""
    a, b = _extents(expr), _extents(other)
    return bool(axes) and bool(places) and (
        int(np.prod([a[k] for k in axes])) == int(np.prod([b[k] for k in places]))
    )  # fmt: skip


_PASSES = ("nn.relu", "nn.leaky_relu")


def _rooms_before(func: Function) -> dict[RelayExpr, _Room]:
    """Values that everything that uses them can do without a scale of, by what uses them."""
    order: list[RelayExpr] = []
    post_order_visit(func.body, order.append)
    wishes: dict[RelayExpr, list[_Room | None]] = {func.body: [None]}

    def wish(expr: RelayExpr, room: _Room | None) -> None:
        wishes.setdefault(expr, []).append(room)

    found: dict[RelayExpr, _Room] = {}
    for node in reversed(order):
        room = _merged(wishes.get(node, [None]))
        if room is not None:
            found[node] = room
        for arg, needed in _wishes_of(node, room):
            wish(arg, needed)
    return found


def _merged(rooms: Sequence[_Room | None]) -> _Room | None:
    if not rooms or any(r is None for r in rooms):
        return None
    known = [r for r in rooms if r is not None]
    if len({r.axes for r in known}) != 1:
        return None
    return _Room(known[0].axes, any(r.positive for r in known))


def _wishes_of(node: RelayExpr, room: _Room | None) -> list[tuple[RelayExpr, _Room | None]]:
    """For each operand, the scale that it may be freed of where the node takes it over."""
    name = _name(node)
    parts = _used(node)
    plain: list[tuple[RelayExpr, _Room | None]] = [(p, None) for p in parts]
    if not name or not all(_is_fixed(p) for p in node.args):
        return plain
    product = _product(node)
    if product is not None:
        data, weight = node.args
        if product.data and _fits(data, product.data, weight, product.inputs):
            plain[0] = (data, _Room(product.data, False))
        return plain
    if room is None:
        return plain
    if name in _PASSES:
        return [(node.args[0], _Room(room.axes, True))]
    if name in ("add", "subtract"):
        a, b = node.args
        if _along(_extents(a), _extents(b), room.axes):
            return [(a, room), (b, None)]
        if _along(_extents(b), _extents(a), room.axes):
            return [(a, None), (b, room)]
    return plain


def _used(node: RelayExpr) -> list[RelayExpr]:
    """Everything that an expression is made of."""
    if isinstance(node, Call):
        return list(node.args) if isinstance(node.op, Op) else [node.op, *node.args]
    parts: list[RelayExpr] = []
    for field in ("fields", "tuple_value", "value", "body", "cond", "true_branch", "false_branch",
                  "ref", "data"):  # fmt: skip
        part = getattr(node, field, None)
        if isinstance(part, RelayExpr):
            parts.append(part)
        elif field == "fields" and part is not None:
            parts.extend(part)
    return parts


@dataclass
class _Scaled:
    """A value without the scale that it has to be multiplied by."""

    value: RelayExpr
    scale: RelayExpr
    axes: tuple[int, ...]


class _Forward(PostOrderMutator):
    """Moves scales to the weights of what comes behind."""

    def __init__(self, rooms: Mapping[RelayExpr, _Room]) -> None:
        super().__init__()
        self._rooms = rooms
        self._scaled: dict[RelayExpr, _Scaled] = {}

    def _take(self, call: Call) -> _Scaled | None:
        """The scale of a product that nothing behind it needs to have."""
        room = self._rooms.get(call)
        if room is None or _name(call) != "multiply":
            return None
        for value, scale in (call.args, reversed(call.args)):
            if room.positive and not _is_positive(scale):
                continue
            if _extents(value) != _extents(call):
                continue
            found = _scale_of(value, scale, room.axes)
            if found is not None:
                return _Scaled(self.visit(value), found, room.axes)
        return None

    def visit_call(self, call: Call) -> RelayExpr:
        taken = self._take(call)
        if taken is not None:
            self._scaled[call] = taken
            return taken.value
        new = super().visit_call(call)
        held = [self._scaled.get(a) for a in call.args]
        if not any(held):
            return new
        assert isinstance(new, Call)
        product = _product(call)
        if product is not None:
            assert held[0] is not None
            weight = new.args[1]
            factor = _fitted(held[0].scale, _extents(call.args[1]), product.inputs)
            return Call(new.op, [new.args[0], ew.multiply(weight, factor)], new.attrs)
        source = next(h for h in held if h is not None)
        scale, axes = source.scale, source.axes
        if len(call.args) == 2:
            args = list(new.args)
            place = 1 if held[0] is not None else 0
            factor = _fitted(scale, _extents(call), axes)
            args[place] = ew.divide(args[place], factor)
            new = Call(new.op, args, new.attrs)
        self._scaled[call] = _Scaled(new, scale, axes)
        return new


def _forward(func: Function, mod: IRModule) -> RelayExpr:
    return _Forward(_rooms_before(func)).visit(func)


def ForwardFoldScaleAxis() -> Pass:
    """Make products with a constant along the channels part of the weights behind them.

    A scale moves past relu, where it is positive, and past sums with vectors of the channels, which
    are divided by it.
    """
    return expression_pass(_forward, 3, "ForwardFoldScaleAxis")


def _rooms_behind(func: Function) -> dict[RelayExpr, _Room]:
    """Values that may be given a scale, by changing weights before them, since one thing alone uses
    them."""
    order: list[RelayExpr] = []
    post_order_visit(func.body, order.append)
    uses: dict[RelayExpr, int] = {func.body: 1}
    for node in order:
        for part in _used(node):
            uses[part] = uses.get(part, 0) + 1
    found: dict[RelayExpr, _Room] = {}

    def room_of(expr: RelayExpr) -> _Room | None:
        return found.get(expr) if uses.get(expr, 0) == 1 else None

    for node in order:
        name = _name(node)
        if not name or not _is_fixed(node) or not all(_is_fixed(a) for a in node.args):
            continue
        product = _product(node)
        room: _Room | None = None
        if product is not None:
            if _fits(node, product.result, node.args[1], product.outputs):
                room = _Room(product.result, False)
        elif name in _PASSES:
            inner = room_of(node.args[0])
            room = None if inner is None else _Room(inner.axes, True)
        elif name == "nn.bias_add":
            inner = room_of(node.args[0])
            axis = settings_of(node)["axis"] % len(_extents(node))
            room = inner if inner is not None and inner.axes == (axis,) else None
        elif name in ("add", "subtract"):
            room = _sum_room(node, room_of)
        if room is not None:
            found[node] = room
    return {n: r for n, r in found.items() if uses.get(n, 0) == 1}


def _sum_room(call: Call, room_of: Callable[[RelayExpr], _Room | None]) -> _Room | None:
    a, b = call.args
    first, second = room_of(a), room_of(b)
    if first is not None and second is not None:
        same = first.axes == second.axes and _extents(a) == _extents(b)
        return _Room(first.axes, first.positive or second.positive) if same else None
    if first is not None:
        return first if _along(_extents(a), _extents(b), first.axes) else None
    if second is not None:
        return second if _along(_extents(b), _extents(a), second.axes) else None
    return None


class _Backward(PostOrderMutator):
    """Moves scales to the weights of what comes before."""

    def __init__(self, rooms: Mapping[RelayExpr, _Room]) -> None:
        super().__init__()
        self._rooms = rooms

    def visit_call(self, call: Call) -> RelayExpr:
        if _name(call) == "multiply":
            for value, scale in (call.args, reversed(call.args)):
                room = self._rooms.get(value)
                if room is None or _extents(value) != _extents(call):
                    continue
                if room.positive and not _is_positive(scale):
                    continue
                found = _scale_of(value, scale, room.axes)
                if found is not None:
                    return self._given(value, self.visit(found), room.axes)
        return super().visit_call(call)

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        # What is before a product is visited with its scale.
        return [] if _name(expr) == "multiply" else super().visited_first(expr)

    def _given(self, expr: RelayExpr, scale: RelayExpr, axes: tuple[int, ...]) -> RelayExpr:
        """An expression with the scale in its weights."""
        assert isinstance(expr, Call)
        product = _product(expr)
        if product is not None:
            data, weight = expr.args
            factor = _fitted(scale, _extents(weight), product.outputs)
            args = [self.visit(data), ew.multiply(self.visit(weight), factor)]
            return Call(expr.op, args, expr.attrs)
        if _name(expr) in _PASSES:
            return Call(expr.op, [self._given(expr.args[0], scale, axes)], expr.attrs)
        if _name(expr) == "nn.bias_add":
            data, bias = expr.args
            args = [self._given(data, scale, axes), ew.multiply(self.visit(bias), scale)]
            return Call(expr.op, args, expr.attrs)
        args = []
        for arg in expr.args:
            if arg in self._rooms:
                args.append(self._given(arg, scale, axes))
            else:
                factor = _fitted(scale, _extents(expr), axes)
                args.append(ew.multiply(self.visit(arg), factor))
        return Call(expr.op, args, expr.attrs)


def _backward(func: Function, mod: IRModule) -> RelayExpr:
    return _Backward(_rooms_behind(func)).visit(func)


def BackwardFoldScaleAxis() -> Pass:
    """Make products with a constant along the channels part of the weights before them.

    A scale moves past relu, where it is positive, and past sums, whose other operand gets it too.
    Values that more than one thing uses keep theirs.
    """
    return expression_pass(_backward, 3, "BackwardFoldScaleAxis")


def FoldScaleAxis() -> Pass:
    """Both :func:`BackwardFoldScaleAxis` and :func:`ForwardFoldScaleAxis`, and the weights computed
    where they are constants."""
    passes = [BackwardFoldScaleAxis(), ForwardFoldScaleAxis(), FoldConstant()]
    return Sequential(passes, opt_level=3, name="FoldScaleAxis")
