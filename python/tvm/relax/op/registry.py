"""The table of graph operators: how each is computed in te and how it may be fused.

An operator's result shape and type are not written down a second time: they are read off the te
tensors that its computation gives for placeholders of the argument shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from tvm import te
from tvm.ir import Op, register_op

__all__ = ["OpPattern", "OpSpec", "get_op", "has_op", "op_spec", "register"]

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
        raise ValueError(f"relax.op.register: operator '{full}' exists already")
    _TABLE[full] = OpSpec(full, compute, pattern, is_view, tunable)
    register_op(full)


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
        raise ValueError(
            f"relax: operator '{name}' has no te computation; add one with relax.op.register"
        )
    return _TABLE[name]
