"""Matrix products that cuBLAS computes."""

from __future__ import annotations

from tvm.ir import IRModule
from tvm.relax.struct_info import TensorStructInfo
from tvm.relax.transform import FuseOpsByPattern, FusionPattern, PatternCheckContext

from ..pattern_registry import get_patterns_with_prefix, register_patterns
from ..patterns import make_matmul_pattern
from .checks import epilogue_fits, operand_types_fit

__all__ = ["partition_for_cublas"]

_DTYPES = {(dtype, dtype) for dtype in ("float16", "float32", "bfloat16", "int8")}
_ACTIVATIONS = (None, "relax.nn.relu", "relax.nn.gelu")


def _check(context: PatternCheckContext) -> bool:
    if not operand_types_fit(context, ("lhs", "rhs"), _DTYPES):
        return False
    lhs, rhs = (context.annotated_expr[name].struct_info for name in ("lhs", "rhs"))
    assert isinstance(lhs, TensorStructInfo) and isinstance(rhs, TensorStructInfo)
    # Vectors are no matrices, and the left operand has at least as many axes of matrices.
    return min(lhs.ndim, rhs.ndim) >= 2 and rhs.ndim <= lhs.ndim and epilogue_fits(context)


def _patterns() -> list[FusionPattern]:
    found = []
    for transposed in (False, True):
        for activation in _ACTIVATIONS:
            for bias in (False, True):
                if activation is not None and not bias:
                    continue
                name = "cublas.matmul" + "_transposed" * transposed + "_bias" * bias
                name += "" if activation is None else "_" + activation.rsplit(".", 1)[-1]
                pattern, parts = make_matmul_pattern(bias, activation, transposed)
                found.append(FusionPattern(name, pattern, parts, _check))
    return found


register_patterns(_patterns())


def partition_for_cublas(mod: IRModule, bind_constants: bool = False) -> IRModule:
    """The module with what cuBLAS computes as functions of attribute "Codegen".

    `transform.RunCodegen` compiles them, by what is registered as ``relax.ext.cublas``.
    """
    patterns = get_patterns_with_prefix("cublas")
    return FuseOpsByPattern(patterns, bind_constants, annotate_codegen=True)(mod)
