"""Rewrites as values: what to look for and what to put there, to be joined and applied."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import error, tir
from tvm.arith import Analyzer
from tvm.ir import DictAttrs, IRModule, PrimExpr, RelayExpr, structural_equal

from ..expr import (
    Call,
    Function,
    MatchCast,
    PrimValue,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
)
from ..rewriter import graph_functions, uses_of
from ..struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from ..struct_info_relations import (
    BaseCheckResult,
    struct_info_base_check,
    substitute_struct_info,
)
from .context import PatternContext
from .match import Matcher
from .pattern import (
    CallPattern,
    DFPattern,
    ExprPattern,
    PrimArrPattern,
    TupleGetItemPattern,
    TuplePattern,
    wildcard,
)
from .rewrite import rewrite_bindings, rewrite_call

__all__ = ["ExprPatternRewriter", "OrRewriter", "PatternMatchingRewriter", "TupleRewriter"]

Replacement = Callable[[RelayExpr, Mapping[DFPattern, RelayExpr]], RelayExpr | None]
"""From what matched, and what each part of the pattern stands for, to what is there instead."""


class PatternMatchingRewriter(abc.ABC):
    """A rewrite of graph functions.

    It is applied by calling it with a function, or with a module, whose graph functions are all
    rewritten. ``first | second`` applies one after the other.
    """

    @staticmethod
    def from_pattern(pattern: DFPattern, func: Replacement) -> ExprPatternRewriter:
        """The rewrite of every value that is like a pattern; see :class:`ExprPatternRewriter`."""
        return ExprPatternRewriter(pattern, func)

    @staticmethod
    def from_module(mod: IRModule) -> PatternMatchingRewriter:
        """The rewrite that the functions ``pattern`` and ``replacement`` of a module describe.

        Both take the same parameters, which stand for any values that fit their struct info;
        symbolic extents stand for any extents. A tuple as the result of ``pattern`` stands for
        several values in one dataflow block, of which ``replacement`` gives one each.

        >>> @R.rewriter
        ... class AddTwice:
        ...     @R.function
        ...     def pattern(x: R.Tensor(dtype="float32"), y: R.Tensor(dtype="float32")):
        ...         return R.add(R.add(x, y), y)
        ...
        ...     @R.function
        ...     def replacement(x: R.Tensor(dtype="float32"), y: R.Tensor(dtype="float32")):
        ...         return R.add(x, R.multiply(y, R.const(2.0)))
        >>> mod = AddTwice(mod)

        Raises
        ------
        ValueError : the module has other functions than these two, they take or give different
            things, or they have what no pattern can describe (branches, casts, calls of functions).
        """
        return _from_module(mod)

    def __call__(self, obj: Function | IRModule) -> Function | IRModule:
        """The function, or the module with its graph functions, after the rewrite.

        Raises
        ------
        TypeError : neither a graph function nor a module.
        """
        if isinstance(obj, Function):
            return self.rewrite(obj)
        if not isinstance(obj, IRModule):
            raise error.TypeError(
                f"PatternMatchingRewriter: a graph function or a module is rewritten, not a "
                f"{type(obj).__name__}"
            )
        functions = dict(obj.functions.items())
        for gvar, func in graph_functions(obj).items():
            functions[gvar] = self.rewrite(func)
        same = all(obj.functions[gvar].same_as(func) for gvar, func in functions.items())
        return obj if same else obj.with_functions(functions)

    @abc.abstractmethod
    def rewrite(self, func: Function) -> Function:
        """The function after the rewrite; the given one if nothing matched."""

    def __or__(self, other: PatternMatchingRewriter) -> OrRewriter:
        """This, and then another."""
        return OrRewriter(self, other)


class ExprPatternRewriter(PatternMatchingRewriter):
    """Another value wherever a pattern matches, as :func:`rewrite_call` puts it there.

    Parameters
    ----------
    func : from the value that matched, and what each part of the pattern stands for, to the new
        value; None to leave it.
    """

    def __init__(self, pattern: DFPattern, func: Replacement) -> None:
        self.pattern = pattern
        self.func = func

    def rewrite(self, func: Function) -> Function:
        def chosen(value: RelayExpr, found: Mapping[DFPattern, RelayExpr]) -> RelayExpr:
            new = self.func(value, found)
            return value if new is None else new

        return rewrite_call(self.pattern, chosen, func)


class OrRewriter(PatternMatchingRewriter):
    """One rewrite, and then another."""

    def __init__(self, lhs: PatternMatchingRewriter, rhs: PatternMatchingRewriter) -> None:
        self.lhs = lhs
        self.rhs = rhs

    def rewrite(self, func: Function) -> Function:
        return self.rhs.rewrite(self.lhs.rewrite(func))


class TupleRewriter(PatternMatchingRewriter):
    """Other values for several that are found together in a dataflow block.

    Parameters
    ----------
    patterns : calls, tuples or fields; what they have in common is one value.
    func : from the tuple of the variables that matched, and what each part of the patterns stands
        for, to a tuple of the new values; None to leave them.
    """

    def __init__(self, patterns: Sequence[DFPattern], func: Replacement) -> None:
        self.patterns = list(patterns)
        self.func = func

    def rewrite(self, func: Function) -> Function:
        with PatternContext() as context:
            for pattern in self.patterns:
                if not isinstance(pattern, CallPattern | TuplePattern | TupleGetItemPattern):
                    raise error.ValueError(
                        "TupleRewriter: the patterns are calls, tuples or fields, not "
                        f"{type(pattern).__name__}"
                    )
                _relate(pattern)

        def chosen(
            found: Mapping[DFPattern, Var], values: Mapping[Var, RelayExpr]
        ) -> Mapping[Var, RelayExpr]:
            variables = [found[pattern] for pattern in self.patterns]
            parts: dict[DFPattern, RelayExpr] = dict(found)
            for pattern, var in zip(self.patterns, variables):
                parts |= pattern.extract_matched_expr(var, values) or {}
            new = self.func(Tuple(variables), parts)
            if new is None:
                return {}
            fields = new.fields if isinstance(new, Tuple) else None
            if fields is not None and len(fields) != len(variables):
                raise error.ValueError(
                    f"TupleRewriter: {len(fields)} values for {len(variables)} that matched"
                )
            return {
                var: TupleGetItem(new, at) if fields is None else fields[at]
                for at, var in enumerate(variables)
            }

        return rewrite_bindings(context, chosen, func)


def _relate(pattern: DFPattern) -> None:
    """Say in the current context what reads what in a pattern."""
    parts: Sequence[DFPattern] = ()
    inner = getattr(pattern, "pattern", None)
    if isinstance(inner, DFPattern):
        _relate(inner)
    if isinstance(pattern, CallPattern):
        parts = pattern.args
    elif isinstance(pattern, TuplePattern):
        parts = pattern.fields
    elif isinstance(pattern, TupleGetItemPattern):
        parts = [pattern.tuple]
    for index, part in enumerate(parts):
        part.used_by(pattern, index)
        _relate(part)


def _from_module(mod: IRModule) -> PatternMatchingRewriter:
    functions = {str(gvar.name_hint): func for gvar, func in mod.functions.items()}
    if set(functions) != {"pattern", "replacement"} or not all(
        isinstance(func, Function) for func in functions.values()
    ):
        raise error.ValueError(
            "from_module: the module has graph functions named pattern and replacement and no "
            f"others, got {sorted(functions)}"
        )
    wanted, given = functions["pattern"], functions["replacement"]
    if len(wanted.params) != len(given.params):
        raise error.ValueError(
            f"from_module: pattern takes {len(wanted.params)} parameters, replacement "
            f"{len(given.params)}"
        )
    reader = _PatternReader(wanted)
    outputs = reader.outputs()
    count = _count_of(given.body.body.struct_info)
    if count != (len(outputs) if isinstance(wanted.body.body.struct_info, TupleStructInfo) else 1):
        raise error.ValueError("from_module: pattern and replacement do not give as many values")

    def replaced(_: RelayExpr, found: Mapping[DFPattern, RelayExpr]) -> RelayExpr | None:
        operands = [found[part] for part in reader.params]
        extents = _Extents()
        for param, operand in zip(wanted.params, operands):
            if not extents.fit(param.struct_info, operand.struct_info):
                return None
        for part, info in reader.open_parts:
            if not extents.fit(info, found[part].struct_info):
                return None
        return _instance(given, operands, extents)

    if isinstance(wanted.body.body.struct_info, TupleStructInfo):
        return TupleRewriter(outputs, replaced)
    return ExprPatternRewriter(outputs[0], replaced)


def _count_of(info: StructInfo) -> int:
    return len(info.fields) if isinstance(info, TupleStructInfo) else 1


class _CallWithSettings(CallPattern):
    """A call of the same operator, with all settings as those of a call."""

    def __init__(self, call: Call, args: Sequence[DFPattern]) -> None:
        super().__init__(ExprPattern(call.op), args, add_constraint=False)
        self._attrs = call.attrs or DictAttrs({})

    def accepts(self, expr: RelayExpr, matcher: Matcher) -> bool:
        call = matcher.value(expr)
        return (
            isinstance(call, Call)
            and structural_equal(call.attrs or DictAttrs({}), self._attrs)
            and super().accepts(expr, matcher)
        )


class _PatternReader:
    """A function as the pattern of what it computes of its parameters."""

    def __init__(self, func: Function) -> None:
        self._func = func
        self._made: dict[Var, DFPattern] = {}
        # Shapes and numbers of symbolic extents, which are compared once these are known.
        self.open_parts: list[tuple[DFPattern, StructInfo]] = []
        self.params = [wildcard().has_struct_info(_erased(p.struct_info)) for p in func.params]
        self._made.update(zip(func.params, self.params))
        for block in func.body.blocks:
            for binding in block.bindings:
                if isinstance(binding, MatchCast):
                    raise self._refusal("a cast")
                self._made[binding.var] = self._of(binding.value)

    def outputs(self) -> list[DFPattern]:
        """The patterns of what the function gives."""
        output = self._func.body.body
        made = self._of(output)
        found = made.fields if isinstance(made, TuplePattern) else [made]
        used = set(uses_of(output)) | {
            var
            for b in self._func.body.blocks
            for each in b.bindings
            for var in uses_of(each.value)
        }
        for param in self._func.params:
            if param not in used:
                raise error.ValueError(
                    f"from_module: pattern does not use its parameter {param.name_hint}"
                )
        if any(part in self.params for part in found):
            raise error.ValueError("from_module: pattern computes nothing of its parameters")
        return list(found)

    def _refusal(self, what: str) -> Exception:
        return error.ValueError(
            f"from_module: the function pattern has {what}, which is no pattern"
        )

    def _open(self, info: StructInfo) -> DFPattern:
        part = wildcard()
        self.open_parts.append((part, info))
        return part

    def _of(self, expr: RelayExpr) -> DFPattern:
        if isinstance(expr, Var):
            return self._made[expr]
        if isinstance(expr, Tuple):
            return TuplePattern([self._of(field) for field in expr.fields])
        if isinstance(expr, TupleGetItem):
            return TupleGetItemPattern(self._of(expr.tuple_value), int(expr.index))
        if isinstance(expr, ShapeExpr):
            fixed = all(isinstance(extent, tir.IntImm) for extent in expr.values)
            if fixed:
                return PrimArrPattern(list(expr.values))
            return self._open(ShapeStructInfo(list(expr.values)))
        if isinstance(expr, Call):
            called = str(getattr(expr.op, "name", expr.op))
            if not called.startswith("relax."):
                raise self._refusal(f"a call of {called}")
            arguments = [self._of(arg) for arg in expr.args]
            return _CallWithSettings(expr, arguments)
        if isinstance(expr, PrimValue) and not isinstance(expr.value, tir.IntImm | tir.FloatImm):
            return self._open(PrimStructInfo(value=expr.value))
        if type(expr).__name__ in ("If", "SeqExpr", "Function", "GlobalVar"):
            raise self._refusal(f"a {type(expr).__name__}")
        return ExprPattern(expr)


def _erased(info: StructInfo) -> StructInfo:
    """A struct info that leaves open what symbolic extents are."""
    if isinstance(info, TensorStructInfo):
        shape = getattr(info.shape, "values", None)
        if shape is not None and not all(isinstance(extent, tir.IntImm) for extent in shape):
            return TensorStructInfo(dtype=info.dtype, ndim=len(shape))
    elif isinstance(info, ShapeStructInfo) and info.values is not None:
        if not all(isinstance(extent, tir.IntImm) for extent in info.values):
            return ShapeStructInfo(ndim=len(info.values))
    elif isinstance(info, PrimStructInfo) and info.value is not None:
        if not isinstance(info.value, tir.IntImm | tir.FloatImm):
            return PrimStructInfo(info.dtype)
    elif isinstance(info, TupleStructInfo):
        return TupleStructInfo([_erased(field) for field in info.fields])
    return info


class _Extents:
    """What symbolic extents of a pattern stand for."""

    def __init__(self) -> None:
        self.values: dict[tir.Var, PrimExpr] = {}
        self._analyzer = Analyzer()

    def fit(self, wanted: StructInfo, have: StructInfo | None) -> bool:
        """Whether values of an info are those wanted, where extents have one value each."""
        if isinstance(wanted, TupleStructInfo):
            return (
                isinstance(have, TupleStructInfo)
                and len(wanted.fields) == len(have.fields)
                and all(map(self.fit, wanted.fields, have.fields))
            )
        if have is None or struct_info_base_check(_erased(wanted), have) != BaseCheckResult.PASS:
            return False
        if isinstance(wanted, PrimStructInfo):
            return wanted.value is None or self._all([wanted.value], [have.value])
        extents = _extents_of(wanted)
        return extents is None or self._all(extents, _extents_of(have))

    def _all(self, wanted: Sequence[PrimExpr], have: Sequence[PrimExpr | None] | None) -> bool:
        if have is None or len(wanted) != len(have):
            return False
        return all(map(self._one, wanted, have))

    def _one(self, wanted: PrimExpr, have: PrimExpr | None) -> bool:
        if have is None:
            return False
        if isinstance(wanted, tir.Var) and wanted not in self.values:
            self.values[wanted] = have
            return True
        known = tir.stmt_functor.substitute(wanted, self.values)
        return bool(self._analyzer.can_prove_equal(known, have))


def _extents_of(info: StructInfo) -> list[PrimExpr] | None:
    if isinstance(info, ShapeStructInfo):
        return None if info.values is None else list(info.values)
    values = getattr(getattr(info, "shape", None), "values", None)
    return None if values is None else list(values)


def _instance(given: Function, operands: list[RelayExpr], extents: _Extents) -> RelayExpr | None:
    """What a replacement computes of operands; None if these are not what it takes."""
    for param, operand in zip(given.params, operands):
        if not extents.fit(param.struct_info, operand.struct_info):
            return None
    values: dict[Var, RelayExpr] = dict(zip(given.params, operands))
    for block in given.body.blocks:
        for binding in block.bindings:
            if isinstance(binding, MatchCast):
                raise error.ValueError("from_module: the function replacement has a cast")
            values[binding.var] = _with(binding.value, values, extents.values)
    return _with(given.body.body, values, extents.values)


def _with(
    expr: RelayExpr, values: Mapping[Var, RelayExpr], extents: Mapping[tir.Var, PrimExpr]
) -> RelayExpr:
    """An expression with other operands and extents; what is read twice stays one object."""

    def extent(value: Any) -> Any:
        return Analyzer().simplify(tir.stmt_functor.substitute(value, dict(extents)))

    if isinstance(expr, Var):
        return values[expr]
    if isinstance(expr, Tuple):
        return Tuple([_with(field, values, extents) for field in expr.fields])
    if isinstance(expr, TupleGetItem):
        return TupleGetItem(_with(expr.tuple_value, values, extents), expr.index)
    if isinstance(expr, ShapeExpr):
        return ShapeExpr([extent(value) for value in expr.values])
    if isinstance(expr, PrimValue):
        return PrimValue(extent(expr.value))
    if isinstance(expr, Call):
        args = [_with(arg, values, extents) for arg in expr.args]
        infos = [substitute_struct_info(info, extents) for info in expr.sinfo_args]
        return Call(expr.op, args, expr.attrs, infos)
    if type(expr).__name__ in ("If", "SeqExpr", "Function", "GlobalVar"):
        raise error.ValueError(
            f"from_module: the function replacement has a {type(expr).__name__}, which cannot be "
            "put elsewhere"
        )
    return expr
