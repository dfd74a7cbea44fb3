"""Matrix products and convolutions that CUTLASS has kernels for."""

from __future__ import annotations

from tvm.ir import IRModule
from tvm.relax.transform import FuseOpsByPattern, FusionPattern, PatternCheckContext

from ..pattern_registry import get_patterns_with_prefix, register_patterns
from ..patterns import make_conv2d_pattern, make_matmul_pattern, make_residual_block_pattern
from .checks import epilogue_fits, operand_types_fit

__all__ = ["partition_for_cutlass"]

_DTYPES = {(dtype, dtype) for dtype in ("float16", "float32", "int8")}
_ACTIVATIONS = (None, "relax.nn.relu", "relax.nn.gelu", "relax.nn.silu")


def _check_matmul(context: PatternCheckContext) -> bool:
    return operand_types_fit(context, ("lhs", "rhs"), _DTYPES) and epilogue_fits(context)


def _check_conv2d(context: PatternCheckContext) -> bool:
    root = context.annotated_expr["root"]
    call = context.matched_bindings.get(root, root)
    layouts = (str(call.attrs["data_layout"]), str(call.attrs["kernel_layout"]))
    return (
        operand_types_fit(context, ("input", "weight"), _DTYPES)
        and layouts == ("NHWC", "OHWI")
        and epilogue_fits(context)
    )


def _patterns() -> list[FusionPattern]:
    found = []
    for activation in _ACTIVATIONS:
        suffix = "" if activation is None else "_" + activation.rsplit(".", 1)[-1]
        for bias in (False, True):
            tail = "_bias" * bias + suffix
            conv, conv_parts = make_conv2d_pattern(bias, activation)
            found.append(FusionPattern("cutlass.conv2d" + tail, conv, conv_parts, _check_conv2d))
            for transposed in (False, True):
                name = "cutlass.matmul" + "_transposed" * transposed + tail
                block = make_matmul_pattern(bias, activation, transposed)
                found.append(FusionPattern(name, *block, _check_matmul))
    for bias in (False, True):
        for transposed in (False, True):
            name = "cutlass.matmul" + "_transposed" * transposed + "_bias" * bias + "_residual"
            block = make_residual_block_pattern(make_matmul_pattern(bias, None, transposed))
            found.append(FusionPattern(name, *block, _check_matmul))
    return found


register_patterns(_patterns())


def partition_for_cutlass(mod: IRModule, annotate_codegen: bool = True) -> IRModule:
    """The module with what CUTLASS computes as functions of attribute "Codegen".

    `transform.RunCodegen` compiles them, by what is registered as ``relax.ext.cutlass``.

    Parameters
    ----------
    annotate_codegen : see `transform.FuseOpsByPattern`.
    """
    patterns = get_patterns_with_prefix("cutlass")
    return FuseOpsByPattern(patterns, False, annotate_codegen)(mod)
