"""Choosing among the ways to compute an operator."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tvm import autotvm, error, te
from tvm.ir import DictAttrs, Op, Type
from tvm.target import Target

from ..op.implementation import OpImplementation, strategy_of

__all__ = ["get_valid_implementations", "select_implementation"]


def get_valid_implementations(
    op: Op,
    attrs: DictAttrs | None,
    inputs: Sequence[te.Tensor],
    out_type: Type,
    target: Target | str,
) -> list[OpImplementation]:
    """The implementations of an operator for a target whose conditions hold.

    Parameters
    ----------
    inputs : the operands; those of tuples one after the other.
    out_type : type of the result.

    Raises
    ------
    ValueError : there is none, or the operator has no computation.
    """
    target = target if isinstance(target, Target) else Target(target)
    with target:
        strategy = strategy_of(op, target)(attrs, list(inputs), out_type, target)
    found = strategy.valid_implementations()
    if not found:
        raise error.ValueError(
            f"relay: the strategy of '{op.name}' for {target.kind.name} has no implementation "
            "whose condition holds"
        )
    return found


def select_implementation(
    op: Op,
    attrs: DictAttrs | None,
    inputs: Sequence[te.Tensor],
    out_type: Type,
    target: Target | str,
    use_autotvm: bool = True,
) -> tuple[OpImplementation, list[te.Tensor]]:
    """The implementation that a build takes, and its results for the operands.

    Parameters
    ----------
    use_autotvm : take the template of AutoTVM whose record, in the context around, is the fastest.
        Otherwise, and where there is none, the implementation of the highest level counts.

    Raises
    ------
    ValueError : as :func:`get_valid_implementations`.
    """
    target = target if isinstance(target, Target) else Target(target)
    valid = get_valid_implementations(op, attrs, inputs, out_type, target)
    best: tuple[float, OpImplementation, list[te.Tensor]] | None = None
    with target:
        for implementation in valid if use_autotvm else ():
            outputs = implementation.compute(attrs, inputs, out_type)
            workload = autotvm.task.get_workload(outputs)
            if workload is None:
                continue
            config = autotvm.DispatchContext.current.recorded(target, workload)
            if config is None:
                continue
            cost = math.inf if config.cost is None else config.cost
            if best is None or cost < best[0]:
                best = cost, implementation, outputs
        if best is not None:
            return best[1], best[2]
        highest = max(reversed(valid), key=lambda i: i.plevel)
        return highest, highest.compute(attrs, inputs, out_type)
