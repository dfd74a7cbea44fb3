"""Convolutions and attention that cuDNN computes."""

from __future__ import annotations

from tvm.ir import IRModule
from tvm.relax.transform import FuseOpsByPattern, FusionPattern, PatternCheckContext

from ..pattern_registry import get_patterns_with_prefix, register_patterns
from ..patterns import make_conv2d_pattern, make_stacked_attention_pattern
from .checks import epilogue_fits, operand_types_fit

__all__ = ["partition_for_cudnn"]

_DTYPES = {(dtype, dtype) for dtype in ("float16", "float32")}


def _check_conv2d(context: PatternCheckContext) -> bool:
    root = context.annotated_expr["root"]
    call = context.matched_bindings.get(root, root)
    layouts = (str(call.attrs["data_layout"]), str(call.attrs["kernel_layout"]))
    return (
        operand_types_fit(context, ("input", "weight"), _DTYPES)
        and layouts in (("NHWC", "OHWI"), ("NCHW", "OIHW"))
        and epilogue_fits(context)
    )


def _check_stacked(context: PatternCheckContext) -> bool:
    return str(context.matched_expr.struct_info.dtype) in ("float16", "float32")


def _patterns() -> list[FusionPattern]:
    found = []
    for suffix, bias, activation in (
        ("", False, None),
        ("_bias", True, None),
        ("_bias_relu", True, "relax.nn.relu"),
    ):
        pattern, parts = make_conv2d_pattern(bias, activation)
        found.append(FusionPattern("cudnn.conv2d" + suffix, pattern, parts, _check_conv2d))
    for layout in ("BS3NH", "SBN3H"):
        for start in ("split", "strided_slice"):
            block = make_stacked_attention_pattern(start, False, layout)
            name = f"cudnn.attention.{layout}.{start}"
            found.append(FusionPattern(name, *block, _check_stacked))
    return found


register_patterns(_patterns())


def partition_for_cudnn(mod: IRModule) -> IRModule:
    """The module with what cuDNN computes as functions of attribute "Codegen".

    `transform.RunCodegen` compiles them, by what is registered as ``relax.ext.cudnn``.
    """
    return FuseOpsByPattern(get_patterns_with_prefix("cudnn"), False, annotate_codegen=True)(mod)
