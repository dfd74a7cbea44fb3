"""Patterns over graph expressions."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from typing import Any

from tvm import error
from tvm.ir import GlobalVar, Op, PrimExpr, RelayExpr, Type, structural_equal
from tvm.runtime import Object, convert

from ..expr import (
    Call,
    Constant,
    DataflowVar,
    ExternFunc,
    Function,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from ..struct_info import StructInfo, TensorStructInfo
from ..struct_info_relations import BaseCheckResult, struct_info_base_check
from .constraints import Constraint, add_constraint
from .match import Matcher, same_extents

__all__ = [
    "AndPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFPattern",
    "DataTypePattern",
    "DataflowVarPattern",
    "ExprPattern",
    "ExternFuncPattern",
    "FunctionPattern",
    "GlobalVarPattern",
    "NotPattern",
    "OrPattern",
    "PatternSeq",
    "PrimArrPattern",
    "SameShapeConstraint",
    "ShapePattern",
    "StructInfoPattern",
    "TupleGetItemPattern",
    "TuplePattern",
    "TypePattern",
    "UnorderedTuplePattern",
    "VarPattern",
    "WildcardPattern",
    "has_attr",
    "has_dtype",
    "is_call_dps_packed",
    "is_call_packed",
    "is_call_tir",
    "is_const",
    "is_dfv",
    "is_expr",
    "is_gv",
    "is_op",
    "is_shape",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "make_fused_bias_activation_pattern",
    "reject",
    "wildcard",
]


def is_commutative(value: RelayExpr) -> bool:
    """Whether a value is a call whose operands may come in any order."""
    commutative = ("relax.add", "relax.multiply")
    return isinstance(value, Call) and str(getattr(value.op, "name", "")) in commutative


def _equal(have: Any, want: Any) -> bool:
    if isinstance(have, Object) and not isinstance(have, str):
        return structural_equal(have, convert(want))
    return bool(have == want)


class DFPattern:
    """Base of the patterns.

    Two patterns are different ones even if they are written alike, and one pattern that occurs in
    several places stands for one expression.

    Attributes
    ----------
    takes_in : whether a match of it is a part of what is found, and not only where that begins.
    """

    takes_in = False

    def __call__(
        self,
        *args: DFPattern,
        varg_default_wildcard: bool = False,
        add_constraint: bool = True,
    ) -> CallPattern:
        """A call of what this matches; see :class:`CallPattern`."""
        return CallPattern(self, args, varg_default_wildcard, add_constraint)

    def __or__(self, other: DFPattern) -> OrPattern:
        """Either of two patterns."""
        return OrPattern(self, other)

    def __and__(self, other: DFPattern) -> AndPattern:
        """Both patterns."""
        return AndPattern(self, other)

    def __invert__(self) -> NotPattern:
        """What this does not match."""
        return NotPattern(self)

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """This, where the settings of the call, operator or function have these values."""
        return AttrPattern(self, attrs)

    def has_struct_info(self, struct_info: StructInfo) -> StructInfoPattern:
        """This, where what is known of the value implies the struct info."""
        return StructInfoPattern(self, struct_info)

    def has_type(self, ttype: Type) -> TypePattern:
        """This, where the value is of the type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """This, where the value is a tensor of the element type."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[PrimExpr | int]) -> ShapePattern:
        """This, where the value is a tensor of the shape."""
        if not isinstance(shape, Sequence) or isinstance(shape, str):
            raise error.ValueError("has_shape takes a list or tuple as input.")
        return ShapePattern(self, shape)

    def match(self, expr: RelayExpr, var2val: Mapping[Var, RelayExpr] | None = None) -> bool:
        """Whether an expression is like this.

        Parameters
        ----------
        var2val : what variables are bound to (``relax.analysis.get_var2val``); with it, a pattern
            looks through variables at what they stand for.
        """
        return self.extract_matched_expr(expr, var2val) is not None

    def extract_matched_expr(
        self, expr: RelayExpr, var2val: Mapping[Var, RelayExpr] | None = None
    ) -> dict[DFPattern, RelayExpr] | None:
        """The expression that each part of this stands for; None if there is no match.

        Parameters
        ----------
        var2val : as for :meth:`match`. Operands that are variables come as variables.
        """
        matcher = Matcher(var2val)
        return matcher.found if matcher.match(self, expr) else None

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        """Whether an expression is like this, if its parts are; the matcher looks at those."""
        raise NotImplementedError(type(self).__name__)

    def used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """Say in the current :class:`PatternContext` that another pattern reads this value.

        Parameters
        ----------
        index : as which operand; -1 for any.
        """
        return PatternSeq([self]).used_by(other, index)

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        """``a ^ b`` is ``a.used_by(b)``."""
        return self.used_by(other)

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """Say in the current :class:`PatternContext` that nothing but another pattern reads this.

        Parameters
        ----------
        index : as which operand; -1 for any.
        """
        return PatternSeq([self]).only_used_by(other, index)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        """``a >> b`` is ``a.only_used_by(b)``."""
        return self.only_used_by(other)

    def dup(self) -> DFPattern:
        """Another pattern that is written like this one."""
        return copy.copy(self)

    def fork_to(self, *args: DFPattern | PatternSeq) -> None:
        """Say in the current :class:`PatternContext` that each of other patterns reads this."""
        for other in args:
            self.used_by(other)

    def same_shape_as(self, *args: DFPattern) -> SameShapeConstraint:
        """Say in the current :class:`PatternContext` that other patterns have this one's shape."""
        return SameShapeConstraint(self, *args)


