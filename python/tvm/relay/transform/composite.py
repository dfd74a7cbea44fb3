"""Functions made of what patterns match, for compilers that take several operators as one."""

from __future__ import annotations

from collections.abc import Sequence

from tvm.ir import IRModule, RelayExpr
from tvm.ir.transform import Pass

from ..dataflow_pattern.partitioning import partition
from ..expr import Function
from .base import expression_pass

__all__ = ["MergeComposite"]


def MergeComposite(pattern_table: Sequence[tuple]) -> Pass:
    """Make functions with the attribute "Composite" of what patterns match.

    Parameters
    ----------
    pattern_table : rows of the function's name, the pattern, and by choice a function of the
        matched expression that says whether to take it; earlier rows come first.
    """

    def rewrite(func: Function, mod: IRModule) -> RelayExpr:
        body = func.body
        for name, pattern, *check in pattern_table:
            body = partition(pattern, body, {"Composite": name}, *check)
        return Function(func.params, body, func.ret_type, func.type_params, func.attrs)

    return expression_pass(rewrite, 0, "MergeComposite")
