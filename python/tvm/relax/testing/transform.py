"""Analyses behind passes, as programs that look at them call them."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import IRModule

from ..analysis import alias_analysis, inplace_opportunities, liveness_ranges
from ..block_builder import BlockBuilder
from ..expr import Call, DataflowBlock, Var
from ..transform.inplace_calls import inplace_call

__all__ = [
    "dataflow_alias_analysis",
    "dataflow_inplace_analysis",
    "dataflow_liveness_analysis",
    "dataflow_single_inplace_call",
]


def dataflow_liveness_analysis(block: DataflowBlock) -> dict[Var, tuple[int, int]]:
    """See :func:`tvm.relax.analysis.liveness_ranges`."""
    return liveness_ranges(block)


def dataflow_alias_analysis(
    block: DataflowBlock, inputs: Sequence[Var]
) -> tuple[dict[Var, set[int]], dict[int, list[set[int]]]]:
    """The places at which variables may be, and those of the fields of tuples there.

    See :func:`tvm.relax.analysis.alias_analysis`.
    """
    aliases = alias_analysis(block, inputs)
    return aliases.places, aliases.fields


def dataflow_inplace_analysis(
    block: DataflowBlock, inputs: Sequence[Var], mod: IRModule
) -> tuple[list[tuple[int, set[int]]], list[tuple[int, set[int]]]]:
    """Calls whose result fits into an argument's memory, and those of an argument's own shape.

    See :func:`tvm.relax.analysis.inplace_opportunities`; ``mod``, of which the block is a part, is
    not looked at.
    """
    large, equal = inplace_opportunities(block, inputs)
    return (
        [(position, set(arguments)) for position, arguments in large],
        [(position, set(arguments)) for position, arguments in equal],
    )


def dataflow_single_inplace_call(
    mod: IRModule, call: Call, inplace_indices: Sequence[int]
) -> tuple[Call, IRModule]:
    """The call of an operator as one that writes over arguments, and the module with its kernel.

    See :func:`tvm.relax.transform.inplace_calls.inplace_call`, also for errors.
    """
    builder = BlockBuilder(mod)
    written, _ = inplace_call(builder, call, inplace_indices)
    return written, builder.get()
