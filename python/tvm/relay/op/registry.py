"""The table of relay's operators: settings, type rules, and what they are in relax and te.

Every operator is one row. Its te computation gives the type of its result unless a rule says it,
and its kernel unless relax has an operator of the same meaning, whose passes then apply to it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import error, relax, te
from tvm.ir import Op, RelayExpr, TensorType, TupleType, register_op
from tvm.relax.op import OpPattern
from tvm.relax.op.registry import has_op, op_spec
from tvm.relax.op.registry import register as register_kernel
from tvm.runtime import Object

from ..expr import Call, Constant, as_expr
from ..ty import Type
from .support_levels import SUPPORT_LEVELS

__all__ = [
    "REQUIRED",
    "OpPattern",
    "OpRow",
    "define",
    "find_row",
    "make",
    "row_of",
    "settings_of",
    "settings_of_attrs",
    "struct_info_of",
    "type_of_info",
]

REQUIRED = object()
"""Default of a setting that every call has and that is always printed."""

TypeRule = Callable[[Sequence[Type], Mapping[str, Any], Sequence[RelayExpr]], Type]
Fill = Callable[[Sequence[Type | None], Mapping[str, Any]], Sequence[Type | None]]


@dataclass(frozen=True)
class OpRow:
    """One operator.

    Attributes
    ----------
    name : as programs write it, such as "nn.conv2d".
    settings : name and default of every setting, in order.
    compute : te tensors and the settings to a tensor or a list of them; None for an operator that
        only the interpreter knows.
    rule : types and settings and operands to the type of the result; None leaves it to `compute`.
    fill : types of operands, None where unknown, to the same with what follows from the others.
    lower : relax operands and the settings to the relax expression.
    host : arrays and settings to arrays, for results whose shape depends on values.
    open : whether calls may have settings beside those that are listed.
    written : a call to what it is in relay's other operators, in place of `lower`.
    settled : operands and settings to the call of another operator, for one whose operands behind
        the first are settings of that: constants, when it is asked.
    """

    name: str
    settings: Mapping[str, Any]
    compute: Callable[..., Any] | None
    rule: TypeRule | None
    fill: Fill | None
    lower: Callable[..., RelayExpr] | None
    host: Callable[..., Any] | None
    pattern: OpPattern
    open: bool = False
    written: Callable[[Call], RelayExpr] | None = None
    settled: Callable[[Sequence[RelayExpr], Mapping[str, Any]], RelayExpr] | None = None


_ROWS: dict[str, OpRow] = {}


def _own_lowering(name: str) -> Callable[..., RelayExpr]:
    def lower(args: Sequence[RelayExpr], settings: Mapping[str, Any]) -> RelayExpr:
        return relax.op.make_call(f"relay.{name}", *args, **settings)

    return lower


def _shared_lowering(
    relax_name: str, adapt: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Callable[..., RelayExpr]:
    def lower(args: Sequence[RelayExpr], settings: Mapping[str, Any]) -> RelayExpr:
        return relax.op.make_call(relax_name, *args, **adapt(settings))

    return lower


def _shared_compute(
    relax_name: str, adapt: Callable[[Mapping[str, Any]], Mapping[str, Any]]
) -> Callable[..., Any]:
    def compute(*tensors: te.Tensor, **settings: Any) -> Any:
        return op_spec(f"relax.{relax_name}").compute(*tensors, **adapt(settings))

    return compute


def register_own(
    name: str,
    compute: Callable[..., Any],
    pattern: OpPattern,
    settings: Mapping[str, Any] | None = None,
) -> None:
    """Enter a te computation as the operator "relay.<name>" of relax.

    Settings that are None are not kept by relax, so they come from the defaults.
    """
    absent = {key: None for key, default in (settings or {}).items() if default is None}

    def run(*tensors: Any, **given: Any) -> Any:
        return compute(*tensors, **{**absent, **given})

    register_kernel(f"relay.{name}", run, pattern, tunable=pattern != OpPattern.OPAQUE)


def define(
    name: str,
    compute: Callable[..., Any] | None = None,
    pattern: OpPattern = OpPattern.OPAQUE,
    *,
    settings: Mapping[str, Any] | None = None,
    relax_name: str | None = None,
    adapt: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
    lower: Callable[..., RelayExpr] | None = None,
    rule: TypeRule | None = None,
    fill: Fill | None = None,
    host: Callable[..., Any] | None = None,
    written: Callable[[Call], RelayExpr] | None = None,
    settled: Callable[[Sequence[RelayExpr], Mapping[str, Any]], RelayExpr] | None = None,
    num_inputs: int = -1,
) -> None:
    """Add an operator.

    Parameters
    ----------
    relax_name : relax's operator of the same meaning, without the "relax." prefix.
    adapt : relay's settings to that operator's.
    lower : how it is written in relax where no single operator means the same.
    written : how it is written in relay's other operators, instead.
    settled : the call that it is when its operands behind the first are constants.

    Raises
    ------
    ValueError : the name is taken.
    """
    if name in _ROWS:
        raise error.ValueError(f"relay.op: operator '{name}' exists already")
    if relax_name is not None:
        pattern = op_spec(f"relax.{relax_name}").pattern
        lower = lower or _shared_lowering(relax_name, adapt)
        compute = compute or _shared_compute(relax_name, adapt)
    elif compute is not None and lower is None:
        register_own(name, compute, pattern, settings)
        lower = _own_lowering(name)
    op = Op.get(name) if Op.exists(name) else register_op(name)
    if num_inputs < 0:
        num_inputs = _operands_of(compute, settings, relax_name)
    if num_inputs >= 0:
        op.set_attr("num_inputs", num_inputs)
    if name in SUPPORT_LEVELS:
        op.set_support_level(SUPPORT_LEVELS[name])
    op.set_attr("TOpPattern", int(pattern))
    _ROWS[name] = OpRow(
        name, dict(settings or {}), compute, rule, fill, lower, host, OpPattern(pattern),
        written=written, settled=settled,
    )  # fmt: skip


def _operands_of(
    compute: Callable[..., Any] | None, settings: Mapping[str, Any] | None, relax_name: str | None
) -> int:
    """How many operands a computation takes, -1 for any number."""
    if relax_name is not None:
        compute = op_spec(f"relax.{relax_name}").compute
    if compute is None:
        return -1
    try:
        params = inspect.signature(compute).parameters.values()
    except (TypeError, ValueError):  # a function of another language says nothing
        return -1
    if any(p.kind == p.VAR_POSITIONAL for p in params):
        return -1
    return sum(p.kind == p.POSITIONAL_OR_KEYWORD and p.default is p.empty
               and p.name not in (settings or {}) for p in params)  # fmt: skip


def struct_info_of(type_: Type) -> Any:
    """What relax knows of a value of a relay type, whose extents are numbers.

    Raises
    ------
    TypeError : a graph has no values of this type.
    """
    if isinstance(type_, TensorType):
        return relax.TensorStructInfo([int(e) for e in type_.shape], str(type_.dtype))
    if isinstance(type_, TupleType):
        return relax.TupleStructInfo([struct_info_of(f) for f in type_.fields])
    raise error.TypeError(f"relay: a graph has no values of type {type_}")


def type_of_info(info: Any) -> Type:
    """The relay type of what relax knows of a value; the other way of :func:`struct_info_of`."""
    if isinstance(info, relax.TupleStructInfo):
        return TupleType([type_of_info(field) for field in info.fields])
    return TensorType([int(extent) for extent in info.shape.values], str(info.dtype))


def _adopted(name: str) -> OpRow:
    """The row of an operator that only relax has, under its name there."""

    def lower(args: Sequence[RelayExpr], s: Mapping[str, Any]) -> RelayExpr:
        return relax.op.make_call(name.removeprefix("relax."), *args, **s)

    def rule(types: Sequence[Type], s: Mapping[str, Any], args: Sequence[RelayExpr]) -> Type:
        # A number is computed with as one, so that is what the operator is asked for.
        operands = [
            relax.const(arg.data) if isinstance(arg, Constant) else _stand_in(type_)
            for arg, type_ in zip(args, types)
        ]
        return type_of_info(lower(operands, s).struct_info)

    return OpRow(name, {}, None, rule, None, lower, None, op_spec(name).pattern, open=True)


def _stand_in(type_: Type) -> RelayExpr:
    if isinstance(type_, TupleType):
        return relax.Tuple([_stand_in(field) for field in type_.fields])
    return relax.Var("x", struct_info_of(type_))


def find_row(op: Any) -> OpRow | None:
    """The row of an operator, None for what is none of relay.

    Operators that only relax has are there under their names, such as "relax.nn.rms_norm".
    """
    if not isinstance(op, Op):
        return None
    name = str(op.name)
    if name not in _ROWS and has_op(op):
        _ROWS[name] = _adopted(name)
    return _ROWS.get(name)


def row_of(op: Op | str) -> OpRow:
    """The row of an operator.

    Raises
    ------
    ValueError : relay has no operator of that name.
    """
    name = op if isinstance(op, str) else str(op.name)
    row = find_row(Op.get(name)) if Op.exists(name) else None
    if row is None:
        raise error.ValueError(
            f"relay: there is no operator '{name}'; add it with relay.op.register and "
            "say its type with add_type_rel"
        )
    return row


def make(name: str, args: Sequence[Any], /, **settings: Any) -> Call:
    """A call of an operator. Settings have the defaults of the row."""
    row = row_of(name)
    unknown = set(settings) - set(row.settings)
    if unknown and not row.open:
        raise error.TypeError(f"relay.{name}: there is no setting {sorted(unknown)}")
    values = {**row.settings, **settings}
    return Call(Op.get(name), [as_expr(arg) for arg in args], values or None)


def settings_of(call: Call) -> dict[str, Any]:
    """Settings of a call as plain Python values; lists become tuples."""
    return settings_of_attrs(call.attrs)


def settings_of_attrs(attrs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Attributes of a call as plain Python values; lists become tuples."""
    return {str(key): plain(value) for key, value in (attrs or {}).items()}


def plain(value: Any) -> Any:
    """A stored setting as a number, text, tuple or expression."""
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    literal = getattr(value, "value", None)
    if literal is not None and not isinstance(literal, Object):
        return literal
    if isinstance(value, Sequence):
        return tuple(plain(item) for item in value)
    return value
