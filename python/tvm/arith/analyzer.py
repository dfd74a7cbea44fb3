"""Facts about integer expressions: bounds, congruences, simplification and proofs."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, IntFlag
from types import TracebackType

import tvm._ffi
from tvm.runtime import Object

from . import _ffi_api

__all__ = [
    "Analyzer",
    "ConstIntBound",
    "ConstraintScope",
    "Extension",
    "ModularSet",
    "ProofStrength",
]


class Extension(IntFlag):
    """What TVM's simplifier does on request; ours does all but one of these always."""

    NoExtensions = 0
    TransitivelyProveInequalities = 1 << 0
    ConvertBooleanToAndOfOrs = 1 << 1
    ApplyConstraintsToBooleanBranches = 1 << 2
    ComparisonOfProductAndSum = 1 << 3


class ProofStrength(IntEnum):
    """How much work TVM's analyzer puts into a proof. Ours always compares symbolic bounds."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


@tvm._ffi.register_object("arith.ConstIntBound")
class ConstIntBound(Object):
    """Closed range of integers; ``NEG_INF`` and ``POS_INF`` stand for missing ends."""

    POS_INF = (1 << 63) - 1
    NEG_INF = -(1 << 63)

    def __init__(self, min_value: int, max_value: int) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ConstIntBound, min_value, max_value)


@tvm._ffi.register_object("arith.ModularSet")
class ModularSet(Object):
    """The integers ``coeff * k + base``; ``coeff`` 0 is one value, 1 is every integer."""

    def __init__(self, coeff: int, base: int) -> None:
        self.__init_handle_by_constructor__(_ffi_api.ModularSet, coeff, base)


class ConstraintScope:
    """A condition that holds inside a ``with`` block; made by `Analyzer.constraint_scope`."""

    def __init__(self, enter: Callable[[], Callable[[], None]]) -> None:
        self._enter = enter
        self._exits: list[Callable[[], None]] = []

    def __enter__(self) -> None:
        self._exits.append(self._enter())

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._exits.pop()()


class Analyzer:
    """Answers questions about integer expressions with what it was told about variables.

    A `tvm.tir.SizeVar` is always at least 1, without being told.
    """

    def __init__(self) -> None:
        method = _ffi_api.CreateAnalyzer()
        self._const_int_bound = method("const_int_bound")
        self._const_int_bound_update = method("const_int_bound_update")
        self._modular_set = method("modular_set")
        self._modular_set_update = method("modular_set_update")
        self._simplify = method("simplify")
        self._rewrite_simplify = method("rewrite_simplify")
        self._canonical_simplify = method("canonical_simplify")
        self._int_set = method("int_set")
        self._int_set_bound = method("int_set_bound")
        self._can_prove = method("can_prove")
        self._can_prove_equal = method("can_prove_equal")
        self._bind_range = method("bind_range")
        self._bind_value = method("bind_value")
        self._enter_constraint = method("enter_constraint_context")
        self._set_and_of_ors = method("set_and_of_ors")
        self._extensions = Extension.NoExtensions

    @property
    def enabled_extensions(self) -> Extension:
        """Which extensions were asked for.

        ``ConvertBooleanToAndOfOrs`` multiplies conditions out. Facts are combined, conditions are
        applied to the branches beside them and products are compared with sums in any case.
        """
        return self._extensions

    @enabled_extensions.setter
    def enabled_extensions(self, flags: int | Extension) -> None:
        self._extensions = Extension(flags)
        self._set_and_of_ors(Extension.ConvertBooleanToAndOfOrs in self._extensions)

    def const_int_bound(self, expr) -> ConstIntBound:
        """A range that holds every value of `expr`."""
        return self._const_int_bound(expr)

    def const_int_bound_is_bound(self, var) -> bool:
        """Whether something narrower than its type was stated about a variable."""
        found, whole = self.const_int_bound(var), Analyzer().const_int_bound(var)
        return (found.min_value, found.max_value) != (whole.min_value, whole.max_value)

    def modular_set(self, expr) -> ModularSet:
        """A congruence that every value of `expr` satisfies."""
        return self._modular_set(expr)

    def simplify(self, expr, steps: int = 2):
        """An equal expression in normal form; the same object when it already is.

        Of a sum the terms with the largest strides come first: `i * 64 + j * 8 + k`.
        """
        return self._simplify(expr, steps)

    def rewrite_simplify(self, expr):
        """The same value as `simplify` in one pass, written as rewriting by rules leaves it.

        Terms of a sum come as they were met, a negative number is added, and what all terms are
        multiples of stands in front: `x * y - x` is `x * (y + -1)`.
        """
        return self._rewrite_simplify(expr)

    def canonical_simplify(self, expr):
        """The same value as `simplify` in one pass, written as a canonical sum.

        What is added comes before what is subtracted, numbers last of either: `y * 2 + 1 - x * 2`.
        """
        return self._canonical_simplify(expr)

    def int_set(self, expr, dom_map=None):
        """Values of `expr` as a set with symbolic ends.

        Parameters
        ----------
        dom_map : dict of Var to IntSet, or None for all variables that were bound to a range.
        """
        return self._int_set_bound(expr) if dom_map is None else self._int_set(expr, dom_map)

    def can_prove(self, expr, strength: ProofStrength = ProofStrength.SYMBOLIC_BOUND) -> bool:
        """Whether `expr` holds for all values of its variables; False also means unknown.

        Parameters
        ----------
        strength : what TVM would try at least; every proof is at the strongest.
        """
        ProofStrength(strength)
        return self._can_prove(expr)

    def can_prove_equal(self, lhs, rhs) -> bool:
        """Whether two integer expressions have the same value everywhere."""
        return self._can_prove_equal(lhs, rhs)

    def bind(self, var, expr, override: bool = False) -> None:
        """State that `var` lies in a Range, or equals an expression.

        Raises
        ------
        ValueError : something else was stated about `var` before, and `override` is False; or the
            expression needs `var` itself, or is a float where `var` is an integer.
        TypeError : `expr` is neither.
        """
        if expr is None:
            raise TypeError(f"Analyzer.bind: expected a Range or an expression for {var}, got None")
        bind = self._bind_range if isinstance(expr, tvm.ir.Range) else self._bind_value
        bind(var, expr, override)

    def constraint_scope(self, constraint) -> ConstraintScope:
        """State that a condition holds inside a ``with`` block.

        What is stated inside of the block stays when it ends.

        Raises
        ------
        TypeError, ValueError : `constraint` is no expression, or not boolean.
        """
        return ConstraintScope(lambda: self._enter_constraint(constraint))

    def update(self, var, info: ConstIntBound | ModularSet, override: bool = False) -> None:
        """State a bound or a congruence of `var`.

        Raises
        ------
        TypeError : `info` is neither a ConstIntBound nor a ModularSet.
        """
        if isinstance(info, ConstIntBound):
            self._const_int_bound_update(var, info, override)
        elif isinstance(info, ModularSet):
            self._modular_set_update(var, info, override)
        else:
            raise TypeError(
                "Analyzer.update: expected a ConstIntBound or a ModularSet, "
                f"got {type(info).__name__}; use bind for ranges and values"
            )
