"""When one of several ways to compute something counts."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar, Token

from tvm import error
from tvm.ir import PrimExpr

__all__ = ["SpecializedCondition"]


class SpecializedCondition:
    """A condition on extents, under which what is said inside of ``with`` counts.

    Parameters
    ----------
    clauses : boolean expressions, all of which have to hold.

    Raises
    ------
    TypeError : a clause is no boolean expression.
    """

    def __init__(self, clauses: PrimExpr | bool | Sequence[PrimExpr | bool]) -> None:
        given = [clauses] if isinstance(clauses, (PrimExpr, bool)) else list(clauses)
        for clause in given:
            kind = "bool" if isinstance(clause, bool) else str(getattr(clause, "dtype", ""))
            if kind != "bool":
                raise error.TypeError(
                    f"te.SpecializedCondition: a clause is a comparison, got {clause!r}"
                )
        self.clauses: tuple[PrimExpr | bool, ...] = tuple(given)
        self._tokens: list[Token[SpecializedCondition | None]] = []

    @staticmethod
    def current() -> SpecializedCondition | None:
        """The innermost condition around, None if there is none."""
        return _CURRENT.get()

    def __enter__(self) -> SpecializedCondition:
        self._tokens.append(_CURRENT.set(self))
        return self

    def __exit__(self, *error: object) -> None:
        _CURRENT.reset(self._tokens.pop())

    def __repr__(self) -> str:
        return f"SpecializedCondition({' and '.join(map(str, self.clauses))})"


_CURRENT: ContextVar[SpecializedCondition | None] = ContextVar("te.condition", default=None)
