"""What patterns are written in. A pattern is known by identity, so one that is used at two places
stands for one expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import error
from tvm.ir import Op, RelayExpr, TensorType, Type, structural_equal

from ..expr import Call, Constant, Function, If, Let, Tuple, TupleGetItem, Var, as_expr
from ..expr_functor import operands
from ..op.registry import find_row, plain, settings_of
from .matching import Matcher
from .partitioning import partition

__all__ = [
    "AltPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFPattern",
    "DataTypePattern",
    "DominatorPattern",
    "ExprPattern",
    "FunctionPattern",
    "IfPattern",
    "LetPattern",
    "ShapePattern",
    "TupleGetItemPattern",
    "TuplePattern",
    "TypePattern",
    "VarPattern",
    "WildcardPattern",
    "dominates",
    "has_attr",
    "has_dtype",
    "has_shape",
    "has_type",
    "is_constant",
    "is_expr",
    "is_if",
    "is_let",
    "is_op",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "match",
    "wildcard",
]


class DFPattern:
    """A pattern of expressions.

    Attributes
    ----------
    open_end : whether what it matches comes from outside of the match.
    embedded : whether what it matches stays in functions that matches become.
    """

    open_end = False
    embedded = False

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        """Whether an expression matches, given what parts are bound already."""
        raise NotImplementedError

    def text(self, part: Callable[[Any], str]) -> str:
        """How the pattern reads, where `part` is the text of a part or of a list of parts."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return _Printer()(self)

    def __call__(self, *args: DFPattern | None) -> CallPattern:
        """Calls of what this matches. A single None leaves the operands open."""
        if args == (None,):
            return CallPattern(self, None)
        return CallPattern(self, args)  # type: ignore[arg-type]

    def __or__(self, other: DFPattern) -> AltPattern:
        return AltPattern(self, other)

    def __add__(self, other: DFPattern) -> CallPattern:
        return is_op("add")(self, other)

    def __sub__(self, other: DFPattern) -> CallPattern:
        return is_op("subtract")(self, other)

    def __mul__(self, other: DFPattern) -> CallPattern:
        return is_op("multiply")(self, other)

    def __truediv__(self, other: DFPattern) -> CallPattern:
        return is_op("divide")(self, other)

    def has_attr(self, attrs: Mapping[str, Any]) -> AttrPattern:
        """What this matches, with attributes of an operator, settings of a call or attributes of a
        function."""
        return AttrPattern(self, attrs)

    def has_type(self, ttype: Type) -> TypePattern:
        """What this matches, of a type."""
        return TypePattern(self, ttype)

    def has_dtype(self, dtype: str) -> DataTypePattern:
        """What this matches, of an element type."""
        return DataTypePattern(self, dtype)

    def has_shape(self, shape: Sequence[Any]) -> ShapePattern:
        """What this matches, of a shape."""
        return ShapePattern(self, shape)

    def optional(self, option_constructor: Callable[[DFPattern], DFPattern]) -> DFPattern:
        """What this matches, or that with something behind it."""
        return option_constructor(self) | self

    def dominates(self, parent: DFPattern, path: DFPattern | None = None) -> DominatorPattern:
        """This, all of whose ways from `parent` go through what `path` matches."""
        return DominatorPattern(parent, wildcard() if path is None else path, self)

    def match(self, expr: RelayExpr) -> bool:
        """Whether an expression matches."""
        return Matcher().match(self, as_expr(expr))

    def partition(
        self,
        expr: RelayExpr,
        attrs: Mapping[str, Any] | None = None,
        check: Callable[[RelayExpr], bool] = lambda _: True,
    ) -> RelayExpr:
        """The expression with every match as the call of a function; see :func:`partition`."""
        return partition(self, expr, attrs, check)


class _Printer:
    """Texts of patterns, as TVM writes them: every pattern that has parts is numbered by when it is
    met first, and what occurs again is called by its number."""

    def __init__(self) -> None:
        self._numbers: dict[DFPattern, int] = {}

    def __call__(self, part: Any) -> str:
        if part is None or isinstance(part, Sequence):
            return f"[{', '.join(self(p) for p in part or ())}]"
        if part in self._numbers:
            return f"(invoke pattern id {self._numbers[part]})"
        number = self._numbers[part] = len(self._numbers)
        text = part.text(self)
        plain_text = isinstance(part, WildcardPattern | ExprPattern | VarPattern | ConstantPattern)
        return text if plain_text else f"(id {number}): {text}"


