"""Values of defined types taken apart: patterns and matches."""

from __future__ import annotations

from collections.abc import Sequence

from tvm._ffi import register_object
from tvm.ir import Constructor, RelayExpr, TypeData
from tvm.runtime import Object

from . import _ffi_api
from .expr import ExprWithOp, Var, as_expr

__all__ = [
    "Clause",
    "Constructor",
    "Match",
    "Pattern",
    "PatternConstructor",
    "PatternTuple",
    "PatternVar",
    "PatternWildcard",
    "TypeData",
    "pattern_vars",
]


@register_object("relay.Pattern")
class Pattern(Object):
    """What a value may look like, with names for its parts."""


@register_object("relay.PatternWildcard")
class PatternWildcard(Pattern):
    """Any value."""

    def __init__(self) -> None:
        self.__init_handle_by_constructor__(_ffi_api.PatternWildcard)


@register_object("relay.PatternVar")
class PatternVar(Pattern):
    """Any value, which the variable then is."""

    def __init__(self, var: Var) -> None:
        self.__init_handle_by_constructor__(_ffi_api.PatternVar, var)


@register_object("relay.PatternConstructor")
class PatternConstructor(Pattern):
    """A value of one constructor whose parts match; parts left out are wildcards."""

    def __init__(self, constructor: Constructor, patterns: Sequence[Pattern] | None = None) -> None:
        parts = [PatternWildcard() for _ in constructor.inputs] if patterns is None else patterns
        self.__init_handle_by_constructor__(_ffi_api.PatternConstructor, constructor, list(parts))


@register_object("relay.PatternTuple")
class PatternTuple(Pattern):
    """A tuple whose fields match."""

    def __init__(self, patterns: Sequence[Pattern] | None = None) -> None:
        self.__init_handle_by_constructor__(_ffi_api.PatternTuple, list(patterns or ()))


@register_object("relay.Clause")
class Clause(Object):
    """A pattern, and what a match is where it fits."""

    def __init__(self, lhs: Pattern, rhs: RelayExpr) -> None:
        self.__init_handle_by_constructor__(_ffi_api.Clause, lhs, as_expr(rhs))


@register_object("relay.Match")
class Match(ExprWithOp):
    """The value of the first clause that fits.

    Parameters
    ----------
    complete : whether the program says that one always does.
    """

    def __init__(self, data: RelayExpr, clauses: Sequence[Clause], complete: bool = True) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.Match, as_expr(data), list(clauses), bool(complete)
        )


def pattern_vars(pattern: Pattern) -> list[Var]:
    """The variables that a pattern names parts by, from left to right."""
    if isinstance(pattern, PatternVar):
        return [pattern.var]
    if isinstance(pattern, (PatternConstructor, PatternTuple)):
        return [var for part in pattern.patterns for var in pattern_vars(part)]
    return []
