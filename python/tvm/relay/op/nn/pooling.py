"""Pooling over windows, to given sizes, and over everything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvm import topi
from tvm.ir import RelayExpr, TensorType, Type
from tvm.relax.op.precision import computed_in_float32

from ...expr import Call
from ..registry import REQUIRED, OpPattern, define, make
from ..shapes import extent_number, tensor
from .windows import Blocked, Size, pads_of, sizes_of, window_extent

__all__: list[str] = []

_SPACE = {1: "W", 2: "HW", 3: "DHW"}


def _blocked(compute: Any, rank: int) -> Any:
    """A computation over plain layouts for those that are blocked too."""
    plain = "NC" + _SPACE[rank]

    def run(x: Any, layout: str, out_layout: str, **s: Any) -> Any:
        known = layout in (plain, "N" + _SPACE[rank] + "C")
        inner = layout if known else plain
        y = compute(x if known else topi.layout_transform(x, layout, plain), inner, **s)
        wanted = out_layout or layout
        return y if wanted == inner else topi.layout_transform(y, inner, wanted)

    return run


def _window_compute(kind: str, rank: int) -> Any:
    pool = getattr(topi.nn, f"pool{rank}d")

    def run(
        x: Any,
        layout: str,
        pool_size: Any,
        strides: Any,
        dilation: Any,
        padding: Any,
        ceil_mode: bool,
        count_include_pad: bool = True,
    ) -> Any:
        pads = pads_of("relay.nn.pool", padding, rank)
        return pool(
            x,
            list(pool_size),
            list(strides),
            list(dilation),
            pads,
            kind,
            ceil_mode,
            layout,
            count_include_pad,
        )

    compute = _blocked(run, rank)
    return computed_in_float32(compute) if kind == "avg" else compute


def _window_rule(name: str, rank: int) -> Any:
    where = f"relay.{name}"

    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        data = tensor(where, types[0])
        layout = Blocked(where, s["layout"], "NC" + _SPACE[rank])
        batch, channels, *space = layout.forward(data.shape, where)
        pads = pads_of(where, s["padding"], rank)
        places = [
            window_extent(
                e if (n := extent_number(e)) is None else n,
                s["pool_size"][k],
                s["strides"][k],
                pads[k] + pads[k + rank],
                s["dilation"][k],
                s["ceil_mode"],
            )
            for k, e in enumerate(space)
        ]
        out = Blocked(where, s["out_layout"] or s["layout"], "NC" + _SPACE[rank])
        return TensorType(out.backward([batch, channels, *places]), str(data.dtype))

    return rule


def _publish(function: Any, name: str, doc: str) -> None:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    globals()[name] = function
    __all__.append(name)


def _window_pool(kind: str, rank: int) -> None:
    name = f"nn.{kind}_pool{rank}d"
    counted = {"count_include_pad": False} if kind == "avg" else {}
    define(
        name,
        _window_compute(kind, rank),
        OpPattern.OUT_FUSABLE,
        num_inputs=1,
        rule=_window_rule(name, rank),
        settings={
            "pool_size": REQUIRED,
            "strides": (1,) * rank,
            "dilation": (1,) * rank,
            "padding": (0,) * rank,
            "layout": "NC" + _SPACE[rank],
            "out_layout": "",
            "ceil_mode": False,
            **counted,
        },
    )
    plain = "NC" + _SPACE[rank]

    def call(
        data: RelayExpr,
        pool_size: Size = 1,
        strides: Size = 1,
        dilation: Size = 1,
        padding: Size = 0,
        layout: str = plain,
        out_layout: str = "",
        ceil_mode: bool = False,
        **more: Any,
    ) -> Call:
        return make(
            name,
            [data],
            pool_size=sizes_of(pool_size, rank),
            strides=sizes_of(strides, rank),
            dilation=sizes_of(dilation, rank),
            padding=pads_of(f"relay.{name}", padding, rank),
            layout=layout,
            out_layout=out_layout,
            ceil_mode=ceil_mode,
            **more,
        )

    _publish(
        call,
        name[3:],
        f"""{"Largest element" if kind == "max" else "Mean"} of every window.

    Parameters
    ----------
    padding : one size, one for each spatial axis, or all before and then all behind.
    layout, out_layout : such as {plain}; the result is laid out as the data by default.
    ceil_mode : whether the last window may reach beyond the border.
    count_include_pad : of means, whether the border counts.
    """,
    )


def _sized_pool(kind: str, rank: int) -> None:
    where = f"nn.adaptive_{kind}_pool{rank}d"
    pool = topi.nn.adaptive_pool if rank == 2 else getattr(topi.nn, f"adaptive_pool{rank}d")

    def sizes(space: Sequence[Any], output_size: Any) -> list[Any]:
        if not output_size:
            return list(space)
        return [e if size is None else size for e, size in zip(space, output_size)]

    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        data = tensor(where, types[0])
        layout = Blocked(where, s["layout"], "NC" + _SPACE[rank])
        batch, channels, *space = layout.forward(data.shape, where)
        out = Blocked(where, s["out_layout"] or s["layout"], "NC" + _SPACE[rank])
        shape = out.backward([batch, channels, *sizes(space, s["output_size"])])
        return TensorType(shape, str(data.dtype))

    def run(x: Any, layout: str, output_size: Any) -> Any:
        space = Blocked(where, layout, "NC" + _SPACE[rank]).forward(x.shape)[2:]
        target = [int(e) for e in sizes(space, output_size)]
        return pool(x, target if rank > 1 else target[0], kind, layout)

    compute = _blocked(run, rank)
    define(
        where,
        computed_in_float32(compute) if kind == "avg" else compute,
        OpPattern.OUT_FUSABLE,
        num_inputs=1,
        rule=rule,
        settings={"output_size": (), "layout": "NC" + _SPACE[rank], "out_layout": ""},
    )
    plain = "NC" + _SPACE[rank]

    def call(
        data: RelayExpr, output_size: Any = None, layout: str = plain, out_layout: str = ""
    ) -> Call:
        if output_size is None:
            size: list[Any] = []
        else:
            size = [output_size] * rank if isinstance(output_size, int) else list(output_size)
            size = size * rank if len(size) == 1 else size
        return make(where, [data], output_size=size, layout=layout, out_layout=out_layout)

    _publish(call, where[3:], "Pooling whose windows divide the axes into a number of places each.")


def _whole_pool(kind: str, rank: int) -> None:
    name = f"nn.global_{kind}_pool{rank}d"
    plain = "NC" + _SPACE[rank]

    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Any) -> Type:
        data = tensor(f"relay.{name}", types[0])
        layout = Blocked(f"relay.{name}", s["layout"], plain)
        batch, channels, *_ = layout.forward(data.shape, f"relay.{name}")
        out = Blocked(f"relay.{name}", s["out_layout"] or s["layout"], plain)
        return TensorType(out.backward([batch, channels] + [1] * rank), str(data.dtype))

    def run(x: Any, layout: str) -> Any:
        axes = [layout.index(axis) for axis in _SPACE[rank]]
        return (topi.max if kind == "max" else topi.mean)(x, axes, True)

    compute = _blocked(run, rank)
    define(
        name,
        computed_in_float32(compute) if kind == "avg" else compute,
        OpPattern.OUT_FUSABLE,
        num_inputs=1,
        rule=rule,
        settings={"layout": plain, "out_layout": ""},
    )

    def call(data: RelayExpr, layout: str = plain, out_layout: str = "") -> Call:
        return make(name, [data], layout=layout, out_layout=out_layout)

    _publish(call, name[3:], "Pooling over all places of the spatial axes.")


for _kind in ("max", "avg"):
    for _rank in (1, 2, 3):
        _window_pool(_kind, _rank)
        _sized_pool(_kind, _rank)
        _whole_pool(_kind, _rank)


if TYPE_CHECKING:
    # The operators are entered by name.
    def __getattr__(name: str) -> Any: ...
