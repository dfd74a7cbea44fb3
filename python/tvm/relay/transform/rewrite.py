"""Calls rewritten one by one: for a target, into fewer operators, out of fused functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tvm import error
from tvm.ir import IRModule, Op, RelayExpr
from tvm.ir.transform import Pass

from ..binding import bind
from ..expr import Call, Constant, Function
from ..expr_functor import PostOrderMutator
from ..op.registry import make, settings_of
from .base import expression_pass

__all__ = ["DefuseOps", "FoldExplicitPadding", "Legalize"]


class _Legalizer(PostOrderMutator):
    def __init__(self, attr: str) -> None:
        super().__init__()
        self._attr = attr

    def visit_call(self, call: Call) -> RelayExpr:
        new = super().visit_call(call)
        rule = call.op.get_attr(self._attr) if isinstance(call.op, Op) else None
        if rule is None:
            return new
        assert isinstance(new, Call)
        types = [arg.checked_type for arg in call.args]
        found = rule(call.attrs, list(new.args), [*types, call.checked_type])
        if found is None:
            return new
        if not isinstance(found, RelayExpr):
            raise error.TypeError(
                f"relay.Legalize: the rule of {call.op.name} gives a {type(found).__name__}; it "
                "gives an expression, or None to leave the call"
            )
        return found


def Legalize(legalize_map_attr_name: str = "FTVMLegalize") -> Pass:
    """Rewrite calls by what ``relay.op.register_legalize`` says of their operators.

    Parameters
    ----------
    legalize_map_attr_name : attribute of operators that has the rules.
    """
    return expression_pass(
        lambda f, mod: _Legalizer(legalize_map_attr_name).visit(f), 1, "Legalize"
    )


_WINDOWS = {
    **{f"nn.conv{rank}d": ("data_layout", rank) for rank in (1, 2, 3)},
    **{f"nn.{kind}_pool{rank}d": ("layout", rank) for kind in ("max", "avg") for rank in (1, 2, 3)},
    "qnn.conv2d": ("data_layout", 2),
}


def _neutral(call: Call, dtype: str) -> float | None:
    """What a border of the operator itself is made of; None if that is no number."""
    name = str(call.op.name)
    if name == "qnn.conv2d":
        # Its border stands for real zeros.
        zero = call.args[2]
        is_number = isinstance(zero, Constant) and zero.data.numpy().size == 1
        return float(zero.data.numpy().item()) if is_number else None
    if "max_pool" not in name:
        return 0.0
    return float(np.finfo(dtype).min if dtype.startswith("float") else np.iinfo(dtype).min)


class _PadFolder(PostOrderMutator):
    def visit_call(self, call: Call) -> RelayExpr:
        new = super().visit_call(call)
        assert isinstance(new, Call)
        name = str(new.op.name) if isinstance(new.op, Op) else ""
        if name not in _WINDOWS:
            return new
        pad = new.args[0]
        if not (isinstance(pad, Call) and isinstance(pad.op, Op) and str(pad.op.name) == "nn.pad"):
            return new
        key, rank = _WINDOWS[name]
        given, widths = settings_of(new), settings_of(pad)
        value = pad.args[1]
        dtype = str(call.args[0].checked_type.dtype)
        letters = "DHW"[3 - rank :]
        layout = given[key]
        if widths["pad_mode"] != "constant" or not isinstance(value, Constant):
            return new
        if len(layout) != rank + 2 or value.data.numpy().item() != _neutral(new, dtype):
            return new
        spatial = [layout.index(letter) for letter in letters]
        others = [w for k, w in enumerate(widths["pad_width"]) if k not in spatial]
        counted = "avg_pool" in name and not given["count_include_pad"]
        if any(sum(w) for w in others) or (counted and any(given["padding"])):
            # A mean that leaves its own border out counts the one that was put there before.
            return new
        own = list(given["padding"])
        own = own * 2 if len(own) == rank else own
        before = [own[k] + widths["pad_width"][axis][0] for k, axis in enumerate(spatial)]
        behind = [own[k + rank] + widths["pad_width"][axis][1] for k, axis in enumerate(spatial)]
        given["padding"] = before + behind
        if "avg_pool" in name:
            given["count_include_pad"] = True
        return make(name, [pad.args[0], *new.args[1:]], **given)


def FoldExplicitPadding() -> Pass:
    """Make a border that was put around the data part of the convolution or pooling behind it."""
    return expression_pass(lambda f, mod: _PadFolder().visit(f), 0, "FoldExplicitPadding")


class _Defuser(PostOrderMutator):
    def visit_call(self, call: Call) -> RelayExpr:
        new = super().visit_call(call)
        assert isinstance(new, Call)
        func = new.op
        if isinstance(func, Function) and func.attrs is not None and "Primitive" in func.attrs:
            return bind(func.body, dict(zip(func.params, new.args)))
        return new


def DefuseOps() -> Pass:
    """Write the bodies of functions that are one kernel where they are called."""

    def rewrite(func: Function, mod: IRModule) -> Any:
        return _Defuser().visit(func)

    return expression_pass(rewrite, 3, "DefuseOps")
