"""Sizes of an exported program that vary from call to call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.export.graph_signature import InputKind

from tvm import tir
from tvm.ir import PrimExpr

from .size_expressions import extent_of, number_of

__all__ = ["DynamicSizes", "Sizes", "concrete"]

Sizes = Mapping[sympy.Symbol, "int | PrimExpr"]
"""What the symbols of a program are: numbers, or, where sizes stay open, expressions of extents."""


def concrete(value: Any, sizes: Sizes) -> Any:
    """A number or truth value of the export with the program's sizes put in.

    A size that depends on open ones is an int64 expression over their variables, and so are numbers
    and truth values of float64 and bool.

    Raises
    ------
    KeyError : it depends on something that has no size, such as an element of a tensor.
    """
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value
    expression = value.node.expr
    known = expression.xreplace(
        {s: sympy.Integer(n) for s, n in sizes.items() if isinstance(n, int)}
    )
    if not known.free_symbols:
        if isinstance(value, torch.SymBool):
            return bool(known)
        return int(known) if isinstance(value, torch.SymInt) else float(known)
    if not known.free_symbols <= sizes.keys():
        raise KeyError(f"{value} is not known")
    variables = {s: n for s, n in sizes.items() if not isinstance(n, int)}
    if isinstance(value, torch.SymInt):
        return extent_of(known, variables)
    return number_of(known, variables)


class DynamicSizes:
    """The symbols in the shapes of a program's inputs, and what values they may have.

    Parameters
    ----------
    program : exported with ``dynamic_shapes``, or without, which gives no symbols.
    """

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        placeholders = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
        self._inputs: list[tuple[str, list[Any]]] = []
        for spec in program.graph_signature.input_specs:
            value = placeholders[spec.arg.name].meta.get("val")
            if spec.kind is InputKind.USER_INPUT and isinstance(value, torch.Tensor):
                self._inputs.append((spec.arg.name, [_expression(n) for n in value.shape]))
        self._ranges = program.range_constraints
        self.symbols: list[sympy.Symbol] = []
        for _, shape in self._inputs:
            for extent in shape:
                for symbol in sorted(getattr(extent, "free_symbols", ()), key=str):
                    if symbol not in self.symbols:
                        self.symbols.append(symbol)

    def variables(self) -> dict[sympy.Symbol, PrimExpr]:
        """For each symbol what it is in a program whose sizes stay open.

        One that is an extent of an input is a variable of its name. Of one that inputs have only as
        twice it, or one more, that extent is the variable.

        Raises
        ------
        ValueError : no extent of an input gives a symbol a value.
        """
        shapes = [extent for _, shape in self._inputs for extent in shape]
        found: dict[sympy.Symbol, PrimExpr] = {}
        for symbol in self.symbols:
            if symbol in shapes:
                found[symbol] = tir.SizeVar(str(symbol), "int64")
        for symbol in self.symbols:
            if symbol not in found:
                found[symbol] = _solved(symbol, shapes)
        return found

    def bounds(self, sizes: Sizes) -> dict[str, dict[str, int]]:
        """Attributes of a function of open sizes: what its variables, by name, are at least and at
        most, where the export says so."""
        lower: dict[str, int] = {}
        upper: dict[str, int] = {}
        for symbol, variable in sizes.items():
            allowed = self._ranges.get(symbol)
            if allowed is None or not isinstance(variable, tir.Var):
                continue
            # The export says two of every size that it takes for neither 0 nor 1.
            if allowed.lower.is_Integer and allowed.lower > 2:
                lower[str(variable.name)] = int(allowed.lower)
            if allowed.upper.is_Integer and allowed.upper < _UNBOUNDED:
                upper[str(variable.name)] = int(allowed.upper)
        attrs = {"tir_var_lower_bound": lower, "tir_var_upper_bound": upper}
        return {name: bounds for name, bounds in attrs.items() if bounds}

    def of(self, shapes: Sequence[Sequence[int]]) -> dict[sympy.Symbol, int]:
        """The values of the symbols for inputs of some shapes.

        Raises
        ------
        ValueError : a size is out of its range, or two sizes do not fit together; the message has
            what is allowed and what came.
        """
        sizes: dict[sympy.Symbol, int] = {}
        for (name, expected), given in zip(self._inputs, shapes):
            if len(expected) != len(given):
                self._refuse(name, expected, given)
            for axis, (extent, n) in enumerate(zip(expected, given)):
                unknown = [s for s in getattr(extent, "free_symbols", ()) if s not in sizes]
                if len(unknown) == 1:
                    self._solve(name, axis, extent, unknown[0], int(n), sizes)
        for (name, expected), given in zip(self._inputs, shapes):
            for extent, n in zip(expected, given):
                value = (
                    extent if isinstance(extent, int) else int(extent.xreplace(_integers(sizes)))
                )
                if value != n:
                    self._refuse(name, expected, given)
        return sizes

    def _solve(
        self,
        name: str,
        axis: int,
        extent: sympy.Expr,
        symbol: sympy.Symbol,
        n: int,
        sizes: dict[sympy.Symbol, int],
    ) -> None:
        known = extent.xreplace(_integers(sizes))
        # Derived sizes are linear: twice another, or one more.
        plain = sympy.Symbol("n", integer=True)
        found = sympy.solve(sympy.Eq(known.xreplace({symbol: plain}), n), plain)
        allowed = self._ranges.get(symbol)
        value = int(found[0]) if found and found[0].is_Integer else None
        inside = value is not None and (
            allowed is None or bool(allowed.lower <= value) and bool(value <= allowed.upper)
        )
        if not inside:
            what = f"in {_interval(allowed)}"
            if not isinstance(extent, sympy.Symbol):
                what = f"{extent} with {symbol} {what}"
            raise ValueError(
                f"compiled network: dimension {axis} of input '{name}' must be {what}, got {n}; "
                "compile with other dynamic_shapes for more"
            )
        assert value is not None
        sizes[symbol] = value

    @staticmethod
    def _refuse(name: str, expected: Sequence[Any], given: Sequence[int]) -> None:
        shape = ", ".join(map(str, expected))
        raise ValueError(
            f"compiled network: input '{name}' must have the shape ({shape}), got {tuple(given)}; "
            "equal names stand for equal sizes"
        )


# Exports of older versions have this for no bound.
_UNBOUNDED = 2**62


def _solved(symbol: sympy.Symbol, extents: Sequence[Any]) -> PrimExpr:
    """A symbol in terms of an extent that is a multiple of it and a number."""
    for extent in extents:
        if getattr(extent, "free_symbols", None) != {symbol}:
            continue
        polynomial = sympy.Poly(extent, symbol)
        if polynomial.degree() == 1 and all(c.is_Integer for c in polynomial.all_coeffs()):
            factor, rest = (int(c) for c in polynomial.all_coeffs())
            return tir.floordiv(tir.SizeVar(f"{symbol}_extent", "int64") - rest, factor)
    raise ValueError(
        f"relax.frontend.torch: no extent of an input gives the size {symbol} a value; export with "
        "dynamic_shapes that have it as an extent"
    )


def _expression(extent: Any) -> Any:
    if not isinstance(extent, torch.SymInt):
        return int(extent)
    expression = extent.node.expr
    return int(expression) if expression.is_Integer else expression


def _interval(allowed: Any) -> str:
    """A range of sizes as text."""
    low = max(0, int(allowed.lower)) if allowed is not None else 0
    finite = allowed is not None and allowed.upper.is_Integer
    return f"[{low}, {int(allowed.upper)}]" if finite else f"[{low}, ...)"


def _integers(sizes: Sizes) -> dict[sympy.Symbol, sympy.Integer]:
    return {symbol: sympy.Integer(n) for symbol, n in sizes.items()}
