"""Natural numbers as values of the type "nat" of relay's library: `z`, and `s` of a number."""

from __future__ import annotations

from tvm.ir import RelayExpr
from tvm.runtime.container import ADT

from ..backend.values import ConstructorValue
from ..prelude import Prelude

__all__ = ["add_nat_definitions", "count", "make_nat_expr", "make_nat_value"]


def add_nat_definitions(prelude: Prelude) -> None:
    """Take the type "nat" and its functions into the module of a prelude."""
    prelude.mod.import_from_std("nat.rly")


def make_nat_value(prelude: Prelude, n: int) -> ConstructorValue:
    """The value that stands for a number.

    Raises
    ------
    ValueError : it is negative.
    """
    _, zero, successor = prelude.mod.get_type("nat")
    value = ConstructorValue(zero.tag, [], zero)
    for _ in range(_natural(n)):
        value = ConstructorValue(successor.tag, [value], successor)
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


def count(prelude: Prelude, n: ConstructorValue | ADT) -> int:
    """The number that a value of an executor, or of the machine, stands for."""
    found = 0
    fields = n.fields if isinstance(n, ConstructorValue) else n
    while len(fields):
        n = fields[0]
        fields = n.fields if isinstance(n, ConstructorValue) else n
        found += 1
    return found
