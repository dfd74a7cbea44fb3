"""Programs computed in half precision where that is safe."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from tvm import error
from tvm.ir import Op, RelayExpr, TensorType, TupleType, Type
from tvm.ir.transform import Pass, PassContext

from .. import op
from ..expr import Call, Constant, Function, If, Let, Tuple, TupleGetItem, Var
from ..expr_functor import PostOrderMutator
from ..op.registry import OpPattern, find_row, settings_of
from .base import expression_pass

__all__ = [
    "MIXED_PRECISION_ALWAYS",
    "MIXED_PRECISION_FOLLOW",
    "MIXED_PRECISION_NEVER",
    "ToMixedPrecision",
]

logger = logging.getLogger("relay")

_RULE = "FTVMMixedPrecisionConversionType"
_KEEP_OUTPUT = "relay.ToMixedPrecision.keep_orig_output_dtype"


# What a rule says first: an operator is computed in the lower precision always, where its operands
# are in it, or never.
MIXED_PRECISION_ALWAYS = 0
MIXED_PRECISION_FOLLOW = 1
MIXED_PRECISION_NEVER = 2


# Products have many more multiplications than numbers, so casting their operands pays.
_PRODUCTS = frozenset(
    [
        *(f"nn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose")),
        *("nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc"),
        *("nn.dense", "nn.matmul", "nn.batch_matmul"),
    ]
)
# What leaves the range of half precision, or adds up errors.
_SENSITIVE = frozenset(
    [
        *("exp", "power", "sqrt", "rsqrt", "log", "log2", "log10", "erf", "erfinv", "tan", "cosh"),
        *("sinh", "acosh", "asinh", "atanh", "sum", "mean", "variance", "prod", "std", "logsumexp"),
        *("cumsum", "cumprod", "nn.softmax", "nn.fast_softmax", "nn.log_softmax", "nn.lrn"),
        *("nn.l2_normalize", "nn.cross_entropy", "nn.cross_entropy_with_logits", "nn.layer_norm"),
        *("nn.instance_norm", "nn.group_norm", "nn.global_avg_pool2d", "nn.adaptive_avg_pool2d"),
    ]
)
_FOLLOWING_PATTERNS = (OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE)
_FOLLOWING = frozenset(
    [
        *(f"nn.{kind}_pool{rank}d" for kind in ("max", "avg") for rank in (1, 2, 3)),
        *("nn.global_max_pool2d", "nn.adaptive_max_pool2d", "nn.batch_norm", "nn.dropout"),
        *("nn.pad", "max", "min", "nn.bias_add", "nn.prelu", "nn.upsampling", "image.resize2d"),
    ]
)


def _default_of(call: Call, low: str) -> Sequence[Any] | None:
    """What is done with an operator of which nobody said it; None for unknown operators."""
    row = find_row(call.op)
    if row is None:
        return None
    if row.name in _PRODUCTS:
        # They accumulate in single precision in any case, and say so where they can.
        return [MIXED_PRECISION_ALWAYS, "float32" if "out_dtype" in row.settings else low, low]
    follows = row.name in _FOLLOWING or row.pattern in _FOLLOWING_PATTERNS
    # Where a setting names the type, the program has chosen it.
    if not follows or row.name in _SENSITIVE or "dtype" in row.settings:
        return [MIXED_PRECISION_NEVER, low, low]
    return [MIXED_PRECISION_FOLLOW, low, low]


class _Converter(PostOrderMutator):
    """Rebuilds a program; `_types` has the types of what is new."""

    def __init__(self, low: str, missing_op_mode: int) -> None:
        super().__init__()
        self._low = low
        self._missing = missing_op_mode
        self._types: dict[RelayExpr, Type] = {}
        self._casts: dict[tuple[RelayExpr, str], RelayExpr] = {}

    def _type(self, expr: RelayExpr) -> Type:
        found = self._types.get(expr)
        return expr.checked_type if found is None else found

    def _typed(self, expr: RelayExpr, type_: Type) -> RelayExpr:
        self._types[expr] = type_
        return expr

    def cast(self, expr: RelayExpr, like: Type | str) -> RelayExpr:
        """A value with tensors of numbers in another type, or in those that `like` has."""
        type_ = self._type(expr)
        if isinstance(type_, TupleType):
            fields = list(type_.fields)
            wanted = list(like.fields) if isinstance(like, TupleType) else [like] * len(fields)
            parts = [self.cast(self._field(expr, k), w) for k, w in enumerate(wanted)]
            if all(self._type(p) == f for p, f in zip(parts, fields)):
                return expr
            return self._typed(Tuple(parts), TupleType([self._type(p) for p in parts]))
        dtype = like if isinstance(like, str) else str(getattr(like, "dtype", ""))
        if not _is_float(type_) or not dtype or str(type_.dtype) == dtype:
            return expr
        if (expr, dtype) not in self._casts:
            made = op.cast(expr, dtype)
            self._casts[expr, dtype] = self._typed(made, TensorType(type_.shape, dtype))
        return self._casts[expr, dtype]

    def _field(self, expr: RelayExpr, index: int) -> RelayExpr:
        if isinstance(expr, Tuple):
            return expr.fields[index]
        return self._typed(TupleGetItem(expr, index), self._type(expr).fields[index])

    def _original(self, expr: RelayExpr) -> RelayExpr:
        """A part of the program, in the types that it had."""
        return self.cast(self.visit(expr), expr.checked_type_)

    def visit_tuple(self, tup: Tuple) -> RelayExpr:
        new = super().visit_tuple(tup)
        return self._typed(new, TupleType([self._type(field) for field in new.fields]))

    def visit_tuple_getitem(self, item: TupleGetItem) -> RelayExpr:
        new = super().visit_tuple_getitem(item)
        return self._typed(new, self._type(new.tuple_value).fields[item.index])

    def visit_if(self, iff: If) -> RelayExpr:
        parts = [self._original(part) for part in (iff.cond, iff.true_branch, iff.false_branch)]
        return self._typed(If(*parts), iff.checked_type_)

    def visit_let(self, let: Let) -> RelayExpr:
        bindings = []
        node: RelayExpr = let
        while isinstance(node, Let):
            bindings.append((node.var, self._original(node.value)))
            node = node.body
        body = self._original(node)
        for var, value in reversed(bindings):
            body = self._typed(Let(var, value, body), let.checked_type_)
        return body

    def visit_function(self, func: Function) -> RelayExpr:
        body = self._original(func.body)
        return Function(func.params, body, func.ret_type, func.type_params, func.attrs)

    def visit_call(self, call: Call) -> RelayExpr:
        known = self._category(call) if isinstance(call.op, Op) else None
        if known is None:
            args = [self._original(arg) for arg in call.args]
            callee = call.op if isinstance(call.op, Op) else self.visit(call.op)
            new = Call(callee, args, call.attrs, call.type_args, call.span)
            return self._typed(new, call.checked_type_)
        category, accumulated, result = known
        args = [self.visit(arg) for arg in call.args]
        if category == MIXED_PRECISION_ALWAYS:
            return self._product(call, args, str(accumulated), str(result))
        if category == MIXED_PRECISION_FOLLOW and self._all_low(args):
            new = Call(call.op, [self.cast(a, self._low) for a in args], call.attrs)
            return self._typed(new, _lowered(call.checked_type_, self._low))
        args = [self.cast(new, old.checked_type_) for new, old in zip(args, call.args)]
        same = all(a.same_as(b) for a, b in zip(args, call.args))
        new = call if same else Call(call.op, args, call.attrs, call.type_args, call.span)
        return self._typed(new, call.checked_type_)

    def _product(
        self, call: Call, args: Sequence[RelayExpr], accumulated: str, result: str
    ) -> RelayExpr:
        settings = settings_of(call)
        row = find_row(call.op)
        takes_type = row is not None and "out_dtype" in row.settings
        if takes_type:
            settings["out_dtype"] = accumulated
        attrs = settings if takes_type else call.attrs
        new = Call(call.op, [self.cast(a, self._low) for a in args], attrs)
        given = accumulated if takes_type else self._low
        return self.cast(self._typed(new, _lowered(call.checked_type_, given)), result)

    def _all_low(self, args: Sequence[RelayExpr]) -> bool:
        """Whether operands are in the lower precision, or are weights, which are cast once."""
        types = [type_ for arg in args for type_ in _leaves(self._type(arg)) if _is_float(type_)]
        fixed = [isinstance(arg, (Var, Constant)) for arg in args for _ in _floats(self._type(arg))]
        low = [str(type_.dtype) == self._low for type_ in types]
        return any(low) and all(a or b for a, b in zip(low, fixed))

    def _category(self, call: Call) -> Sequence[Any] | None:
        said = call.op.get_attr(_RULE)
        if said is not None:
            return list(said(call, self._low))
        found = _default_of(call, self._low)
        if found is None and self._missing == 0:
            raise error.ValueError(
                f"relay.ToMixedPrecision: nobody said in which precision {call.op.name} is "
                "computed; say it by relay.op.register_mixed_precision_conversion, or take "
                "missing_op_mode 1"
            )
        if found is None and self._missing == 1:
            logger.warning("relay.ToMixedPrecision: %s is left in its precision", call.op.name)
        return found


def _is_float(type_: Type) -> bool:
    return isinstance(type_, TensorType) and "float" in str(type_.dtype)


def _leaves(type_: Type) -> list[Type]:
    if isinstance(type_, TupleType):
        return [leaf for field in type_.fields for leaf in _leaves(field)]
    return [type_]


def _floats(type_: Type) -> list[Type]:
    return [leaf for leaf in _leaves(type_) if _is_float(leaf)]


def _lowered(type_: Type, dtype: str) -> Type:
    if isinstance(type_, TupleType):
        return TupleType([_lowered(field, dtype) for field in type_.fields])
    return TensorType(type_.shape, dtype) if _is_float(type_) else type_


def ToMixedPrecision(mixed_precision_type: str = "float16", missing_op_mode: int = 1) -> Pass:
    """Compute convolutions and products in lower precision, and what follows them where it is safe.

    Parameters and exponentials, sums and normalisations keep their type. So does the result with
    the option "relay.ToMixedPrecision.keep_orig_output_dtype" of the `PassContext`.

    Parameters
    ----------
    mixed_precision_type : "float16" or "bfloat16".
    missing_op_mode : operators of which nothing is known are 0 an error, 1 left as they are with a
        warning, 2 left as they are.

    Raises
    ------
    ValueError : another type or mode; when it runs, an operator that is not known in mode 0.
    """
    if mixed_precision_type not in ("float16", "bfloat16"):
        raise error.ValueError(
            f"relay.ToMixedPrecision: the type is float16 or bfloat16, got '{mixed_precision_type}'"
        )
    if missing_op_mode not in (0, 1, 2):
        raise error.ValueError(
            f"relay.ToMixedPrecision: missing_op_mode is 0, 1 or 2, got {missing_op_mode}"
        )

    def rewrite(func: Function, mod: Any) -> RelayExpr:
        converter = _Converter(mixed_precision_type, missing_op_mode)
        body = converter.visit(func.body)
        if PassContext.current().config.get(_KEEP_OUTPUT):
            body = converter.cast(body, func.body.checked_type_)
        if body.same_as(func.body):
            return func
        return Function(func.params, body, None, func.type_params, func.attrs)

    return expression_pass(rewrite, 0, "ToMixedPrecision")
