"""Borders of zeros as part of the convolution that reads them."""

from __future__ import annotations

from tvm.ir import IRModule, RelayExpr
from tvm.topi.utils import as_pads

from .. import op
from ..expr import Call, Var
from ..rewriter import FunctionRewriter, map_functions
from .graph_pass import graph_pass

__all__ = ["FoldPad"]


_CONVOLUTIONS = {
    "relax.nn.conv1d": op.nn.conv1d,
    "relax.nn.conv2d": op.nn.conv2d,
    "relax.nn.conv3d": op.nn.conv3d,
}


class _PadFolder(FunctionRewriter):
    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, Call) or not op.has_op(value.op):
            return value
        convolution = _CONVOLUTIONS.get(str(value.op.name))
        if convolution is None:
            return value
        settings = op.attrs_of(value)
        pad = self.values.get(value.args[0])
        if not isinstance(pad, Call):
            return value
        borders = _zero_borders(pad)
        layout = str(settings["data_layout"])
        if borders is None or len(borders) != len(layout) or not layout.isalpha():
            return value
        image = [layout.index(letter) for letter in "DHW" if letter in layout]
        if any(pair != (0, 0) for k, pair in enumerate(borders) if k not in image):
            return value
        more = [borders[k][side] for side in range(2) for k in image]
        old = as_pads(settings.pop("padding"), len(image))
        padding = [a + b for a, b in zip(old, more)]
        return convolution(pad.args[0], value.args[1], padding=padding, **settings)


def _zero_borders(value: Call) -> list[tuple[int, int]] | None:
    """What a call adds in front of and behind each dimension, if it is all zeros."""
    if not op.has_op(value.op) or str(value.op.name) != "relax.nn.pad":
        return None
    settings = op.attrs_of(value)
    sizes = [int(size) for size in settings["pad_width"]]
    if settings.get("pad_mode", "constant") != "constant" or settings.get("pad_value", 0.0) != 0:
        return None
    if min(sizes, default=0) < 0:
        return None
    return list(zip(sizes[::2], sizes[1::2]))


@graph_pass("FoldPad")
def FoldPad(mod: IRModule) -> IRModule:
    """The module with the zeros around images that convolutions read left to these.

    A pad that others read as well stays for them; one that nobody reads is left for dead code
    elimination.
    """
    return map_functions(mod, lambda func: _PadFolder(func).run())
