"""Natural numbers as values of the type "nat" of relay's library: `z`, and `s` of a number."""

from __future__ import annotations

from tvm.ir import RelayExpr
from tvm.runtime.container import ADT

from ..prelude import Prelude

__all__ = ["add_nat_definitions", "count", "make_nat_expr", "make_nat_value"]


def add_nat_definitions(prelude: Prelude) -> None:
    """Take the type "nat" and its functions into the module of a prelude."""
    prelude.mod.import_from_std("nat.rly")


def make_nat_value(prelude: Prelude, n: int) -> ADT:
    """The value that stands for a number.

    Raises
    ------
    ValueError : it is negative.
    """
    _, zero, successor = prelude.mod.get_type("nat")
    value = ADT(zero.tag, [])
    for _ in range(_natural(n)):
        value = ADT(successor.tag, [value])
    return value


def make_nat_expr(prelude: Prelude, n: int) -> RelayExpr:
    """The expression that gives a number.

    Raises
    ------
    ValueError : it is negative.
    """
    _, zero, successor = prelude.mod.get_type("nat")
    value = zero()
    for _ in range(_natural(n)):
        value = successor(value)
    return value


def _natural(n: int) -> int:
    if n < 0:
        raise ValueError(f"relay.testing.nat: numbers are not negative, got {n}")
    return n


def count(prelude: Prelude, n: ADT) -> int:
    """The number that a value stands for."""
    found = 0
    while len(n):
        n = n[0]
        found += 1
    return found
