"""All passes over graph modules, and the one that strings those for inference together."""

from __future__ import annotations

from tvm.ir import IRModule
from tvm.transform import Sequential

from ..expr import Function
from ..rewriter import FunctionRewriter, graph_functions
from .allocate_workspace import AllocateWorkspace
from .alter_op_impl import AlterOpImpl
from .annotate_pattern import AnnotateTIROpPattern
from .attach_extern import AttachExternModules
from .attach_symbol import AttachGlobalSymbol
from .bind_params import BindParams
from .bind_symbolic import BindSymbolicVars
from .bundle_params import BundleModelParams
from .canonicalize import CanonicalizeBindings
from .combine_parallel_matmul import CombineParallelMatmul
from .common_subexpr import EliminateCommonSubexpr
from .compute_prim_value import ComputePrimValue
from .convert_conv_to_2d import ConvertConvTo2d
from .convert_conv_transpose import ConvertConvTranspose
from .convert_layout import ConvertLayout
from .convert_strassen import ConvertStrassen
from .convert_winograd import ConvertWinograd
from .dataflow import RemovePurityChecking, ToNonDataflow
from .dataflow_reshape import RewriteDataflowReshape
from .dead_code import DeadCodeElimination
from .decompose_ops import DecomposeOpsForInference, DecomposeOpsForTraining
from .decompose_variance import DecomposeVariance
from .drop_idle_permutes import DropIdlePermutes
from .expand_tuple_arguments import ExpandTupleArguments
from .fast_math import FastMathTransform
from .fold_batchnorm import FoldBatchnorm
from .fold_constant import FoldConstant
from .fold_pad import FoldPad
from .forms import Forms
from .function_pass import (
    DataflowBlockPass,
    FunctionPass,
    dataflowblock_pass,
    function_pass,
)
from .fuse_attention import FuseAttention
from .fuse_by_pattern import FuseOpsByPattern, FusionPattern, PatternCheckContext
from .fuse_ops import FuseOps
from .fuse_tir import FuseTIR
from .fuse_transpose_matmul import FuseTransposeMatmul
from .gather_windows import GatherWindows
from .gradient import Gradient
from .graph_pass import graph_pass
from .inline_functions import InlinePrivateFunctions
from .inplace_calls import DataflowUseInplaceCalls
from .integer_products import IntegerProducts
from .kill_after_last_use import KillAfterLastUse
from .lambda_lift import LambdaLift
from .layout_free_buffers import AttachAttrLayoutFreeBuffers
from .lazy_params import LazyGetInput, LazySetOutput, LazyTransformParams
from .legalize_ops import LegalizeOps, LegalizeUnfusableOps
from .lift_transform_params import LiftTransformParams
from .lower_alloc_tensor import LowerAllocTensor
from .lower_calls import CallTIRRewrite
from .lower_runtime_builtin import LowerRuntimeBuiltin, VMBuiltinLower
from .matmul_order import AdjustMatmulOrder, ExpandMatmulOfSum
from .merge_composite import MergeCompositeFunctions
from .meta_schedule import (
    FewShotTuning,
    MetaScheduleApplyDatabase,
    MetaScheduleTuneIRMod,
    MetaScheduleTuneTIR,
)
from .normalize import Normalize
from .normalize_global_var import NormalizeGlobalVar
from .optimize_layout_transform import OptimizeLayoutTransform
from .pad_columns import PadColumns
from .pair_fourier import PairFourier
from .remove_redundant_reshape import RemoveRedundantReshape
from .remove_unused_outputs import RemoveUnusedOutputs
from .remove_unused_parameters import RemoveUnusedParameters
from .reorder_moves import ReorderPermuteDimsAfterConcat, ReorderTakeAfterMatmul
from .rewrite_cuda_graph import RewriteCUDAGraph
from .run_codegen import RunCodegen
from .shape_lower import VMShapeLower
from .slice_splits import SliceSplits
from .split_layout_rewrite import SplitLayoutRewritePreproc
from .static_plan_memory import StaticPlanBlockMemory
from .to_dataflow import ConvertToDataflow
from .to_mixed_precision import ToMixedPrecision
from .topological_sort import TopologicalSort
from .trim_windows import TrimWindows
from .turn_row_products import TurnRowProducts
from .update_param_struct_info import UpdateParamStructInfo
from .vdevices import RealizeVDevice, UpdateVDevice
from .weight_products import WeightProducts