class WildcardPattern(DFPattern):
    """Everything, or what another pattern matches, which may hold this one."""

    def __init__(self) -> None:
        self._target: DFPattern | None = None

    @property
    def open_end(self) -> bool:  # type: ignore[override]
        return self._target is None

    def redirect_to(self, pattern: DFPattern) -> None:
        """Match from now on what a pattern does. One that holds this wildcard matches chains:
        ``chain.redirect_to(is_op("nn.relu")(chain) | wildcard())``."""
        self._target = pattern

    def text(self, part: Callable[[Any], str]) -> str:
        return "*"

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        # Each link of a chain is bound by itself.
        return self._target is None or matcher.match_apart(self._target, expr)


class ExprPattern(DFPattern):
    """One expression: an operator, or what is equal to it."""

    open_end = True

    def __init__(self, expr: RelayExpr) -> None:
        self.expr = as_expr(expr)

    def text(self, part: Callable[[Any], str]) -> str:
        return str(self.expr)

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return expr.same_as(self.expr) or structural_equal(self.expr, expr)


class VarPattern(DFPattern):
    """Variables, of a name if one is given."""

    open_end = True

    def __init__(self, name: str = "") -> None:
        self.name = name

    def text(self, part: Callable[[Any], str]) -> str:
        return f"VarPattern({self.name})"

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return isinstance(expr, Var) and self.name in ("", expr.name)


class ConstantPattern(DFPattern):
    """Constants."""

    embedded = True

    def text(self, part: Callable[[Any], str]) -> str:
        return "ConstantPattern()"

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return isinstance(expr, Constant)


# Operands of these may come in either order.
_COMMUTATIVE = frozenset(["add", "multiply", "maximum", "minimum", "equal", "not_equal",
                          "logical_and", "logical_or"])  # fmt: skip


class CallPattern(DFPattern):
    """Calls; `args` None leaves the operands open."""

    def __init__(self, op: DFPattern, args: Sequence[DFPattern] | None) -> None:
        self.op = op
        self.args = None if args is None else list(args)

    def text(self, part: Callable[[Any], str]) -> str:
        return f"CallPatternNode({part(self.op)}, {part(self.args)})"

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        if not isinstance(expr, Call) or not matcher.match(self.op, expr.op):
            return False
        if self.args is None:
            return True
        args = list(expr.args)
        if matcher.match_all(self.args, args):
            return True
        swaps = isinstance(expr.op, Op) and str(expr.op.name) in _COMMUTATIVE
        return swaps and matcher.match_all(self.args, args[::-1])


class FunctionPattern(DFPattern):
    """Functions; `params` None leaves the parameters open."""

    def __init__(self, params: Sequence[DFPattern] | None, body: DFPattern) -> None:
        self.params = None if params is None else list(params)
        self.body = body

    def text(self, part: Callable[[Any], str]) -> str:
        return f"FunctionPatternNode({part(self.params)}, {part(self.body)})"

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        if not isinstance(expr, Function):
            return False
        fits = self.params is None or matcher.match_all(self.params, list(expr.params))
        return fits and matcher.match(self.body, expr.body)


class TuplePattern(DFPattern):
    """Tuples; `fields` None leaves the fields open."""

    def __init__(self, fields: Sequence[DFPattern] | None) -> None:
        self.fields = None if fields is None else list(fields)

    def text(self, part: Callable[[Any], str]) -> str:
        return f"TuplePattern({part(self.fields)})"

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        if not isinstance(expr, Tuple):
            return False
        return self.fields is None or matcher.match_all(self.fields, list(expr.fields))


class TupleGetItemPattern(DFPattern):
    """Fields of tuples; `index` None is any."""

    def __init__(self, tuple_value: DFPattern, index: int | None = None) -> None:
        self.tuple_value = tuple_value
        self.index = index

    def text(self, part: Callable[[Any], str]) -> str:
        index = -1 if self.index is None else self.index
        return f"TupleGetItemPatternNode({part(self.tuple_value)}, {index})"

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        if not isinstance(expr, TupleGetItem) or self.index not in (None, int(expr.index)):
            return False
        return matcher.match(self.tuple_value, expr.tuple_value)