class ExprPattern(DFPattern):
    """An expression that is equal in structure; for an operator, that operator."""

    def __init__(self, expr: RelayExpr) -> None:
        self.expr = expr

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        if isinstance(self.expr, Op):
            return isinstance(expr, Op) and str(expr.name) == str(self.expr.name)
        return structural_equal(matcher.value(expr), self.expr)


class VarPattern(DFPattern):
    """A variable, of a name if one is given."""

    def __init__(self, name_hint: str = "") -> None:
        self.name = name_hint

    kind: type = Var

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return isinstance(expr, self.kind) and self.name in ("", str(expr.name_hint))


class DataflowVarPattern(VarPattern):
    """A variable local to a dataflow block, of a name if one is given."""

    kind = DataflowVar


class GlobalVarPattern(VarPattern):
    """The name of a function in the module, this one if one is given."""

    kind = GlobalVar


class ExternFuncPattern(DFPattern):
    """A function of the runtime, of a name if one is given."""

    def __init__(self, global_symbol: str = "") -> None:
        self.global_symbol = global_symbol

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        value = matcher.value(expr)
        return isinstance(value, ExternFunc) and self.global_symbol in (
            "",
            str(value.global_symbol),
        )


class ConstantPattern(DFPattern):
    """A constant tensor."""

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return isinstance(matcher.value(expr), Constant)


class CallPattern(DFPattern):
    """A call.

    The operands of ``relax.add`` and ``relax.multiply`` may come in either order.

    Parameters
    ----------
    op : what is called.
    args : operands, in order.
    varg_default_wildcard : whether the call may have more operands than these.
    add_constraint : whether the current :class:`PatternContext` is told that each operand is used
        by the call as that operand.
    """

    takes_in = True

    def __init__(
        self,
        op: DFPattern,
        args: Sequence[DFPattern],
        varg_default_wildcard: bool = False,
        add_constraint: bool = True,
    ) -> None:
        self.op = op
        self.args = list(args)
        self.varg_default_wildcard = varg_default_wildcard
        for index, arg in enumerate(self.args if add_constraint else ()):
            arg.used_by(self, index)

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        call = matcher.value(expr)
        if not isinstance(call, Call) or not matcher.match(self.op, call.op):
            return False
        operands = list(call.args)
        if self.varg_default_wildcard:
            operands = operands[: len(self.args)]
        if matcher.match_all(self.args, operands):
            return True
        return is_commutative(call) and matcher.match_all(self.args, operands[::-1])


class FunctionPattern(DFPattern):
    """A function with parameters and a body."""

    def __init__(self, params: Sequence[DFPattern], body: DFPattern) -> None:
        self.params = list(params)
        self.body = body

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        func = matcher.value(expr)
        if not isinstance(func, Function) or not matcher.match_all(self.params, func.params):
            return False
        inner = {b.var: b.value for block in func.body.blocks for b in block.bindings}
        deeper = Matcher({**matcher.var2val, **inner}, matcher.found)
        if not deeper.match(self.body, func.body.body):
            return False
        matcher.found = deeper.found
        return True


