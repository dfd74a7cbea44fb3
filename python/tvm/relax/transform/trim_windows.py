"""Windows of convolutions without the rows that only ever read borders of zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tvm.ir import IRModule, RelayExpr
from tvm.topi.utils import as_pads

from .. import op
from ..expr import Call, Constant, Var
from ..rewriter import FunctionRewriter, map_functions
from ..struct_info import settled_shape
from .graph_pass import graph_pass

__all__ = ["TrimWindows"]

_CONVOLUTIONS = {
    "relax.nn.conv1d": op.nn.conv1d,
    "relax.nn.conv2d": op.nn.conv2d,
    "relax.nn.conv3d": op.nn.conv3d,
}


class _Trimmer(FunctionRewriter):
    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, Call) or not op.has_op(value.op):
            return value
        convolution = _CONVOLUTIONS.get(str(value.op.name))
        if convolution is None or not isinstance(value.args[1], Constant):
            return value
        data, weight = value.args
        settings = op.attrs_of(value)
        source, window, result = (settled_shape(each) for each in (data, weight, value))
        if isinstance(settings["padding"], str):
            return value
        layouts = [str(settings[key] or "") for key in ("data_layout", "kernel_layout")]
        layouts.append(str(settings.get("out_layout") or layouts[0]))
        if source is None or window is None or result is None:
            return value
        if not all(layout.isalpha() and layout.isupper() for layout in layouts):
            return value
        letters = [letter for letter in "DHW" if letter in layouts[0]]
        count = len(letters)
        pads = [int(n) for n in as_pads(settings["padding"], count)]
        steps, gaps = (_each(settings[key], count) for key in ("strides", "dilation"))
        kept = [
            _kept_rows(
                source[layouts[0].index(letter)],
                window[layouts[1].index(letter)],
                result[layouts[2].index(letter)],
                (pads[k], pads[count + k]),
                steps[k],
                gaps[k],
            )
            for k, letter in enumerate(letters)
        ]
        rows = [window[layouts[1].index(letter)] for letter in letters]
        if all(rows_of == (0, n) for rows_of, n in zip(kept, rows)):
            return value
        part = [slice(None)] * len(window)
        for letter, (first, last) in zip(letters, kept):
            part[layouts[1].index(letter)] = slice(first, last)
        for k, ((first, last), n) in enumerate(zip(kept, rows)):
            pads[k] -= first * gaps[k]
            pads[count + k] -= (n - last) * gaps[k]

        def cut(array: np.ndarray) -> np.ndarray:
            return np.ascontiguousarray(array[tuple(part)])

        settings["padding"] = pads
        return convolution(data, weight.rearranged(cut), **settings)


def _each(value: object, count: int) -> list[int]:
    numbers = [int(n) for n in value] if isinstance(value, Sequence) else [int(str(value))]
    return numbers * count if len(numbers) == 1 else numbers


def _kept_rows(
    extent: int, rows: int, results: int, pads: tuple[int, int], step: int, gap: int
) -> tuple[int, int]:
    """The first row of a window that reads data, and the one behind the last."""

    def reads(row: int) -> bool:
        return any(0 <= y * step - pads[0] + row * gap < extent for y in range(results))

    first, last = 0, rows
    # The border shrinks by what is left out, and cannot be less than nothing.
    while first < rows - 1 and not reads(first) and pads[0] >= (first + 1) * gap:
        first += 1
    while last > first + 1 and not reads(last - 1) and pads[1] >= (rows - last + 1) * gap:
        last -= 1
    return first, last


@graph_pass("TrimWindows")
def TrimWindows(mod: IRModule) -> IRModule:
    """The module with the windows of convolutions as large as data is read.

    Where a dilation is as wide as the image, as in spatial pyramids (DeepLab), all rows of a window
    but one lie in the border for every result.
    """
    return map_functions(mod, lambda func: _Trimmer(func).run())
