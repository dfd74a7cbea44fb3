"""Borders of zeros as part of the convolution that reads them."""

from __future__ import annotations

from tvm.ir import IRModule, RelayExpr
from tvm.topi.utils import as_padding

from .. import op
from ..expr import Call, Var
from ..rewriter import FunctionRewriter, map_functions
from .graph_pass import graph_pass

__all__ = ["FoldPad"]


class _PadFolder(FunctionRewriter):
    def rewrite(self, var: Var, value: RelayExpr) -> RelayExpr:
        if not isinstance(value, Call) or not op.has_op(value.op):
            return value
        if str(value.op.name) != "relax.nn.conv2d":
            return value
        settings = op.attrs_of(value)
        pad = self.values.get(value.args[0])
        if not isinstance(pad, Call):
            return value
        borders = _zero_borders(pad)
        if borders is None:
            return value
        layout = str(settings["data_layout"])
        image = [layout.index("H"), layout.index("W")] if len(layout) == 4 else []
        if any(borders[k] != (0, 0) for k in range(4) if k not in image):
            return value
        (top, bottom), (left, right) = (borders[k] for k in image)
        more = (top, left, bottom, right)
        padding = [a + b for a, b in zip(as_padding(settings.pop("padding")), more)]
        return op.nn.conv2d(pad.args[0], value.args[1], padding=padding, **settings)


def _zero_borders(value: Call) -> list[tuple[int, int]] | None:
    """What a call adds in front of and behind each of four dimensions, if it is all zeros."""
    if not op.has_op(value.op) or str(value.op.name) != "relax.nn.pad":
        return None
    settings = op.attrs_of(value)
    sizes = [int(size) for size in settings["pad_width"]]
    if settings.get("pad_mode", "constant") != "constant" or settings.get("pad_value", 0.0) != 0:
        return None
    if len(sizes) != 8 or min(sizes) < 0:
        return None
    return list(zip(sizes[::2], sizes[1::2]))


@graph_pass("relax.FoldPad")
def FoldPad(mod: IRModule) -> IRModule:
    """The module with the zeros around images that convolutions read left to these.

    A pad that others read as well stays for them; one that nobody reads is left for dead code
    elimination.
    """
    return map_functions(mod, lambda func: _PadFolder(func).run())
