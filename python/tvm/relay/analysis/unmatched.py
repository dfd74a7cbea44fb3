"""Values that no clause of a match fits."""

from __future__ import annotations

from tvm.ir import IRModule

from ..adt import (
    Match,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
)

__all__ = ["unmatched_cases"]


def _overlap(clause: Pattern, case: Pattern) -> bool | None:
    """Whether a clause fits every value of a case (True), none (False), or only some (None)."""
    if isinstance(clause, (PatternWildcard, PatternVar)):
        return True
    if isinstance(case, (PatternWildcard, PatternVar)):
        return None
    if (
        isinstance(clause, PatternConstructor)
        and isinstance(case, PatternConstructor)
        and clause.constructor != case.constructor
    ):
        return False
    parts = [_overlap(a, b) for a, b in zip(clause.patterns, case.patterns)]
    if any(part is False for part in parts):
        return False
    return None if any(part is None for part in parts) else True


def _refined(clause: Pattern, case: Pattern, mod: IRModule) -> list[Pattern]:
    """A case as several that a clause tells apart."""
    if isinstance(clause, (PatternWildcard, PatternVar)):
        return [case]
    if isinstance(clause, PatternTuple):
        parts = (
            list(case.patterns)
            if isinstance(case, PatternTuple)
            else [PatternWildcard() for _ in clause.patterns]
        )
        return [PatternTuple(p) for p in _expanded(list(clause.patterns), parts, mod)]
    assert isinstance(clause, PatternConstructor)
    if isinstance(case, PatternConstructor):
        if clause.constructor != case.constructor:
            return [case]
        found = _expanded(list(clause.patterns), list(case.patterns), mod)
        return [PatternConstructor(case.constructor, p) for p in found]
    definition = mod[clause.constructor.belong_to]
    cases: list[Pattern] = [PatternConstructor(con) for con in definition.constructors]
    return [new for old in cases for new in _refined(clause, old, mod)]


def _expanded(clauses: list[Pattern], parts: list[Pattern], mod: IRModule) -> list[list[Pattern]]:
    """All combinations of what the parts become."""
    combinations: list[list[Pattern]] = [[]]
    for clause, part in zip(clauses, parts):
        found = _refined(clause, part, mod)
        combinations = [[*before, new] for before in combinations for new in found]
    return combinations


def unmatched_cases(match: Match, mod: IRModule | None = None) -> list[Pattern]:
    """Patterns of values that a match has no clause for.

    Parameters
    ----------
    mod : defines the types.
    """
    mod = IRModule() if mod is None else mod
    pending: list[Pattern] = [PatternWildcard()]
    failed: list[Pattern] = []
    while pending:
        case = pending.pop()
        for clause in match.clauses:
            fits = _overlap(clause.lhs, case)
            if fits:
                break
            if fits is None:
                pending.extend(_refined(clause.lhs, case, mod))
                break
        else:
            failed.append(case)
    return failed[::-1]
