"""In which order operators take and give the dimensions of tensors that are stored in another one.

An order is a tuple: ``(0, 2, 3, 1)`` is that of a tensor whose dimensions 0, 2, 3 and 1 of the
program stand one after the other; None is that of a value which is no tensor of a known rank. The
orders of a tuple are a list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tvm import error
from tvm.ir import RelayExpr

from ..expr import Call
from ..op import attrs_of, unary
from ..op import binary as binary_ops
from ..op.nn import activation
from ..op.rules import setting
from ..struct_info import StructInfo, TensorStructInfo, TupleStructInfo

__all__ = ["Order", "Orders", "Placed", "as_written", "axes_between", "place"]

Order: TypeAlias = tuple[int, ...]
Orders: TypeAlias = "Order | list[Any] | None"


@dataclass
class Placed:
    """A call between tensors in other orders: theirs, and the settings that change."""

    args: list[Orders]
    result: Orders
    settings: dict[str, Any] = field(default_factory=dict)


Desired: TypeAlias = Mapping[str, Sequence[str]]
_Rule: TypeAlias = Callable[[Call, list[Orders], Desired], "Placed | None"]
_rules: dict[str, _Rule] = {}


def as_written(info: StructInfo | None) -> Orders:
    """The order in which a program without this pass stores a value."""
    if isinstance(info, TupleStructInfo):
        return [as_written(part) for part in info.fields]
    if isinstance(info, TensorStructInfo) and info.ndim != -1:
        return tuple(range(info.ndim))
    return None


def axes_between(have: Order, want: Order) -> list[int]:
    """The axes of the transpose that brings a tensor from one order into another."""
    return [have.index(dimension) for dimension in want]


def place(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    """How an operator computes on operands in these orders, or in those that are desired of it.

    Parameters
    ----------
    orders : of each operand.
    desired : layouts by operator: of data and weights, and of the result if it is another one.

    Returns
    -------
    None if the operator has to be given its operands as they are written.
    """
    rule = _rules.get(str(call.op.name))
    return None if rule is None else rule(call, orders, desired)


def _rule(*names: str) -> Callable[[_Rule], _Rule]:
    def register(rule: _Rule) -> _Rule:
        _rules.update({f"relax.{name}": rule for name in names})
        return rule

    return register


def _order_of_name(call: Call, written: str, wanted: str) -> Order:
    if sorted(written) != sorted(wanted):
        raise error.ValueError(
            f"ConvertLayout: {call.op.name} has the layout {written}, which cannot become {wanted}"
        )
    return tuple(written.index(letter) for letter in wanted)


def _name_in_order(written: str, order: Order) -> str:
    return "".join(written[dimension] for dimension in order)


def _follow(order: Order, rank: int) -> Order:
    """The order of a tensor of more dimensions that `order` is broadcast to."""
    more = rank - len(order)
    return (*range(more), *(dimension + more for dimension in order))


def _named(call: Call, order: Order, *settings: str) -> dict[str, Any]:
    return {name: _name_in_order(str(call.attrs[name]), order) for name in settings}


# ---- element by element ----


@_rule(
    *unary.__all__,
    *(f"nn.{name}" for name in ("gelu", "gelu_tanh", "hardsigmoid", "hardswish", "leakyrelu",
                                "relu", "relu6", "silu") if name in activation.__all__),
    "astype",
)  # fmt: skip
def _unary(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    return Placed([orders[0], *(None for _ in orders[1:])], orders[0])


@_rule(*binary_ops.__all__, "where", "ewise_fma")
def _broadcast(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    """The first operand of most dimensions has its way, unless it is broadcast itself."""
    known = [order for order in orders if isinstance(order, tuple)]
    if len(known) != len(orders):
        return None
    rank = max(len(order) for order in known)
    # The operand of fewest dimensions says it, as it may be one that cannot be spread.
    leader = min((order for order in known if order), key=len, default=())
    wide = _follow(leader, rank)
    args: list[Orders] = []
    for order in known:
        if len(order) not in (0, len(leader), rank):
            return None
        args.append(wide if len(order) == rank else leader if order else ())
    return Placed(args, wide)


# ---- windows and products ----


@_rule("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.conv1d_transpose", "nn.conv2d_transpose")
def _convolution(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    data, weight = orders
    if not isinstance(data, tuple) or not isinstance(weight, tuple):
        return None
    written = [str(call.attrs[name]) for name in ("data_layout", "kernel_layout", "out_layout")]
    wanted = desired.get(str(call.op.name))
    if wanted is None:
        names = [_name_in_order(name, o) for name, o in zip(written, (data, weight, data))]
        result = data
    else:
        names = [wanted[0], wanted[1], wanted[2] if len(wanted) > 2 else wanted[0]]
        data, weight, result = (
            _order_of_name(call, one, other) for one, other in zip(written, names)
        )
    settings = dict(zip(("data_layout", "kernel_layout", "out_layout"), names))
    return Placed([data, weight], result, settings)


@_rule(*(f"nn.{kind}_pool{rank}d" for kind in ("max", "avg", "adaptive_avg") for rank in (1, 2, 3)))
def _pool(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order = orders[0]
    if not isinstance(order, tuple):
        return None
    return Placed([order], order, _named(call, order, "layout", "out_layout"))


@_rule("image.resize2d")
def _resize(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order, wanted = orders[0], desired.get("relax.image.resize2d")
    if not isinstance(order, tuple):
        return None
    if wanted is not None:
        order = _order_of_name(call, str(call.attrs["layout"]), wanted[0])
    return Placed([order, None], order, _named(call, order, "layout"))


# ---- settings that count dimensions ----


@_rule("nn.softmax", "nn.log_softmax", "flip")
def _along_axis(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order = orders[0]
    if not isinstance(order, tuple):
        return None
    return Placed([order], order, {"axis": _axis(call, order)})


def _axis(call: Call, order: Order, name: str = "axis") -> int:
    return order.index(int(setting(call, name)) % len(order))


@_rule("repeat", "cumsum", "cumprod")
def _along_optional_axis(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    # Without an axis the elements count in the order in which they are written.
    return None if setting(call, "axis") is None else _along_axis(call, orders, desired)


@_rule("nn.dropout")
def _dropout(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    return Placed([orders[0]], [orders[0], orders[0]])


@_rule("nn.batch_norm")
def _batch_norm(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order, line = orders[0], (0,)
    if not isinstance(order, tuple):
        return None
    settings = {"axis": _axis(call, order)}
    return Placed([order, line, line, line, line], [order, line, line], settings)


@_rule("nn.layer_norm", "nn.group_norm", "nn.rms_norm")
def _normalisation(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order = orders[0]
    if not isinstance(order, tuple):
        return None
    settings: dict[str, Any] = {
        "axes": [order.index(axis % len(order)) for axis in setting(call, "axes", ())]
    }
    if "channel_axis" in attrs_of(call):
        settings["channel_axis"] = _axis(call, order, "channel_axis")
    elif settings["axes"] != sorted(settings["axes"]):
        # The parameters have the order of the axes that they belong to.
        return None
    return Placed([order, *(as_written(arg.struct_info) for arg in call.args[1:])], order, settings)


@_rule("sum", "prod", "mean", "variance", "std", "max", "min", "all", "any", "argmax", "argmin")
def _reduction(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order = orders[0]
    if not isinstance(order, tuple):
        return None
    axes = setting(call, "axis")
    if axes is None:
        # Positions of extrema count elements in the order in which they are written.
        if str(call.op.name) in ("relax.argmax", "relax.argmin"):
            return None
        return Placed([order], order if setting(call, "keepdims", False) else ())
    gone = {axis % len(order) for axis in (axes if isinstance(axes, tuple) else (axes,))}
    places = [k for k, dimension in enumerate(order) if dimension in gone]
    keeps = setting(call, "keepdims", False)
    return Placed(
        [order],
        order if keeps else _without(order, gone),
        {"axis": places if isinstance(axes, tuple) else places[0]},
    )


def _without(order: Order, gone: set[int]) -> Order:
    """The order that is left of one when dimensions disappear; the others are counted anew."""
    left = [dimension for dimension in order if dimension not in gone]
    return tuple(sorted(left).index(dimension) for dimension in left)


@_rule("squeeze")
def _squeeze(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order, info = orders[0], call.args[0].struct_info
    if not isinstance(order, tuple):
        return None
    axes = setting(call, "axis")
    if axes is None:
        if info.shape is None or not all(isinstance(v, int) for v in _sizes(info.shape)):
            return None
        axes = [k for k, size in enumerate(_sizes(info.shape)) if size == 1]
    gone = {axis % len(order) for axis in axes}
    places = [k for k, dimension in enumerate(order) if dimension in gone]
    return Placed([order], _without(order, gone), {"axis": places})


def _sizes(shape: RelayExpr) -> list[Any]:
    values = shape.struct_info.values
    return [getattr(v, "value", None) for v in values] if values is not None else [None]


@_rule("expand_dims")
def _expand_dims(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order = orders[0]
    if not isinstance(order, tuple):
        return None
    axes = setting(call, "axis")
    rank = len(order) + len(axes)
    new = {axis % rank for axis in axes}
    # The dimensions of the result that those of the operand become, in the operand's order.
    old = [k for k in range(rank) if k not in new]
    moved = iter(old[dimension] for dimension in order)
    return Placed([order], tuple(k if k in new else next(moved) for k in range(rank)))


@_rule("permute_dims")
def _permute_dims(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order = orders[0]
    if not isinstance(order, tuple):
        return None
    axes = setting(call, "axes") or range(len(order) - 1, -1, -1)
    wanted = tuple(axis % len(order) for axis in axes)
    return Placed([order], tuple(range(len(order))), {"axes": axes_between(order, wanted)})


@_rule("concat")
def _concat(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    fields = orders[0]
    if not isinstance(fields, list) or not fields or not isinstance(fields[0], tuple):
        return None
    order: Order = fields[0]
    axis = setting(call, "axis")
    if axis is None or any(not isinstance(o, tuple) or len(o) != len(order) for o in fields):
        return None
    return Placed([[order] * len(fields)], order, {"axis": order.index(axis % len(order))})


@_rule("split")
def _split(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order, info = orders[0], call.struct_info
    if not isinstance(order, tuple) or not isinstance(info, TupleStructInfo):
        return None
    return Placed([order], [order] * len(info.fields), {"axis": _axis(call, order)})


@_rule("strided_slice")
def _strided_slice(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order = orders[0]
    if not isinstance(order, tuple):
        return None
    axes = [order.index(axis % len(order)) for axis in setting(call, "axes")]
    return Placed([order], order, {"axes": axes})


@_rule("tile")
def _tile(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order, times = orders[0], setting(call, "repeats")
    if not isinstance(order, tuple):
        return None
    wide = _follow(order, max(len(order), len(times)))
    times = (1,) * (len(wide) - len(times)) + tuple(times)
    return Placed([order], wide, {"repeats": [times[dimension] for dimension in wide]})


@_rule("nn.pad")
def _pad(call: Call, orders: list[Orders], desired: Desired) -> Placed | None:
    order, widths = orders[0], setting(call, "pad_width")
    if not isinstance(order, tuple) or len(widths) != 2 * len(order):
        return None
    moved = [width for k in order for width in widths[2 * k : 2 * k + 2]]
    return Placed([order, *(None for _ in orders[1:])], order, {"pad_width": moved})
