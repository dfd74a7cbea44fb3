"""Systems of linear equations and inequalities over integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import gcd
from typing import Any

import tvm._ffi
from tvm.ir import PrimExpr, Range
from tvm.runtime import Object, convert

from . import _ffi_api
from .analyzer import Analyzer
from .int_set import IntervalSet, eval_set
from .pattern import detect_linear_equation

__all__ = [
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "solve_linear_equations",
    "solve_linear_inequalities",
]


@tvm._ffi.register_object("arith.IntConstraints")
class IntConstraints(Object):
    """Integers `variables` within `ranges` for which all `relations` hold."""

    def __init__(
        self,
        variables: Sequence[Any],
        ranges: Mapping[Any, Range] | None = None,
        relations: Sequence[Any] | None = None,
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.IntConstraints, list(variables), dict(ranges or {}), list(relations or [])
        )


@tvm._ffi.register_object("arith.IntConstraintsTransform")
class IntConstraintsTransform(Object):
    """The systems `src` and `dst`; `src_to_dst` has the variables of `src` in terms of `dst`."""

    def __init__(
        self,
        src: IntConstraints,
        dst: IntConstraints,
        src_to_dst: Mapping[Any, Any],
        dst_to_src: Mapping[Any, Any],
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.IntConstraintsTransform, src, dst, dict(src_to_dst), dict(dst_to_src)
        )


@tvm._ffi.register_object("arith.IntGroupBounds")
class IntGroupBounds(Object):
    """Bounds of ``coef * x``: at least each of `lower`, equal to each of `equal`, ..."""

    def __init__(
        self, coef: Any, lower: Sequence[Any], equal: Sequence[Any], upper: Sequence[Any]
    ) -> None:
        self.__init_handle_by_constructor__(
            _ffi_api.IntGroupBounds, convert(coef), list(lower), list(equal), list(upper)
        )

    @staticmethod
    def from_range(rng: Range) -> IntGroupBounds:
        """The bounds that a range gives."""
        return IntGroupBounds(1, [rng.min], [], [rng.min + rng.extent - 1])

    def find_best_range(self, vranges_addl: Mapping[Any, Range] | None = None) -> Range | None:
        """The shortest range for the variable that the bounds give; None without a bound on a side.

        Of ranges whose lengths cannot be compared it is the first.

        Parameters
        ----------
        vranges_addl : ranges of variables in the bounds.
        """
        analyzer = Analyzer()
        for var, rng in (vranges_addl or {}).items():
            analyzer.bind(var, rng)
        best: Range | None = None
        for low in (*self.equal, *self.lower):
            start = analyzer.simplify(tvm.tir.floordiv(low + self.coef - 1, self.coef))
            for high in (*self.equal, *self.upper):
                end = tvm.tir.floordiv(high, self.coef)
                extent = analyzer.simplify(end - start + 1)
                if best is None or analyzer.can_prove(extent < best.extent):
                    best = Range.from_min_extent(start, extent)
        return best


def _mentions(expr: PrimExpr, var: Any) -> bool:
    found: list[bool] = []
    tvm.tir.stmt_functor.post_order_visit(
        expr, lambda node: found.append(True) if var.same_as(node) else None
    )
    return bool(found)


def _linear_in_some(expr: PrimExpr, variables: Sequence[Any]) -> tuple[list[int], PrimExpr]:
    """As `_linear`, where the rest may have those variables that `expr` is not linear in."""
    scales = [0] * len(variables)
    for at, var in enumerate(variables):
        parts = _linear(expr, [var])
        if parts is not None and parts[0][0]:
            scales[at], expr = parts[0][0], parts[1]
    return scales, expr


def _linear(expr: PrimExpr, variables: Sequence[Any]) -> tuple[list[int], PrimExpr] | None:
    """Integer coefficients and the rest, or None where `expr` is not of that form."""
    if not variables:
        return [], expr
    parts = list(detect_linear_equation(expr, list(variables)))
    if not parts:
        return None
    analyzer = Analyzer()
    numbers = [analyzer.simplify(part) for part in parts[:-1]]
    if not all(isinstance(number, tvm.tir.IntImm) for number in numbers):
        return None
    return [int(number) for number in numbers], parts[-1]


def _bezout(a: int, b: int) -> tuple[int, int, int]:
    """``g, s, t`` with ``s * a + t * b == g``, the greatest common divisor, which is positive."""
    g, s, t = a, 1, 0
    rest, u, v = b, 0, 1
    while rest:
        q = g // rest
        g, s, t, rest, u, v = rest, u, v, g - q * rest, s - q * u, t - q * v
    return (-g, -s, -t) if g < 0 else (g, s, t)


class _Diagonal:
    """Integer row and column operations that make a matrix diagonal.

    `rows` is made diagonal and `values` follow the operations on rows. `columns` is the product of
    the operations on columns: solutions are ``columns @ y``; `back` is its inverse.
    """

    def __init__(self, rows: list[list[int]], values: list[Any], size: int) -> None:
        self.rows, self.values, self.size = rows, values, size
        self.columns = [[int(i == k) for k in range(size)] for i in range(size)]
        self.back = [[int(i == k) for k in range(size)] for i in range(size)]
        self.rank = 0
        while self._step():
            self.rank += 1

    def _step(self) -> bool:
        at = self.rank
        candidates = [
            (row, column)
            for row in range(at, len(self.rows))
            for column in range(at, self.size)
            if self.rows[row][column]
        ]
        if not candidates:
            return False
        row, column = candidates[0]
        self.rows[at], self.rows[row] = self.rows[row], self.rows[at]
        self.values[at], self.values[row] = self.values[row], self.values[at]
        if column != at:
            self._swap_columns(at, column)
        while True:
            for other in range(at + 1, self.size):
                if self.rows[at][other]:
                    self._clear_column(at, other)
            below = [r for r in range(at + 1, len(self.rows)) if self.rows[r][at]]
            for other in below:
                self._clear_row(at, other)
            if not any(self.rows[at][at + 1 :]):
                break
        if self.rows[at][at] < 0:
            self.rows[at] = [-x for x in self.rows[at]]
            self.values[at] = -self.values[at]
        return True

    def _swap_columns(self, a: int, b: int) -> None:
        for row in [*self.rows, *self.columns]:
            row[a], row[b] = row[b], row[a]
        self.back[a], self.back[b] = self.back[b], self.back[a]

    def _clear_column(self, at: int, other: int) -> None:
        """Columns ``s * at + t * other`` and ``(b * at - a * other) / g`` in the place of both."""
        a, b = self.rows[at][at], self.rows[at][other]
        g, s, t = _bezout(a, b)
        if b % a == 0:
            g, s, t = a, 1, 0
        m, n = b // g, a // g
        for row in (*self.rows, *self.columns):
            x, y = row[at], row[other]
            row[at], row[other] = s * x + t * y, m * x - n * y
        # The determinant is -(s * n + t * m) = -1, so the inverse is [[n, m], [t-part, ...]].
        first, second = self.back[at], self.back[other]
        self.back[at] = [n * x + m * y for x, y in zip(first, second, strict=True)]
        self.back[other] = [t * x - s * y for x, y in zip(first, second, strict=True)]

    def _clear_row(self, at: int, other: int) -> None:
        a, b = self.rows[at][at], self.rows[other][at]
        g, s, t = _bezout(a, b)
        if b % a == 0:
            g, s, t = a, 1, 0
        m, n = b // g, a // g
        first, second = self.rows[at], self.rows[other]
        self.rows[at] = [s * x + t * y for x, y in zip(first, second, strict=True)]
        self.rows[other] = [n * y - m * x for x, y in zip(first, second, strict=True)]
        x, y = self.values[at], self.values[other]
        self.values[at], self.values[other] = s * x + t * y, n * y - m * x


def _split_relations(
    relations: Sequence[PrimExpr], variables: Sequence[Any]
) -> tuple[list[list[int]], list[PrimExpr], list[PrimExpr]]:
    """Equations as rows and right sides, and what is no equation."""
    rows: list[list[int]] = []
    values: list[PrimExpr] = []
    others: list[PrimExpr] = []
    for relation in relations:
        parts = None
        if isinstance(relation, tvm.tir.EQ):
            parts = _linear(relation.a - relation.b, variables)
        if parts is None:
            others.append(relation)
        else:
            rows.append(parts[0])
            values.append(-parts[1])
    return rows, values, others


def solve_linear_equations(
    equations: Sequence[PrimExpr] | IntConstraints,
    variables: Sequence[Any] | None = None,
    ranges: Mapping[Any, Range] | None = None,
) -> IntConstraintsTransform:
    """All integer solutions of linear equations, as a system with fewer variables.

    Equations are made diagonal by integer operations (the Smith normal form); relations that are
    no linear equations are kept.

    Parameters
    ----------
    equations : relations, or a system with its variables and ranges.
    variables : what to solve for; other variables are parameters.
    ranges : of variables. Those of the new variables follow where a variable is one of them, up to
        its sign and a constant; what they do not say is kept as relations.

    Returns
    -------
    The system given, the new one, and both ways between their variables. Without solutions, the
    new system has no variables and the relation False.
    """
    system = equations
    if not isinstance(system, IntConstraints):
        system = IntConstraints(variables or [], ranges, equations)
    names = list(system.variables)
    if not names:
        return IntConstraintsTransform(system, system, {}, {})
    analyzer = Analyzer()
    rows, values, others = _split_relations(list(system.relations), names)
    form = _Diagonal(rows, values, len(names))
    relations: list[PrimExpr] = []
    solved: list[PrimExpr] = []
    for at in range(len(form.rows)):
        value = analyzer.simplify(form.values[at])
        divisor = form.rows[at][at] if at < form.rank else 0
        holds = analyzer.simplify(
            tvm.tir.EQ(value % divisor if divisor else value, tvm.tir.const(0, value.dtype))
        )
        if isinstance(holds, tvm.tir.IntImm):
            if not int(holds):
                return _no_solution(system)
        else:
            relations.append(holds)
        if divisor:
            solved.append(analyzer.simplify(value // divisor))
    free = [tvm.tir.Var(f"n{k}", names[form.rank + k].dtype) for k in range(len(names) - form.rank)]
    unknowns: list[PrimExpr] = [*solved, *free]
    forward = {
        name: analyzer.simplify(_combine(row, unknowns, name.dtype))
        for name, row in zip(names, form.columns, strict=True)
    }
    backward = {
        var: analyzer.simplify(_combine(form.back[form.rank + k], names, var.dtype))
        for k, var in enumerate(free)
    }
    new_ranges, bounds = _ranges_of(free, forward, backward, dict(system.ranges.items()))
    relations += bounds
    for relation in others:
        replaced = analyzer.simplify(tvm.tir.stmt_functor.substitute(relation, forward))
        if isinstance(replaced, tvm.tir.IntImm) and int(replaced):
            continue
        if isinstance(replaced, tvm.tir.IntImm):
            return _no_solution(system)
        relations.append(replaced)
    return IntConstraintsTransform(
        system, IntConstraints(free, new_ranges, relations), forward, backward
    )


def _no_solution(system: IntConstraints) -> IntConstraintsTransform:
    impossible = IntConstraints([], {}, [tvm.tir.const(False, "bool")])
    return IntConstraintsTransform(system, impossible, {}, {})


def _combine(row: Sequence[int], terms: Sequence[PrimExpr], dtype: str) -> PrimExpr:
    total: Any = tvm.tir.const(0, dtype)
    for scale, term in zip(row, terms, strict=True):
        if scale:
            total = total + term * scale
    return total


def _ranges_of(
    free: Sequence[Any],
    forward: Mapping[Any, PrimExpr],
    backward: Mapping[Any, PrimExpr],
    ranges: Mapping[Any, Range],
) -> tuple[dict[Any, Range], list[PrimExpr]]:
    """Ranges of new variables, and what else the ranges of the old ones say of them."""
    analyzer = Analyzer()
    found: dict[Any, Range] = {}
    for name, expr in forward.items():
        if name not in ranges:
            continue
        parts = _linear(expr, free)
        used = [k for k, scale in enumerate(parts[0]) if scale] if parts else []
        if parts is None or len(used) != 1 or abs(parts[0][used[0]]) != 1:
            continue
        low = ranges[name].min - parts[1]
        high = low + ranges[name].extent - 1
        if parts[0][used[0]] < 0:
            low, high = -high, -low
        var, previous = free[used[0]], found.get(free[used[0]])
        extent = analyzer.simplify(high - low + 1)
        if previous is None or analyzer.can_prove(extent <= previous.extent):
            found[var] = Range.from_min_extent(analyzer.simplify(low), extent)
    domains = {
        name: IntervalSet(bound.min, analyzer.simplify(bound.min + bound.extent - 1))
        for name, bound in ranges.items()
    }
    for var in free:
        if var in found:
            continue
        # A sum of several old variables: what their ranges leave of it.
        values = eval_set(backward[var], domains)
        if any(isinstance(end, tvm.tir.Var) for end in (values.min_value, values.max_value)):
            continue
        extent = analyzer.simplify(values.max_value - values.min_value + 1)
        found[var] = Range.from_min_extent(values.min_value, extent)
    for var, bound in found.items():
        analyzer.bind(var, bound)
    relations: list[PrimExpr] = []
    for name, expr in forward.items():
        if name not in ranges:
            continue
        bound = ranges[name]
        for condition in (
            tvm.tir.LE(bound.min, expr),
            tvm.tir.LT(expr, bound.min + bound.extent),
        ):
            if not analyzer.can_prove(condition):
                relations.append(
                    type(condition)(analyzer.simplify(condition.a), analyzer.simplify(condition.b))
                )
    return found, relations


# Inequalities


class _Halves:
    """``sum of scales * variables + rest <= 0``; `scales` are of the variables not yet solved."""

    def __init__(self, scales: tuple[int, ...], rest: Any) -> None:
        self.scales, self.rest = scales, rest


def _inequalities(
    relations: Sequence[PrimExpr], variables: Sequence[Any]
) -> tuple[list[_Halves], list[PrimExpr]]:
    found: list[_Halves] = []
    others: list[PrimExpr] = []
    kinds = {
        tvm.tir.LE: lambda r: [r.a - r.b],
        tvm.tir.GE: lambda r: [r.b - r.a],
        tvm.tir.LT: lambda r: [r.a - r.b + 1],
        tvm.tir.GT: lambda r: [r.b - r.a + 1],
        tvm.tir.EQ: lambda r: [r.a - r.b, r.b - r.a],
    }
    for relation in relations:
        sides = kinds[type(relation)](relation) if type(relation) in kinds else []
        parts = [_linear_in_some(side, variables) for side in sides]
        if not any(any(scales) for scales, _ in parts):
            others.append(relation)
            continue
        found += [_Halves(tuple(scales), rest) for scales, rest in parts]
    return found, others


def _reduced(rows: Sequence[_Halves], analyzer: Analyzer) -> list[_Halves] | None:
    """Without what follows from others or holds always; None if one holds never."""
    kept: dict[tuple[int, ...], PrimExpr] = {}
    many: list[_Halves] = []
    for row in rows:
        divisor = gcd(*row.scales) if row.scales else 0
        rest = analyzer.simplify(row.rest)
        scales = row.scales
        if divisor > 1:
            scales = tuple(scale // divisor for scale in scales)
            rest = analyzer.simplify(-((-rest) // divisor))
        if not any(scales):
            if analyzer.can_prove(rest <= 0):
                continue
            if analyzer.can_prove(rest > 0):
                return None
        other = kept.get(scales)
        if other is None or analyzer.can_prove(rest >= other):
            kept[scales] = rest
        elif not analyzer.can_prove(rest <= other):
            many.append(_Halves(scales, rest))
    return [_Halves(scales, rest) for scales, rest in kept.items()] + many


class _Bounds:
    """Of one variable: expressions of those after it, over a scale each."""

    def __init__(self) -> None:
        self.lower: list[tuple[int, Any]] = []
        self.upper: list[tuple[int, Any]] = []


def _eliminate(
    rows: list[_Halves], variables: Sequence[Any], analyzer: Analyzer
) -> tuple[list[_Bounds], list[PrimExpr]] | None:
    """Bounds of each variable by the later ones, after Fourier and Motzkin; None: no solution."""
    bounds: list[_Bounds] = []
    conditions: list[PrimExpr] = []
    for at, var in enumerate(variables):
        reduced = _reduced(rows, analyzer)
        if reduced is None:
            return None
        own = _Bounds()
        lower: list[_Halves] = []
        upper: list[_Halves] = []
        rest: list[_Halves] = []
        for row in reduced:
            scale = row.scales[at]
            if _mentions(row.rest, var):
                # Of no use for a bound: the row is not linear in this variable.
                conditions.append(_condition(row, variables))
                continue
            others = tuple(0 if k <= at else s for k, s in enumerate(row.scales))
            value = analyzer.simplify(_combine(others, variables, var.dtype) + row.rest)
            if scale > 0:
                upper.append(row)
                own.upper.append((scale, analyzer.simplify(-value)))
            elif scale < 0:
                lower.append(row)
                own.lower.append((-scale, value))
            else:
                rest.append(row)
        for low, high in product(lower, upper):
            a, b = -low.scales[at], high.scales[at]
            scales = tuple(b * x + a * y for x, y in zip(low.scales, high.scales, strict=True))
            rest.append(_Halves(scales, b * low.rest + a * high.rest))
        bounds.append(own)
        rows = rest
    last = _reduced(rows, analyzer)
    if last is None:
        return None
    return bounds, conditions + [_condition(row, variables) for row in last]


def _condition(row: _Halves, variables: Sequence[Any]) -> PrimExpr:
    dtype = row.rest.dtype
    total = Analyzer().simplify(_combine(row.scales, variables, dtype) + row.rest)
    return tvm.tir.LE(total, tvm.tir.const(0, dtype))


def _from_ranges(variables: Sequence[Any], ranges: Mapping[Any, Range]) -> list[PrimExpr]:
    relations: list[PrimExpr] = []
    for var in variables:
        if var in ranges:
            bound = ranges[var]
            relations += [var >= bound.min, var < bound.min + bound.extent]
    return relations


def solve_linear_inequalities(
    equations: Sequence[PrimExpr] | IntConstraints,
    variables: Sequence[Any] | None = None,
    ranges: Mapping[Any, Range] | None = None,
    deskew_range: bool = False,
) -> IntConstraints | IntConstraintsTransform:
    """Ranges of variables that hold all solutions of linear inequalities.

    Each variable's range is in terms of the variables behind it (Fourier-Motzkin elimination).

    Parameters
    ----------
    equations : relations, or a system with its variables and ranges.
    variables : what to solve for, in the order in which they are eliminated.
    ranges : of variables.
    deskew_range : give the transform to variables whose ranges begin at zero.

    Returns
    -------
    The system with ranges, and with the relations that ranges do not say; or a transform to one.
    Without solutions, it has no variables and the relation False.
    """
    system = equations
    if not isinstance(system, IntConstraints):
        system = IntConstraints(variables or [], ranges, equations)
    names = list(system.variables)
    given = dict(system.ranges.items())
    analyzer = Analyzer()
    for var, bound in given.items():
        if not any(var.same_as(name) for name in names):
            analyzer.bind(var, bound)
    rows, others = _inequalities([*system.relations, *_from_ranges(names, given)], names)
    solved = _eliminate(rows, names, analyzer)
    if solved is None:
        if deskew_range:
            return _no_solution(system)
        return IntConstraints([], {}, [tvm.tir.const(False, "bool")])
    bounds, conditions = solved
    found: dict[Any, Range] = {}
    relations: list[PrimExpr] = []
    forward: dict[Any, PrimExpr] = {}
    # Later variables first: bounds of the earlier ones mention them.
    for var, own in reversed(list(zip(names, bounds, strict=True))):
        best = _best_range(var, own, analyzer, names)
        if best is None:
            relations = _conditions(var, own, None, analyzer) + relations
            continue
        relations = _conditions(var, own, best, analyzer) + relations
        found[var] = best
        analyzer.bind(var, best)
    relations += conditions + others
    if not deskew_range:
        return IntConstraints(names, found, relations)
    backward: dict[Any, PrimExpr] = {}
    fresh: list[Any] = []
    new_ranges: dict[Any, Range] = {}
    simple = Analyzer()
    for var in reversed(names):
        if var not in found:
            fresh.insert(0, var)
            forward[var] = var
            backward[var] = var
            continue
        low = simple.simplify(tvm.tir.stmt_functor.substitute(found[var].min, forward))
        if tvm.ir.structural_equal(found[var].extent, tvm.tir.const(1, var.dtype)):
            forward[var] = low
            continue
        moved = tvm.tir.Var(var.name + "_shifted", var.dtype)
        fresh.insert(0, moved)
        forward[var] = moved + low
        backward[moved] = simple.simplify(var - found[var].min)
        extent = tvm.tir.stmt_functor.substitute(found[var].extent, forward)
        new_ranges[moved] = Range.from_min_extent(
            tvm.tir.const(0, var.dtype), simple.simplify(extent)
        )
        simple.bind(moved, new_ranges[moved])
    left: list[PrimExpr] = []
    for relation in relations:
        replaced = simple.simplify(tvm.tir.stmt_functor.substitute(relation, forward))
        if isinstance(replaced, tvm.tir.IntImm):
            if not int(replaced):
                return _no_solution(system)
        else:
            left.append(_with_closed_end(replaced))
    target = IntConstraints(fresh, new_ranges, left)
    return IntConstraintsTransform(system, target, forward, backward)


def _with_closed_end(relation: PrimExpr) -> PrimExpr:
    """A bound written with the last number that it allows, as solutions are."""
    if isinstance(relation, tvm.tir.LT) and isinstance(relation.b, tvm.tir.IntImm):
        return tvm.tir.LE(relation.a, relation.b - 1)
    return relation


def _ends(own: _Bounds) -> tuple[list[Any], list[Any]]:
    """Lower and upper ends, rounded inwards."""
    lows = [value if scale == 1 else -((-value) // scale) for scale, value in own.lower]
    highs = [value if scale == 1 else value // scale for scale, value in own.upper]
    return lows, highs


def _without_implied(own: _Bounds, analyzer: Analyzer) -> _Bounds:
    """Without ends that another one implies, given what is known of the later variables."""
    lows, highs = _ends(own)
    kept = _Bounds()
    kept.lower, kept.upper = list(own.lower), list(own.upper)
    for scaled, ends, implies in (
        (kept.lower, lows, lambda tight, loose: tight >= loose),
        (kept.upper, highs, lambda tight, loose: tight <= loose),
    ):
        at = 0
        while at < len(ends):
            others = ends[:at] + ends[at + 1 :]
            if any(analyzer.can_prove(implies(other, ends[at])) for other in others):
                # Only what is still kept implies others, so of two equal ends one stays.
                del ends[at], scaled[at]
            else:
                at += 1
    return kept


# What is longer is as long as its type allows: nothing bounds it.
_LONGEST = 1 << 30


def _best_range(var: Any, own: _Bounds, analyzer: Analyzer, names: Sequence[Any]) -> Range | None:
    """The shortest of the ranges from a lower to an upper end.

    Its length is a number, or else an expression of integers that are given.
    """
    lows, highs = _ends(own)
    best: Range | None = None
    symbolic: Range | None = None
    length: int | None = None
    for low, high in product(lows, highs):
        extent = analyzer.simplify(high - low + 1)
        bound = analyzer.const_int_bound(extent)
        if bound.max_value > _LONGEST:
            if symbolic is None and _is_given(extent, names):
                symbolic = Range.from_min_extent(analyzer.simplify(low), extent)
            continue
        if length is None or bound.max_value < length:
            length = max(bound.max_value, 0)
            best = Range.from_min_extent(analyzer.simplify(low), tvm.tir.const(length, var.dtype))
    return best if best is not None else symbolic


def _is_given(extent: PrimExpr, names: Sequence[Any]) -> bool:
    """Whether an expression has neither a variable of the system nor anything but integers."""
    given = True

    def look(node: Any) -> None:
        nonlocal given
        is_integer = "int" in node.dtype or node.dtype == "bool"
        if not is_integer or any(node.same_as(name) for name in names):
            given = False

    tvm.tir.stmt_functor.post_order_visit(extent, look)
    return given


def _same(a: tuple[int, Any], b: tuple[int, Any]) -> bool:
    return a[0] == b[0] and tvm.ir.structural_equal(a[1], b[1])


def _conditions(var: Any, own: _Bounds, best: Range | None, analyzer: Analyzer) -> list[PrimExpr]:
    """What bounds say besides a range."""
    inner = Analyzer()
    relations: list[PrimExpr] = []
    same = [end for end in own.lower if any(_same(end, other) for other in own.upper)]
    for scale, value in same:
        point = analyzer.simplify(value)
        if best is None or not analyzer.can_prove(tvm.tir.EQ(best.min * scale, point)):
            relations.append(tvm.tir.EQ(inner.simplify(var * scale), point))
    for scale, value in [end for end in own.lower if not any(end is s for s in same)]:
        low = value if scale == 1 else -((-value) // scale)
        if best is None or not analyzer.can_prove(best.min >= low):
            relations.append(analyzer.simplify(var * scale) >= analyzer.simplify(value))
    for scale, value in own.upper:
        if any(_same((scale, value), other) for other in same):
            continue
        high = value if scale == 1 else value // scale
        if best is None or not analyzer.can_prove(best.min + best.extent - 1 <= high):
            relations.append(inner.simplify(var * scale) <= analyzer.simplify(value))
    return relations


@tvm._ffi.register_func("arith.SolveInequalitiesAsCondition")
def _as_conditions(
    variables: Sequence[Any], ranges: Mapping[Any, Range], inequalities: Sequence[PrimExpr]
) -> list[PrimExpr]:
    """Bounds of each variable by the later ones, in order, and then what else must hold."""
    names = list(variables)
    analyzer = Analyzer()
    rows, others = _inequalities([*inequalities, *_from_ranges(names, dict(ranges.items()))], names)
    solved = _eliminate(rows, names, analyzer)
    if solved is None:
        return [tvm.tir.const(False, "bool")]
    bounds, conditions = solved
    relations: list[PrimExpr] = []
    # Later variables first: bounds of the earlier ones mention them.
    for var, own in reversed(list(zip(names, bounds, strict=True))):
        relations = _conditions(var, _without_implied(own, analyzer), None, analyzer) + relations
        best = _best_range(var, own, analyzer, names)
        if best is not None:
            analyzer.bind(var, best)
    return relations + conditions + others


# The module of functions was filled before this one was registered.
tvm._ffi._init_api("arith", _ffi_api.__name__)