class TuplePattern(DFPattern):
    """A tuple of these fields, in order."""

    takes_in = True

    def __init__(self, fields: Sequence[DFPattern]) -> None:
        self.fields = list(fields)

    def __getitem__(self, index: int | None) -> TupleGetItemPattern:
        """A field; any field if `index` is None.

        Raises
        ------
        IndexError : there is no such field.
        """
        if index is None:
            return TupleGetItemPattern(self)
        if not -len(self) <= index < len(self):
            raise error.IndexError(f"TuplePattern: index {index} of {len(self)} fields")
        return TupleGetItemPattern(self, index % len(self))

    def __len__(self) -> int:
        return len(self.fields)

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        value = matcher.value(expr)
        return isinstance(value, Tuple) and matcher.match_all(self.fields, value.fields)


class UnorderedTuplePattern(DFPattern):
    """A tuple of these fields, in any order."""

    takes_in = True

    def __init__(self, fields: Sequence[DFPattern]) -> None:
        self.fields = list(fields)

    def __len__(self) -> int:
        return len(self.fields)

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        value = matcher.value(expr)
        if not isinstance(value, Tuple) or len(value.fields) != len(self):
            return False
        return self._assigned(0, list(value.fields), matcher)

    def _assigned(self, first: int, fields: list[RelayExpr], matcher: Matcher) -> bool:
        """Whether the patterns from one on are each like a field of their own."""
        if not fields:
            return True

        def fits(k: int) -> bool:
            rest = [*fields[:k], *fields[k + 1 :]]
            return matcher.match(self.fields[first], fields[k]) and self._assigned(
                first + 1, rest, matcher
            )

        return any(matcher.attempt(functools.partial(fits, k)) for k in range(len(fields)))


class TupleGetItemPattern(DFPattern):
    """A field of a tuple; any field if `index` is None or -1."""

    takes_in = True

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple = tuple_value
        self.index = -1 if index is None else index

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        if isinstance(expr, Var) and expr in matcher.var2val:
            return self.accepts(matcher.var2val[expr], matcher)
        if not isinstance(expr, TupleGetItem) or self.index not in (-1, expr.index):
            return False
        return matcher.match(self.tuple, expr.tuple_value)


class OrPattern(DFPattern):
    """Either of two patterns; the left one is tried first."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = left, right

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return matcher.match(self.left, expr) or matcher.match(self.right, expr)


class AndPattern(DFPattern):
    """Both of two patterns."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = left, right

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return matcher.match(self.left, expr) and matcher.match(self.right, expr)


class NotPattern(DFPattern):
    """What a pattern does not match."""

    def __init__(self, to_reject: DFPattern) -> None:
        self.reject = to_reject

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        found = dict(matcher.found)
        rejected = matcher.match(self.reject, expr)
        matcher.found = found
        return not rejected


class WildcardPattern(DFPattern):
    """Anything."""

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return True


class StructInfoPattern(DFPattern):
    """A pattern whose value's struct info implies this one."""

    def __init__(self, pattern: DFPattern, struct_info: StructInfo) -> None:
        self.pattern, self.struct_info = pattern, struct_info

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        info = expr.struct_info
        if info is None or not matcher.match(self.pattern, expr):
            return False
        return struct_info_base_check(self.struct_info, info) == BaseCheckResult.PASS


class TypePattern(DFPattern):
    """A pattern whose value is of a type."""

    def __init__(self, pattern: DFPattern, ttype: Type) -> None:
        self.pattern, self.type = pattern, ttype

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        info = expr.struct_info
        return (
            info is not None
            and structural_equal(info.as_type(), self.type)
            and matcher.match(self.pattern, expr)
        )


class DataTypePattern(DFPattern):
    """A pattern whose value is a tensor of an element type."""

    def __init__(self, pattern: DFPattern, dtype: str) -> None:
        self.pattern, self.dtype = pattern, str(dtype)

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        info = expr.struct_info
        fits = isinstance(info, TensorStructInfo) and str(info.dtype) == self.dtype
        return fits and matcher.match(self.pattern, expr)


