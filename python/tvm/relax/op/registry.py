"""The tables of graph operators: how each is computed in te, and what is known of its result.

An operator without a rule of its own has the result shape and type that are read off the te tensors
which its computation gives for placeholders of the argument shapes; these must be fixed then. A
rule also says what follows from shapes that are symbolic or unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tvm import error, te
from tvm.ir import Op, register_op
from tvm.ir.attrs import declare_optional

__all__ = [
    "OpPattern",
    "OpSpec",
    "get_op",
    "has_op",
    "has_rule",
    "is_pure",
    "op_spec",
    "register",
    "register_rule",
    "rule_of",
]

# Those that some operator takes None for.
declare_optional(
    *("assume_inbound", "axes", "axis", "axis_separators", "begin", "causal_mask", "dtype", "end"),
    *("exclusive", "out_dtype", "out_layout", "pad_value", "scale", "strides", "window_size"),
)

Operand = te.Tensor | float | int
Compute = Callable[..., te.Tensor | Sequence[te.Tensor]]


class OpPattern(IntEnum):
    """How an output element depends on the operands, from the most to the least fusable."""

    ELEMWISE = 0
    """Reads each operand at the same place; the shapes are equal."""
    BROADCAST = 1
    """Like ELEMWISE, with operands repeated along some dimensions."""
    INJECTIVE = 2
    """Reads each operand at one place, in any order."""
    COMM_REDUCE = 3
    """Reduces over dimensions."""
    OUT_FUSABLE = 4
    """A heavy computation to whose output elementwise operators may be appended."""
    OPAQUE = 8
    """Stays on its own."""


@dataclass(frozen=True)
class OpSpec:
    """One operator.

    Attributes
    ----------
    name : with the "relax." prefix, the name of its ``Op``.
    compute : te tensors (or numbers, for scalar constants) and settings as keywords to a te tensor
        or a list of them.
    pattern : how it fuses.
    is_view : the result holds the operand's elements in the same order, so it needs no kernel.
    tunable : whether searching a schedule pays. Operators with one good program, which the
        registry of schedules knows (``topi.register_schedule``), are not tuned.
    """

    name: str
    compute: Compute
    pattern: OpPattern
    is_view: bool = False
    tunable: bool = True


_TABLE: dict[str, OpSpec] = {}
_RULES: dict[str, Callable[[Any], Any]] = {}
_IMPURE: set[str] = set()


def register(
    name: str,
    compute: Compute,
    pattern: OpPattern,
    is_view: bool = False,
    tunable: bool = True,
) -> None:
    """Add an operator, ``name`` without the "relax." prefix.

    Raises
    ------
    ValueError : the name is taken.
    """
    full = f"relax.{name}"
    if full in _TABLE:
        raise error.ValueError(f"relax.op.register: operator '{full}' exists already")
    if full not in _RULES:
        register_op(full)
    _TABLE[full] = OpSpec(full, compute, pattern, is_view, tunable)


def register_rule(name: str, rule: Callable[[Any], Any], pure: bool = True) -> None:
    """Say what is known of the result of an operator, ``name`` without the "relax." prefix.

    Parameters
    ----------
    rule : from a call to the struct info of its result; raises TypeError or ValueError for operands
        that the operator does not take.
    pure : whether a call has no effect beside its result.
    """
    full = f"relax.{name}"
    if full in _RULES:
        raise error.ValueError(f"relax.op.register_rule: operator '{full}' has a rule already")
    if full not in _TABLE:
        register_op(full)
    _RULES[full] = rule
    if not pure:
        _IMPURE.add(full)
    # Rules of programs' own operators ask for those of others by these names.
    op = Op.get(full)
    op.set_attr("FInferStructInfo", lambda call, builder: rule(call))
    op.set_attr("FPurity", pure)


def has_rule(op: Any) -> bool:
    """Whether ``op`` is an operator with a rule of struct info."""
    return isinstance(op, Op) and str(op.name) in _RULES


def rule_of(op: Op) -> Callable[[Any], Any]:
    """The operator's rule of struct info."""
    return _RULES[str(op.name)]


def is_pure(op: Op) -> bool:
    """Whether a call of the operator has no effect beside its result.

    Programs say it of their own operators by the attribute "FPurity".
    """
    if str(op.name) in _IMPURE:
        return False
    return str(op.name) in _RULES or str(op.name) in _TABLE or op.get_attr("FPurity") is not False


def get_op(name: str) -> Op:
    """The ``Op`` of a registered operator, ``name`` without the "relax." prefix."""
    return Op.get(f"relax.{name}")


def has_op(op: Any) -> bool:
    """Whether ``op`` is an operator of the table."""
    return isinstance(op, Op) and str(op.name) in _TABLE


def op_spec(op: Op | str) -> OpSpec:
    """The table's row for an operator.

    Raises
    ------
    ValueError : the operator is not in the table.
    """
    name = op if isinstance(op, str) else str(op.name)
    if name not in _TABLE:
        raise error.ValueError(
            f"relax: operator '{name}' has no te computation; add one with relax.op.register"
        )
    return _TABLE[name]
