"""The expressions that an importer has made so far, by name."""

from __future__ import annotations

from typing import Any

import tvm
from tvm import error
from tvm.ir import RelayExpr

from ..expr import Var
from .inference import new_var

__all__ = ["ExprTable"]


class ExprTable:
    """Expressions by name, and the values of those that are parameters.

    Attributes
    ----------
    exprs : what was set. params : arrays of the constants that the table named.
    const_ctr : number of the next constant. in_padding : whether a padding is kept.
    """

    def __init__(self) -> None:
        self.exprs: dict[str, RelayExpr] = {}
        self.params: dict[str, Any] = {}
        self.const_ctr = 1
        self.in_padding = False
        self.paddings: Any = None

    def new_const(
        self, value: Any, shape: Any = None, dtype: str = "float32", source_name: str | None = None
    ) -> Var:
        """A parameter of the program with a value of its own.

        Parameters
        ----------
        value : its array, or what makes one. shape : by default that of the value.
        source_name : its name; by default ``_param_1``, ``_param_2``, ...
        """
        name = source_name or f"_param_{self.const_ctr}"
        self.const_ctr += source_name is None
        array = value if hasattr(value, "shape") else tvm.nd.array(value)
        self.params[name] = value
        self.exprs[name] = new_var(
            name, shape=tuple(array.shape) if shape is None else shape, dtype=dtype
        )
        return self.exprs[name]

    def get_expr(self, name: str) -> RelayExpr:
        """What was set under a name.

        Raises
        ------
        KeyError : nothing was.
        """
        if name not in self.exprs:
            raise error.KeyError(f"ExprTable: there is no expression '{name}'")
        return self.exprs[name]

    def set_expr(self, name: str, expr: RelayExpr, force_override: bool = False) -> None:
        """Keep an expression; one that is there already stays unless `force_override`.

        Raises
        ------
        TypeError : it is none.
        """
        if not isinstance(expr, RelayExpr):
            raise error.TypeError(f"ExprTable: '{name}' is to be an expression, got {expr!r}")
        if force_override or name not in self.exprs:
            self.exprs[name] = expr

    def has_expr(self, name: str) -> bool:
        """Whether something was set under a name."""
        return name in self.exprs

    def set_padding(self, paddings: Any) -> None:
        """Keep a padding that belongs to the operator which comes next."""
        self.paddings = paddings
        self.in_padding = True

    def clear_padding(self) -> None:
        """Forget it."""
        self.in_padding = False