__all__ = [
    "AllocateWorkspace",
    "DataflowUseInplaceCalls",
    "OptimizeLayoutTransform",
    "RewriteCUDAGraph",
    "SplitLayoutRewritePreproc",
    "LowerRuntimeBuiltin",
    "VMBuiltinLower",
    "VMShapeLower",
    "FewShotTuning",
    "ComputePrimValue",
    "NormalizeGlobalVar",
    "StaticPlanBlockMemory",
    "ToMixedPrecision",
    "BundleModelParams",
    "CombineParallelMatmul",
    "RewriteDataflowReshape",
    "DecomposeOpsForInference",
    "DecomposeOpsForTraining",
    "ExpandTupleArguments",
    "FastMathTransform",
    "DataflowBlockPass",
    "FunctionPass",
    "dataflowblock_pass",
    "function_pass",
    "KillAfterLastUse",
    "AttachAttrLayoutFreeBuffers",
    "LazyGetInput",
    "LazySetOutput",
    "LazyTransformParams",
    "LiftTransformParams",
    "LowerAllocTensor",
    "AdjustMatmulOrder",
    "ExpandMatmulOfSum",
    "RemoveRedundantReshape",
    "RemoveUnusedOutputs",
    "ReorderPermuteDimsAfterConcat",
    "ReorderTakeAfterMatmul",
    "TopologicalSort",
    "UpdateParamStructInfo",
    "AnnotateTIROpPattern",
    "AttachExternModules",
    "AlterOpImpl",
    "AttachGlobalSymbol",
    "BindParams",
    "BindSymbolicVars",
    "CallTIRRewrite",
    "CanonicalizeBindings",
    "ChooseProducts",
    "ConvertConvTo2d",
    "ConvertConvTranspose",
    "ConvertLayout",
    "ConvertStrassen",
    "ConvertToDataflow",
    "ConvertWinograd",
    "DeadCodeElimination",
    "DecomposeVariance",
    "DropIdlePermutes",
    "EliminateCommonSubexpr",
    "FoldBatchnorm",
    "FoldConstant",
    "FoldPad",
    "Forms",
    "FunctionRewriter",
    "FuseAttention",
    "FuseOps",
    "FuseOpsByPattern",
    "FuseTIR",
    "FuseTransposeMatmul",
    "FusionPattern",
    "InlinePrivateFunctions",
    "IntegerProducts",
    "LambdaLift",
    "LegalizeOps",
    "LegalizeUnfusableOps",
    "MergeCompositeFunctions",
    "MetaScheduleApplyDatabase",
    "MetaScheduleTuneIRMod",
    "MetaScheduleTuneTIR",
    "Normalize",
    "OptimizeForInference",
    "PadColumns",
    "PairFourier",
    "GatherWindows",
    "Gradient",
    "PrepareGraph",
    "RealizeVDevice",
    "UpdateVDevice",
    "PatternCheckContext",
    "RemovePurityChecking",
    "RemoveUnusedParameters",
    "RunCodegen",
    "ToNonDataflow",
    "SliceSplits",
    "TrimWindows",
    "TurnRowProducts",
    "WeightProducts",
    "is_fused",
]


def is_fused(mod: IRModule) -> bool:
    """Whether the module has functions made by FuseOps."""
    graphs = sum(isinstance(func, Function) for func in mod.functions.values())
    return len(graph_functions(mod)) < graphs


@graph_pass("OptimizeForInference")
def OptimizeForInference(
    mod: IRModule,
    winograd: bool = False,
    attention: bool = False,
    strassen: bool = False,
    forms: Forms | None = None,
    ends_inside: bool = False,
) -> IRModule:
    """What an imported network goes through before its kernels are tuned or built.

    A module that is fused already comes back as it is.

    Parameters
    ----------
    winograd, attention, strassen : whether ConvertWinograd, FuseAttention and ConvertStrassen are
        part of it; for processors only.
    forms : what those passes leave as it is; by default nothing.
    ends_inside : of PadColumns, with which GatherWindows is part of it; for processors only.
    """
    if is_fused(mod):
        return mod
    prepared = PrepareGraph(attention, forms, ends_inside)(mod)
    return ChooseProducts(winograd, strassen, forms)(prepared)


@graph_pass("PrepareGraph")
def PrepareGraph(
    mod: IRModule,
    attention: bool = False,
    forms: Forms | None = None,
    ends_inside: bool = False,
) -> IRModule:
    """The first part of OptimizeForInference, up to the choice of products; its options."""
    passes = [
        SliceSplits(),
        WeightProducts(),
        DecomposeVariance(),
        FoldBatchnorm(),
        FoldPad(),
        TrimWindows(),
        ConvertConvTranspose(),
        # Behind what knows transposed convolutions, which fusion does not.
        LegalizeUnfusableOps(),
        *([GatherWindows()] if ends_inside else []),
        ConvertConvTo2d(),
        IntegerProducts(),
        PairFourier(),
        *([FuseAttention(forms)] if attention else []),
        DeadCodeElimination(),
        ConvertLayout(),
        TurnRowProducts(),
        DropIdlePermutes(),
        DeadCodeElimination(),
        PadColumns(ends_inside),
        DeadCodeElimination(),
        FoldConstant(),
    ]
    return Sequential(passes)(mod)


@graph_pass("ChooseProducts")
def ChooseProducts(
    mod: IRModule, winograd: bool = False, strassen: bool = False, forms: Forms | None = None
) -> IRModule:
    """The rest of OptimizeForInference, after PrepareGraph; its options."""
    passes = [
        *([ConvertWinograd(forms)] if winograd else []),
        *([ConvertStrassen(forms)] if strassen else []),
        DeadCodeElimination(),
        FuseOps(),
    ]
    return Sequential(passes)(mod)
