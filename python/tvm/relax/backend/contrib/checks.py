"""What libraries ask of the operands of products and convolutions."""

from __future__ import annotations

from collections.abc import Collection

from tvm.relax.expr import ShapeExpr
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.transform import PatternCheckContext
from tvm.tir import IntImm

__all__ = ["epilogue_fits", "operand_types_fit"]


def operand_types_fit(
    context: PatternCheckContext, names: Collection[str], dtypes: Collection[tuple[str, ...]]
) -> bool:
    """Whether parts of a match are tensors of one of these combinations of element types."""
    infos = [context.annotated_expr[name].struct_info for name in names]
    return all(isinstance(info, TensorStructInfo) for info in infos) and (
        tuple(str(info.dtype) for info in infos) in dtypes
    )


def epilogue_fits(context: PatternCheckContext) -> bool:
    """Whether what is added is a bias of one dimension, and a residual has the result's shape."""
    parts = context.annotated_expr
    bias = parts.get("bias")
    if bias is not None and not _is_bias(bias.struct_info):
        return False
    residual = parts.get("residual")
    if residual is None:
        return True
    own, other = context.matched_expr.struct_info, residual.struct_info
    return own == other


def _is_bias(info: object) -> bool:
    """Whether all dimensions but the last are 1."""
    if not isinstance(info, TensorStructInfo) or not isinstance(info.shape, ShapeExpr):
        return False
    return all(isinstance(e, IntImm) and e.value == 1 for e in list(info.shape.values)[:-1])
