"""Calls of one operator on one tensor with different weights, made one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import error
from tvm.ir import IRModule, Op, RelayExpr, TensorType, structural_equal
from tvm.ir.transform import Pass

from .. import op
from ..expr import Call, Function, Tuple, set_checked_type
from ..expr_functor import PostOrderMutator, post_order_visit
from ..op.registry import OpPattern, find_row, settings_of
from ..ty import is_dynamic
from .base import expression_pass

__all__ = [
    "CombineParallelBatchMatmul",
    "CombineParallelConv2D",
    "CombineParallelDense",
]


@dataclass(frozen=True)
class _Kind:
    """How calls of an operator become one.

    Attributes
    ----------
    supports : whether a call may be one of them. fits : whether two may be together.
    join : the call for several, and the axis of its result that the parts lie along; the axis is
        one more than a part has where they are stacked.
    stacked : whether parts are beside each other along a new first axis.
    """

    name: str
    supports: Callable[[Call], bool]
    fits: Callable[[Call, Call], bool]
    join: Callable[[Sequence[Call], RelayExpr], RelayExpr]
    axis: Callable[[Call], int]
    stacked: bool = False


def _name(expr: Any) -> str:
    return str(expr.op.name) if isinstance(expr, Call) and isinstance(expr.op, Op) else ""


def _shape(expr: RelayExpr) -> list[int]:
    return [int(e) for e in expr.checked_type.shape]


def _axis_of(layout: str, letter: str) -> int:
    return layout.index(letter)


def _same_settings(a: Call, b: Call, but: Sequence[str] = ()) -> bool:
    first, second = settings_of(a), settings_of(b)
    return all(first.get(k) == second.get(k) for k in {*first, *second} if k not in but)


def _conv_supported(call: Call) -> bool:
    s = settings_of(call)
    plain = all(c.isupper() for c in s["data_layout"] + s["kernel_layout"])
    return s["groups"] == 1 and plain and not s["out_layout"]


def _conv_fits(a: Call, b: Call) -> bool:
    place = _axis_of(settings_of(a)["kernel_layout"], "O")
    if not _same_settings(a, b, ["channels", "kernel_size"]):
        return False
    x, y = (_shape(c.args[1]) for c in (a, b))
    same = all(e == f for k, (e, f) in enumerate(zip(x, y)) if k != place)
    return same and str(a.args[1].checked_type.dtype) == str(b.args[1].checked_type.dtype)


def _conv_join(calls: Sequence[Call], data: RelayExpr) -> RelayExpr:
    place = _axis_of(settings_of(calls[0])["kernel_layout"], "O")
    weight = op.concatenate(Tuple([c.args[1] for c in calls]), axis=place)
    channels = sum(_shape(c.args[1])[place] for c in calls)
    attrs = {str(k): v for k, v in calls[0].attrs.items()}
    return Call(calls[0].op, [data, weight], {**attrs, "channels": channels})


def _dense_fits(a: Call, b: Call) -> bool:
    same = _same_settings(a, b, ["units"])
    x, y = (a.args[1].checked_type, b.args[1].checked_type)
    return same and str(x.dtype) == str(y.dtype) and _shape(a.args[1])[1] == _shape(b.args[1])[1]


def _dense_fits_stacked(a: Call, b: Call) -> bool:
    return _dense_fits(a, b) and _shape(a.args[1]) == _shape(b.args[1])


def _dense_join(calls: Sequence[Call], data: RelayExpr) -> RelayExpr:
    weight = op.concatenate(Tuple([c.args[1] for c in calls]), axis=0)
    units = sum(_shape(c.args[1])[0] for c in calls)
    attrs = {str(k): v for k, v in calls[0].attrs.items()}
    if attrs.get("units") is not None:
        attrs["units"] = units
    return Call(calls[0].op, [data, weight], attrs)


def _dense_stacked(calls: Sequence[Call], data: RelayExpr) -> RelayExpr:
    inputs = op.stack(Tuple([data] * len(calls)), axis=0)
    weights = op.stack(Tuple([c.args[1] for c in calls]), axis=0)
    dtype = settings_of(calls[0]).get("out_dtype") or ""
    return op.nn.batch_matmul(inputs, weights, dtype)


def _batch_supported(call: Call) -> bool:
    s = settings_of(call)
    return not s.get("transpose_a") and bool(s.get("transpose_b"))


def _batch_fits(a: Call, b: Call) -> bool:
    x, y = _shape(a.args[1]), _shape(b.args[1])
    return _same_settings(a, b) and x[0] == y[0] and x[2] == y[2]


def _batch_join(calls: Sequence[Call], data: RelayExpr) -> RelayExpr:
    weight = op.concatenate(Tuple([c.args[1] for c in calls]), axis=1)
    return Call(calls[0].op, [data, weight], calls[0].attrs)


def _channel_axis(call: Call) -> int:
    return _axis_of(settings_of(call)["data_layout"], "C")


_CONV = _Kind("nn.conv2d", _conv_supported, _conv_fits, _conv_join, _channel_axis)
_DENSE_FLAT = _Kind("nn.dense", lambda c: True, _dense_fits, _dense_join, lambda c: 1)
_DENSE = _Kind(
    "nn.dense", lambda c: True, _dense_fits_stacked, _dense_stacked, lambda c: 0, stacked=True
)
_BATCH = _Kind("nn.batch_matmul", _batch_supported, _batch_fits, _batch_join, lambda c: 2)


class _Uses:
    def __init__(self, body: RelayExpr) -> None:
        self.order: list[RelayExpr] = []
        self.users: dict[RelayExpr, list[RelayExpr]] = {}
        post_order_visit(body, self._enter)

    def _enter(self, expr: RelayExpr) -> None:
        self.order.append(expr)
        if isinstance(expr, Call):
            for arg in expr.args:
                self.users.setdefault(arg, []).append(expr)
        elif isinstance(expr, Tuple):
            for field in expr.fields:
                self.users.setdefault(field, []).append(expr)
        elif (value := getattr(expr, "tuple_value", None)) is not None:
            self.users.setdefault(value, []).append(expr)

    def single(self, expr: RelayExpr) -> Call | None:
        """The call that alone uses an expression, if it is one."""
        users = self.users.get(expr, [])
        return users[0] if len(users) == 1 and isinstance(users[0], Call) else None


def _groups(kind: _Kind, uses: _Uses) -> list[list[Call]]:
    """Calls on one tensor that fit together."""
    groups: list[list[Call]] = []
    for expr in uses.order:
        if _name(expr) != kind.name or not kind.supports(expr):
            continue
        if any(is_dynamic(arg.checked_type_) for arg in expr.args):
            continue
        for group in groups:
            if group[0].args[0].same_as(expr.args[0]) and kind.fits(group[0], expr):
                group.append(expr)
                break
        else:
            groups.append([expr])
    return groups


def _is_pointwise(call: Call) -> bool:
    row = find_row(call.op)
    return (row is not None and row.pattern in (OpPattern.ELEMWISE, OpPattern.BROADCAST)
            and isinstance(call.checked_type_, TensorType))  # fmt: skip


class _Joint:
    """The joined call of a group, extended by what is done to all of its parts alike."""

    def __init__(self, kind: _Kind, group: Sequence[Call], uses: _Uses) -> None:
        self._kind, self._uses = kind, uses
        self.parts: list[Call] = list(group)
        self.axis = kind.axis(group[0])
        self.steps: list[list[Call]] = []
        while self._extend():
            pass

    def _extend(self) -> bool:
        following = [self._uses.single(p) for p in self.parts]
        first = following[0]
        if first is None or not _is_pointwise(first):
            return False
        calls = [f for f in following if f is not None]
        if len(calls) != len(following) or len(set(calls)) != len(calls):
            return False
        if any(_name(c) != _name(first) or not _same_settings(c, first) for c in calls):
            return False
        place = self._place(0, first)
        for k, call in enumerate(calls):
            if self._place(k, call) != place or len(call.args) != len(first.args):
                return False
            if _shape(call) != _shape(self.parts[k]):
                return False
            for j, arg in enumerate(call.args):
                if j != place and not self._joinable(arg, first.args[j], call):
                    return False
        self.steps.append(calls)
        self.parts = calls
        return True

    def _place(self, k: int, call: Call) -> int:
        return next(j for j, a in enumerate(call.args) if a.same_as(self.parts[k]))

    def _joinable(self, arg: RelayExpr, like: RelayExpr, call: Call) -> bool:
        """Whether operands of the parts can be joined as the parts are."""
        if not isinstance(arg.checked_type_, TensorType):
            return False
        shape, other, whole = _shape(arg), _shape(like), _shape(call)
        if self._kind.stacked:
            return shape == other
        if not shape:
            return arg.same_as(like) or structural_equal(arg, like)
        axis = self.axis - (len(whole) - len(shape))
        return axis >= 0 and len(shape) == len(other) and shape[axis] == whole[self.axis] and all(
            e == f for k, (e, f) in enumerate(zip(shape, other)) if k != axis
        )  # fmt: skip

    def build(self, group: Sequence[Call], visit: Callable[[RelayExpr], RelayExpr]) -> RelayExpr:
        """One expression for all parts."""
        fresh = [Call(c.op, [visit(a) for a in c.args], c.attrs) for c in group]
        for new, old in zip(fresh, group):
            for a, b in zip(new.args, old.args):
                if a.checked_type_ is None:
                    set_checked_type(a, b.checked_type)
        result = self._kind.join(fresh, fresh[0].args[0])
        previous: Sequence[Call] = group
        for calls in self.steps:
            place = next(j for j, a in enumerate(calls[0].args) if a.same_as(previous[0]))
            args = []
            for j in range(len(calls[0].args)):
                if j == place:
                    args.append(result)
                else:
                    args.append(self._joined([visit(c.args[j]) for c in calls], calls, j))
            result = Call(calls[0].op, args, calls[0].attrs)
            previous = calls
        return result

    def _joined(self, args: Sequence[RelayExpr], calls: Sequence[Call], j: int) -> RelayExpr:
        shape = _shape(calls[0].args[j])
        if self._kind.stacked:
            rank = len(_shape(calls[0]))
            if len(shape) < rank:
                args = [op.expand_dims(a, axis=0, num_newaxis=rank - len(shape)) for a in args]
            return op.stack(Tuple(list(args)), axis=0)
        if not shape:
            return args[0]
        axis = self.axis - (len(_shape(calls[0])) - len(shape))
        return op.concatenate(Tuple(list(args)), axis=axis)


class _Combiner(PostOrderMutator):
    def __init__(self, kind: _Kind, joints: Sequence[tuple[list[Call], _Joint]]) -> None:
        super().__init__()
        self._kind = kind
        self._of: dict[RelayExpr, tuple[list[Call], _Joint, int]] = {}
        self._built: dict[int, RelayExpr] = {}
        self._pieces: dict[int, Any] = {}
        for group, joint in joints:
            for k, part in enumerate(joint.parts):
                self._of[part] = (group, joint, k)

    def visited_first(self, expr: RelayExpr) -> list[RelayExpr]:
        return [] if expr in self._of else super().visited_first(expr)

    def visit_call(self, call: Call) -> RelayExpr:
        if call not in self._of:
            return super().visit_call(call)
        group, joint, k = self._of[call]
        if id(joint) not in self._built:
            self._built[id(joint)] = joint.build(group, self.visit)
        whole = self._built[id(joint)]
        if self._kind.stacked:
            if id(joint) not in self._pieces:
                self._pieces[id(joint)] = op.split(whole, len(group), axis=0)
            return op.squeeze(self._pieces[id(joint)][k], axis=[0])
        axis = joint.axis
        sizes = [_shape(part)[axis] for part in joint.parts]
        begin, size = [0] * axis + [sum(sizes[:k])], [-1] * axis + [sizes[k]]
        strides = [1] * (axis + 1)
        return op.strided_slice(whole, begin=begin, end=size, strides=strides, slice_mode="size")


def _combining(kind: _Kind, least: int) -> Callable[[Function, IRModule], RelayExpr]:
    def rewrite(func: Function, mod: IRModule) -> RelayExpr:
        uses = _Uses(func.body)
        found = [g for g in _groups(kind, uses) if len(g) >= least]
        if not found:
            return func
        return _Combiner(kind, [(g, _Joint(kind, g, uses)) for g in found]).visit(func)

    return rewrite


def _checked(name: str, least: int) -> int:
    if least < 2:
        raise error.ValueError(f"relay.{name}: min_num_branches is at least 2, got {least}")
    return int(least)


def CombineParallelConv2D(min_num_branches: int = 3) -> Pass:
    """Convolutions of one tensor by windows of one size as one convolution, whose result is cut.

    What all results go through alike, such as a sum with a vector of the channels and relu, is done
    once before the cut.

    Parameters
    ----------
    min_num_branches : how many there have to be.
    """
    least = _checked("CombineParallelConv2D", min_num_branches)
    return expression_pass(_combining(_CONV, least), 4, "CombineParallelConv2d")


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = True) -> Pass:
    """Matrix products of one tensor as one.

    Parameters
    ----------
    min_num_branches : how many there have to be.
    to_batch : stack weights of one shape and multiply them as a batch; otherwise join them along
        the units.
    """
    least = _checked("CombineParallelDense", min_num_branches)
    kind = _DENSE if to_batch else _DENSE_FLAT
    return expression_pass(_combining(kind, least), 4, "CombineParallelDense")


def CombineParallelBatchMatmul(min_num_branches: int = 3) -> Pass:
    """Products of one batch of matrices with others as one, along the columns."""
    least = _checked("CombineParallelBatchMatmul", min_num_branches)
    return expression_pass(_combining(_BATCH, least), 4, "CombineParallelBatchMatmul")