class ShapePattern(DFPattern):
    """A pattern whose value is a tensor of a shape."""

    def __init__(self, pattern: DFPattern, shape: Sequence[PrimExpr | int]) -> None:
        self.pattern, self.shape = pattern, list(shape)

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        info = expr.struct_info
        if not isinstance(info, TensorStructInfo) or not isinstance(info.shape, ShapeExpr):
            return False
        return same_extents(self.shape, info.shape.values) and matcher.match(self.pattern, expr)


class PrimArrPattern(DFPattern):
    """A shape with these extents."""

    def __init__(self, shape: Sequence[PrimExpr | int]) -> None:
        self.fields = [convert(extent) for extent in shape]

    def __getitem__(self, index: int) -> PrimExpr:
        if index >= len(self):
            raise error.IndexError(f"PrimArrPattern: index {index} of {len(self)} extents")
        return self.fields[index]

    def __len__(self) -> int:
        return len(self.fields)

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        value = matcher.value(expr)
        return isinstance(value, ShapeExpr) and same_extents(self.fields, value.values)


class AttrPattern(DFPattern):
    """A pattern whose call, operator or function has settings with these values."""

    def __init__(self, pattern: DFPattern, attrs: Mapping[str, Any]) -> None:
        self.pattern, self.attrs = pattern, dict(attrs)

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return self._has_attrs(matcher.value(expr)) and matcher.match(self.pattern, expr)

    def _has_attrs(self, value: RelayExpr) -> bool:
        if isinstance(value, Op):
            return all(_equal(value.get_attr(key), want) for key, want in self.attrs.items())
        if not isinstance(value, (Call, Function)):
            return False
        if value.attrs is None:
            return not self.attrs
        return all(
            key in value.attrs and _equal(value.attrs[key], want)
            for key, want in self.attrs.items()
        )


class SameShapeConstraint:
    """Tensors that must have one shape, said in the current :class:`PatternContext`."""

    def __init__(self, *args: DFPattern) -> None:
        self.args = list(args)
        add_constraint(self)


class PatternSeq:
    """Patterns in a chain, each of which reads the value of the one before.

    Parameters
    ----------
    patterns : the chain.
    only_use : whether nothing else reads a value before the last.
    """

    def __init__(self, patterns: Sequence[DFPattern], only_use: bool = False) -> None:
        self.patterns = list(patterns)
        self._links = [(only_use, -1)] * (len(self.patterns) - 1)
        for (first, second), (only, index) in zip(self._pairs(), self._links):
            add_constraint(Constraint(first, second, only, index))

    def _pairs(self) -> list[tuple[DFPattern, DFPattern]]:
        return list(zip(self.patterns, self.patterns[1:]))

    def _joined(self, other: DFPattern | PatternSeq, only: bool, index: int) -> PatternSeq:
        right = other if isinstance(other, PatternSeq) else PatternSeq([other])
        add_constraint(Constraint(self.patterns[-1], right.patterns[0], only, index))
        chain = PatternSeq([])
        chain.patterns = [*self.patterns, *right.patterns]
        chain._links = [*self._links, (only, index), *right._links]
        return chain

    def used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """The chain that goes on with another: its first pattern reads this one's last value."""
        return self._joined(other, False, index)

    def only_used_by(self, other: DFPattern | PatternSeq, index: int = -1) -> PatternSeq:
        """As :meth:`used_by`, and nothing else reads that value."""
        return self._joined(other, True, index)

    def __getitem__(self, index: int) -> DFPattern:
        return self.patterns[index]

    def __len__(self) -> int:
        return len(self.patterns)

    def __xor__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        """``a ^ b`` is ``a.used_by(b)``."""
        return self.used_by(other)

    def __rshift__(self, other: DFPattern | PatternSeq) -> PatternSeq:
        """``a >> b`` is ``a.only_used_by(b)``."""
        return self.only_used_by(other)

    def dup(self) -> PatternSeq:
        """A chain of new patterns that are written like these, with the same constraints."""
        chain = PatternSeq([])
        chain.patterns = [pattern.dup() for pattern in self.patterns]
        chain._links = list(self._links)
        for (first, second), (only, index) in zip(chain._pairs(), chain._links):
            add_constraint(Constraint(first, second, only, index))
        return chain


