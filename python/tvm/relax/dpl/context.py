"""Patterns that are found together in a dataflow block."""

from __future__ import annotations

from typing import Any

from tvm import error
from tvm.ir import RelayExpr

from ..expr import Call, DataflowBlock, DataflowVar, Tuple, TupleGetItem, Var
from ..rewriter import uses_of
from .constraints import Constraint, open_contexts
from .match import Matcher, same_extents
from .pattern import (
    CallPattern,
    DFPattern,
    SameShapeConstraint,
    TupleGetItemPattern,
    TuplePattern,
    WildcardPattern,
    is_commutative,
)

__all__ = ["PatternContext"]


class PatternContext:
    """A scope in which patterns are related to each other, to be found together.

    >>> with PatternContext() as ctx:
    ...     x = wildcard()
    ...     first = is_op("relax.matmul")(x, wildcard())
    ...     second = is_op("relax.matmul")(x, wildcard())
    >>> matched = ctx.match_dfb(mod["main"].body.blocks[0])

    Parameters
    ----------
    incremental : whether it begins with what the context around it says.
    """

    _open: list[PatternContext] = []

    def __init__(self, incremental: bool = False) -> None:
        self.constraints: list[Any] = []
        if incremental:
            if not open_contexts:
                raise error.ValueError(
                    "PatternContext: incremental=True goes on with the context around it, and "
                    "there is none"
                )
            self.constraints.extend(open_contexts[-1])

    def __enter__(self) -> PatternContext:
        open_contexts.append(self.constraints)
        PatternContext._open.append(self)
        return self

    def __exit__(self, *error_info: object) -> None:
        open_contexts.pop()
        PatternContext._open.pop()

    @staticmethod
    def current() -> PatternContext:
        """The innermost open context.

        Raises
        ------
        ValueError : there is none.
        """
        if not PatternContext._open:
            raise error.ValueError("PatternContext.current: no context is open")
        return PatternContext._open[-1]

    def match_dfb(self, dfb: DataflowBlock) -> dict[DFPattern, Var] | None:
        """The variables that patterns of this context stand for in a block; None if there are none.

        Patterns that are calls, tuples or fields stand for different variables each. Those of
        operands may stand for variables from outside of the block.
        """
        return _Search(self.constraints, dfb).run()


class _Search:
    """Tries variables for one pattern after the other, and goes back where none fits."""

    def __init__(self, constraints: list[Any], block: DataflowBlock) -> None:
        self.edges = [c for c in constraints if isinstance(c, Constraint)]
        self.shapes = [c for c in constraints if isinstance(c, SameShapeConstraint)]
        self.values: dict[Var, RelayExpr] = {b.var: b.value for b in block.bindings}
        self.users: dict[Var, list[Var]] = {}
        for binding in block.bindings:
            for var in dict.fromkeys(uses_of(binding.value)):
                self.users.setdefault(var, []).append(binding.var)
        named = [p for edge in self.edges for p in (edge.producer, edge.consumer)]
        named += [p for same in self.shapes for p in same.args]
        self.patterns: list[DFPattern] = list(dict.fromkeys(named))

    def run(self) -> dict[DFPattern, Var] | None:
        if not self.patterns:
            return None
        found = self._extend({})
        if found is None:
            return None
        return {p: e for p, e in found.items() if isinstance(e, Var)}

    def _extend(self, found: dict[Any, RelayExpr]) -> dict[Any, RelayExpr] | None:
        if not self._consistent(found):
            return None
        pattern = self._next(found)
        if pattern is None:
            return found
        for var in self._candidates(pattern, found):
            matcher = Matcher(self.values, found)
            if matcher.match(pattern, var):
                whole = self._extend(matcher.found)
                if whole is not None:
                    return whole
        return None

    def _next(self, found: dict[Any, RelayExpr]) -> DFPattern | None:
        """The pattern to look for now: one that is read by nothing that is still to be found.

        Finding a call finds its operands, so it goes first; what can be anything comes last.
        """
        missing = [p for p in self.patterns if p not in found]
        read = {edge.producer for edge in self.edges if edge.consumer in missing}
        last = [p for p in missing if p not in read] or missing
        specific = [p for p in last if not isinstance(p, WildcardPattern)]
        return next(iter(specific or last), None)

    def _candidates(self, pattern: DFPattern, found: dict[Any, RelayExpr]) -> list[Var]:
        for edge in self.edges:
            if edge.producer is pattern and edge.consumer in found:
                consumer = found[edge.consumer]
                value = self.values.get(consumer) if isinstance(consumer, Var) else consumer
                return [] if value is None else list(dict.fromkeys(uses_of(value)))
        for edge in self.edges:
            if edge.consumer is pattern and edge.producer in found:
                producer = found[edge.producer]
                return self.users.get(producer, []) if isinstance(producer, Var) else []
        return list(self.values)

    def _consistent(self, found: dict[Any, RelayExpr]) -> bool:
        own = [
            expr
            for pattern, expr in found.items()
            if isinstance(pattern, CallPattern | TuplePattern | TupleGetItemPattern)
        ]
        distinct = all(not a.same_as(b) for i, a in enumerate(own) for b in own[:i])
        return (
            distinct
            and all(
                self._holds(edge, found)
                for edge in self.edges
                if edge.producer in found and edge.consumer in found
            )
            and all(self._one_shape(same, found) for same in self.shapes)
        )

    def _holds(self, edge: Constraint, found: dict[Any, RelayExpr]) -> bool:
        producer, consumer = found[edge.producer], found[edge.consumer]
        value = self.values.get(consumer, consumer) if isinstance(consumer, Var) else consumer
        operands = _operands_of(value)
        # Operands of sums and products may have been found the other way round.
        if edge.index >= 0 and not is_commutative(value):
            operands = operands[edge.index : edge.index + 1]
        if not any(producer.same_as(e) for e in operands) and not any(
            producer.same_as(var) for e in operands for var in uses_of(e)
        ):
            return False
        if not edge.only or not isinstance(producer, Var):
            return True
        users = self.users.get(producer, [])
        local = isinstance(producer, DataflowVar) or producer not in self.values
        return local and all(user.same_as(consumer) for user in users)

    def _one_shape(self, same: SameShapeConstraint, found: dict[Any, RelayExpr]) -> bool:
        shapes = []
        for pattern in same.args:
            if pattern in found:
                shape = getattr(found[pattern].struct_info, "shape", None)
                values = getattr(shape, "values", None)
                if values is None:
                    return False
                shapes.append(values)
        return all(same_extents(shapes[0], shape) for shape in shapes[1:])


def _operands_of(value: RelayExpr) -> list[RelayExpr]:
    if isinstance(value, Call):
        return list(value.args)
    if isinstance(value, Tuple):
        return list(value.fields)
    if isinstance(value, TupleGetItem):
        return [value.tuple_value]
    return [value]