class IfPattern(DFPattern):
    """Branches."""

    def __init__(self, cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> None:
        self.parts = [cond, true_branch, false_branch]

    def text(self, part: Callable[[Any], str]) -> str:
        return f"IfPattern({', '.join(part(p) for p in self.parts)})"

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return isinstance(expr, If) and matcher.match_all(
            self.parts, [expr.cond, expr.true_branch, expr.false_branch]
        )


class LetPattern(DFPattern):
    """Lets."""

    def __init__(self, var: DFPattern, value: DFPattern, body: DFPattern) -> None:
        self.parts = [var, value, body]

    def text(self, part: Callable[[Any], str]) -> str:
        return f"LetPatternNode({', '.join(part(p) for p in self.parts)})"

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return isinstance(expr, Let) and matcher.match_all(
            self.parts, [expr.var, expr.value, expr.body]
        )


class AltPattern(DFPattern):
    """One or the other; the first is tried first."""

    def __init__(self, left: DFPattern, right: DFPattern) -> None:
        self.left, self.right = left, right

    def text(self, part: Callable[[Any], str]) -> str:
        return f"AltPattern({part(self.left)} | {part(self.right)})"

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return matcher.match(self.left, expr) or matcher.match(self.right, expr)


class _Refined(DFPattern):
    """What another pattern matches, with a condition on it."""

    def __init__(self, pattern: DFPattern) -> None:
        self.pattern = pattern
        self.open_end = pattern.open_end
        self.embedded = pattern.embedded

    def holds(self, expr: RelayExpr) -> bool:
        """Whether the condition does."""
        raise NotImplementedError

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        return matcher.match(self.pattern, expr) and self.holds(expr)


def _attrs_of(expr: RelayExpr) -> Mapping[str, Any]:
    if isinstance(expr, Call):
        row = find_row(expr.op)
        return {**(row.settings if row else {}), **settings_of(expr)}
    if isinstance(expr, Function) and expr.attrs is not None:
        return {str(k): plain(v) for k, v in expr.attrs.items()}
    return {}


class AttrPattern(_Refined):
    """Attributes of operators, calls and functions."""

    def __init__(self, pattern: DFPattern, attrs: Mapping[str, Any]) -> None:
        super().__init__(pattern)
        self.attrs = {key: plain(value) for key, value in attrs.items()}

    def text(self, part: Callable[[Any], str]) -> str:
        return f"AttrPattern({part(self.pattern)} has attributes {self.attrs})"

    def holds(self, expr: RelayExpr) -> bool:
        if isinstance(expr, Op):
            found = {k: plain(v) for k in self.attrs if (v := expr.get_attr(k)) is not None}
        else:
            found = dict(_attrs_of(expr))
        return all(k in found and found[k] == v for k, v in self.attrs.items())


def _type_of(expr: RelayExpr) -> Type | None:
    if isinstance(expr, Var):
        return expr.checked_type_ or expr.type_annotation
    if isinstance(expr, Constant):
        return TensorType(list(expr.data.shape), str(expr.data.dtype))
    if expr.checked_type_ is None:
        raise error.ValueError(
            "relay.dataflow_pattern: types are not known; run relay.transform.InferType before, or "
            "set require_type"
        )
    return expr.checked_type_


class TypePattern(_Refined):
    """Values of a type."""

    def __init__(self, pattern: DFPattern, ttype: Type) -> None:
        super().__init__(pattern)
        self.type = ttype

    def text(self, part: Callable[[Any], str]) -> str:
        return f"TypePattern({part(self.pattern)} has type {self.type})"

    def holds(self, expr: RelayExpr) -> bool:
        found = _type_of(expr)
        return found is not None and structural_equal(found, self.type)


class DataTypePattern(_Refined):
    """Tensors of an element type."""

    def __init__(self, pattern: DFPattern, dtype: str) -> None:
        super().__init__(pattern)
        self.dtype = dtype

    def text(self, part: Callable[[Any], str]) -> str:
        return f"DataTypePattern({part(self.pattern)} has dtype {self.dtype})"

    def holds(self, expr: RelayExpr) -> bool:
        found = _type_of(expr)
        return isinstance(found, TensorType) and str(found.dtype) == self.dtype


class ShapePattern(_Refined):
    """Tensors of a shape."""

    def __init__(self, pattern: DFPattern, shape: Sequence[Any]) -> None:
        super().__init__(pattern)
        self.shape = list(shape)

    def text(self, part: Callable[[Any], str]) -> str:
        return f"ShapePattern({part(self.pattern)} has shape {self.shape})"

    def holds(self, expr: RelayExpr) -> bool:
        found = _type_of(expr)
        return (
            isinstance(found, TensorType)
            and len(found.shape) == len(self.shape)
            and all(structural_equal(a, b) if not isinstance(b, int) else plain(a) == b
                    for a, b in zip(found.shape, self.shape))
        )  # fmt: skip


class DominatorPattern(DFPattern):
    """A parent, a child, and every expression on a way from one to the other."""

    def __init__(self, parent: DFPattern, path: DFPattern, child: DFPattern) -> None:
        self.parent, self.path, self.child = parent, path, child

    def text(self, part: Callable[[Any], str]) -> str:
        return f"DominatorPattern({part(self.parent)}, {part(self.path)}, {part(self.child)})"

    def matches(self, expr: RelayExpr, matcher: Matcher) -> bool:
        if not matcher.match(self.child, expr):
            return False
        order: list[RelayExpr] = []
        level = [expr]
        while level:
            order += level
            known = set(order)
            level = list(dict.fromkeys(o for e in level for o in operands(e) if o not in known))
        for candidate in order[1:]:
            mark = matcher.mark()
            if matcher.match(self.parent, candidate):
                if matcher.match_path(self.path, _between(expr, candidate)):
                    return True
                matcher.undo(mark)
        return False


def _between(child: RelayExpr, parent: RelayExpr) -> list[RelayExpr]:
    """Expressions on the ways from a parent to a child, without the two."""
    reaches: dict[RelayExpr, bool] = {parent: True}
    pending = [(child, False)]
    while pending:
        node, ready = pending.pop()
        if node in reaches:
            continue
        if ready:
            reaches[node] = any(reaches[o] for o in operands(node))
        else:
            pending.append((node, True))
            pending.extend((o, False) for o in operands(node))
    ends = (parent, child)
    return [e for e, found in reaches.items() if found and not any(e.same_as(x) for x in ends)]


def wildcard() -> WildcardPattern:
    """Everything; an open end of the match."""
    return WildcardPattern()


def is_expr(expr: RelayExpr) -> ExprPattern:
    """What is equal to an expression."""
    return ExprPattern(expr)


def is_op(op_name: str) -> ExprPattern:
    """An operator; called with patterns of operands, its calls.

    Raises
    ------
    ValueError : there is no operator of that name.
    """
    return ExprPattern(Op.get(op_name))


def is_var(name: str = "") -> VarPattern:
    """Variables, of a name if one is given."""
    return VarPattern(name)


def is_constant() -> ConstantPattern:
    """Constants."""
    return ConstantPattern()


def is_tuple(fields: Sequence[DFPattern] | None) -> TuplePattern:
    """Tuples; None leaves the fields open."""
    return TuplePattern(fields)


def is_tuple_get_item(tuple_value: DFPattern, index: int | None = None) -> TupleGetItemPattern:
    """Fields of tuples; without an index any."""
    return TupleGetItemPattern(tuple_value, index)


def is_if(cond: DFPattern, true_branch: DFPattern, false_branch: DFPattern) -> IfPattern:
    """Branches."""
    return IfPattern(cond, true_branch, false_branch)


def is_let(var: DFPattern, value: DFPattern, body: DFPattern) -> LetPattern:
    """Lets."""
    return LetPattern(var, value, body)


def has_attr(attrs: Mapping[str, Any], pattern: DFPattern | None = None) -> AttrPattern:
    """Expressions with attributes."""
    return (pattern or wildcard()).has_attr(attrs)


def has_type(ttype: Type, pattern: DFPattern | None = None) -> TypePattern:
    """Values of a type."""
    return (pattern or wildcard()).has_type(ttype)


def has_dtype(dtype: str, pattern: DFPattern | None = None) -> DataTypePattern:
    """Tensors of an element type."""
    return (pattern or wildcard()).has_dtype(dtype)


def has_shape(shape: Sequence[Any], pattern: DFPattern | None = None) -> ShapePattern:
    """Tensors of a shape."""
    return (pattern or wildcard()).has_shape(shape)


def dominates(parent: DFPattern, path: DFPattern, child: DFPattern) -> DominatorPattern:
    """A child, all of whose ways from the parent go through what `path` matches."""
    return DominatorPattern(parent, path, child)


def match(pattern: DFPattern, expr: RelayExpr) -> bool:
    """Whether an expression matches."""
    return pattern.match(expr)