def is_var(name: str = "") -> VarPattern:
    """A variable, of a name if one is given."""
    return VarPattern(name)


def is_dfv(name: str = "") -> DataflowVarPattern:
    """A variable local to a dataflow block, of a name if one is given."""
    return DataflowVarPattern(name)


def is_gv(name: str = "") -> GlobalVarPattern:
    """The name of a function in the module, this one if one is given."""
    return GlobalVarPattern(name)


def is_const() -> ConstantPattern:
    """A constant tensor."""
    return ConstantPattern()


def is_expr(expr: RelayExpr) -> ExprPattern:
    """An expression that is equal in structure."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """An operator ("relax.add"), to be called with patterns for its operands."""
    return ExprPattern(Op.get(op_name))


def is_tuple(
    fields: Sequence[DFPattern], unordered: bool = False
) -> TuplePattern | UnorderedTuplePattern:
    """A tuple of these fields.

    Parameters
    ----------
    unordered : whether the fields may come in any order.
    """
    if not isinstance(fields, Sequence):
        raise error.ValueError("is_tuple: the fields must be a list or a tuple")
    return UnorderedTuplePattern(fields) if unordered else TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """A field of a tuple; any field if `index` is None."""
    return TupleGetItemPattern(tuple_value, index)


def wildcard() -> WildcardPattern:
    """Anything."""
    return WildcardPattern()


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """A tensor of an element type."""
    return DataTypePattern(pattern or wildcard(), dtype)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """A call, operator or function with settings of these values."""
    return AttrPattern(pattern or wildcard(), attrs)


def is_shape(shape: Sequence[PrimExpr | int]) -> PrimArrPattern:
    """A shape with these extents; for a tensor of a shape see :meth:`DFPattern.has_shape`."""
    if not isinstance(shape, Sequence):
        raise error.ValueError("is_shape takes a list or tuple as input.")
    return PrimArrPattern(shape)


def reject(pattern: DFPattern) -> NotPattern:
    """What a pattern does not match."""
    return NotPattern(pattern)


def _operands(args: Sequence[DFPattern] | DFPattern | None) -> DFPattern:
    if args is None:
        return wildcard()
    return args if isinstance(args, DFPattern) else TuplePattern(args)


def is_call_tir(
    func_name: str,
    args: Sequence[DFPattern] | DFPattern | None = None,
    tir_vars: DFPattern | None = None,
) -> CallPattern:
    """A ``call_tir`` of the module's function of a name.

    Parameters
    ----------
    args : the tensors it takes; None for any.
    tir_vars : the shape with the scalars it takes, if it takes some.
    """
    parts = [GlobalVarPattern(func_name), _operands(args), *([tir_vars] if tir_vars else [])]
    return is_op("relax.call_tir")(*parts, add_constraint=False)


def is_call_dps_packed(
    func_name: str, args: Sequence[DFPattern] | DFPattern | None = None
) -> CallPattern:
    """A ``call_dps_packed`` of the runtime's function of a name, with tensors or any."""
    parts = [ExternFuncPattern(func_name), _operands(args)]
    return is_op("relax.call_dps_packed")(*parts, add_constraint=False)


def is_call_packed(func_name: str, args: Sequence[DFPattern] | None = None) -> CallPattern:
    """A direct call of the runtime's function of a name, with operands or any."""
    func = ExternFuncPattern(func_name)
    if args is None:
        return func(varg_default_wildcard=True, add_constraint=False)
    return func(*args)


def make_fused_bias_activation_pattern(
    op_name: str, with_bias: bool = False, activation: str | None = None
) -> DFPattern:
    """An operator of two operands, then a bias and an activation.

    Parameters
    ----------
    op_name : for instance "relax.nn.conv2d".
    with_bias : whether something is added to it.
    activation : operator after that, for instance "relax.nn.relu".
    """
    out = is_op(op_name)(wildcard(), wildcard())
    if with_bias:
        out = is_op("relax.add")(out, wildcard())
    return is_op(activation)(out) if activation else out
