"""Convolutions between changes of blocks to batches, as convolutions with gaps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm.ir import Op, RelayExpr
from tvm.ir.transform import Pass

from ..expr import Call, Constant
from ..expr_functor import PostOrderMutator
from ..op.registry import find_row, settings_of
from .base import expression_pass

__all__ = ["FlattenAtrousConv"]


def _called(expr: RelayExpr, *names: str) -> dict[str, Any] | None:
    """All settings of a call of one of some operators, None for what is none."""
    if not isinstance(expr, Call) or not isinstance(expr.op, Op) or str(expr.op.name) not in names:
        return None
    row = find_row(expr.op)
    assert row is not None
    return {**row.settings, **settings_of(expr)}


def _numbers(values: Sequence[Any]) -> list[int]:
    return [int(value) for value in values]


class _Flattener(PostOrderMutator):
    def visit_call(self, call: Call) -> RelayExpr:
        found = _flattened(call)
        return super().visit_call(call) if found is None else self.visit(found)


def _flattened(call: Call) -> RelayExpr | None:
    """The convolution with gaps that a chain of three calls equals; None if it equals none."""
    gather = _called(call, "nn.batch_to_space_nd")
    conv = call.args[0] if gather is not None else None
    s = None if conv is None else _called(conv, "nn.conv2d", "qnn.conv2d")
    spread = None if conv is None or s is None else _called(conv.args[0], "nn.space_to_batch_nd")
    if gather is None or conv is None or s is None or spread is None:
        return None
    blocks = _numbers(spread["block_shape"])
    plain = _numbers(s["strides"]) == _numbers(s["dilation"]) == [1, 1]
    if len(blocks) != 2 or _numbers(gather["block_shape"]) != blocks or not plain:
        return None
    # Blocks are taken of the second and third axis.
    if s["data_layout"] != "NHWC" or s["out_layout"] not in ("", "NHWC"):
        return None
    if not _pads_with_zero(conv, float(spread["pad_value"])):
        return None
    before, cut = (
        [_numbers(pair) for pair in sizes] for sizes in (spread["paddings"], gather["crops"])
    )
    own = np.reshape(_four(_numbers(s["padding"])), (2, 2)).T
    padding = np.array(before) + own * np.array(blocks)[:, None] - np.array(cut)
    if (padding < 0).any():
        return None
    changed = {"padding": [int(p) for p in padding.T.flatten()], "dilation": blocks}
    return Call(conv.op, [conv.args[0].args[0], *conv.args[1:]], {**s, **changed})


def _four(padding: list[int]) -> list[int]:
    """Top, left, bottom and right of a border given by one, two or four sizes."""
    return padding * (4 // len(padding))


def _pads_with_zero(conv: Call, value: float) -> bool:
    """Whether what data is padded with is what the convolution's own border is."""
    if str(conv.op.name) == "nn.conv2d":
        return value == 0
    zero = conv.args[2]
    return isinstance(zero, Constant) and bool((zero.data.numpy() == value).all())


def FlattenAtrousConv() -> Pass:
    """Write ``batch_to_space_nd(conv2d(space_to_batch_nd(x)))`` as a convolution with gaps.

    Importers of other frameworks leave that chain for convolutions with a dilation. It is replaced
    in layout NHWC, where what is cut off does not exceed the borders.
    """
    return expression_pass(lambda f, mod: _Flattener().visit(f), 0, "FlattenAtrousConv")
