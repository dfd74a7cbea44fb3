"""Parts of a program between marks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tvm.ir import Op, RelayExpr

from ..expr import Call, Var
from ..expr_functor import operands, post_order_visit

__all__ = ["AnnotatedRegion", "AnnotatedRegionSet"]


class AnnotatedRegion:
    """What is computed between marks of its beginning and of its end.

    Attributes
    ----------
    id : its number in the set, from 1 on.
    target : the compiler that its marks name, None where they name none.
    args : the marks of its beginning. rets : those of its end.
    nodes : all of its expressions, with the marks, in the order in which they are computed.
    """

    def __init__(self, number: int) -> None:
        self.id = number
        self.target: str | None = None
        self.args: list[RelayExpr] = []
        self.rets: list[RelayExpr] = []
        self.nodes: list[RelayExpr] = []

    def __repr__(self) -> str:
        return (
            f"AnnotatedRegion({self.id}, target={self.target!r}, {len(self.args)} args, "
            f"{len(self.rets)} rets, {len(self.nodes)} nodes)"
        )


class AnnotatedRegionSet:
    """The regions of an expression.

    Parameters
    ----------
    expr : a function, or what it computes.
    region_begin_op, region_end_op : operators whose calls are the marks, such as those of
        `relay.annotation.compiler_begin` and `compiler_end`.
    """

    def __init__(self, expr: RelayExpr, region_begin_op: Op, region_end_op: Op) -> None:
        self._parent: dict[RelayExpr, RelayExpr] = {}
        order: list[RelayExpr] = []
        post_order_visit(expr, order.append)

        def calls(node: RelayExpr, op: Op) -> bool:
            return isinstance(node, Call) and node.op.same_as(op)

        for node in order:
            if calls(node, region_begin_op):
                self._parent[node] = node
                continue
            for operand in operands(node):
                if operand in self._parent and not calls(operand, region_end_op):
                    self._join(operand, node)
        self._regions: dict[RelayExpr, AnnotatedRegion] = {}
        for node in order:
            root = self._root(node)
            if root is None:
                # A constant or variable inside of a region is no part of it.
                continue
            region = self._regions.setdefault(root, AnnotatedRegion(len(self._regions) + 1))
            region.nodes.append(node)
            begins, ends = calls(node, region_begin_op), calls(node, region_end_op)
            if begins or ends:
                (region.args if begins else region.rets).append(node)
                named: Any = (node.attrs or {}).get("compiler")
                region.target = region.target if named is None else str(named)

    def _root(self, node: RelayExpr) -> RelayExpr | None:
        if node not in self._parent:
            return None
        while not self._parent[node].same_as(node):
            node = self._parent[node]
        return node

    def _join(self, known: RelayExpr, node: RelayExpr) -> None:
        self._parent.setdefault(node, node)
        first, second = self._root(known), self._root(node)
        assert first is not None and second is not None
        self._parent[second] = first

    def __len__(self) -> int:
        return len(self._regions)

    def __iter__(self) -> Iterator[AnnotatedRegion]:
        return iter(self._regions.values())

    def get_region(self, expr: RelayExpr) -> AnnotatedRegion | None:
        """The region of an expression, None for what is in none."""
        root = None if isinstance(expr, Var) else self._root(expr)
        return None if root is None else self._regions[root]
