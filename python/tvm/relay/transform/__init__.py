"""Passes over relay programs."""

from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo, Sequential, module_pass
from tvm.ir.transform import PassContext as build_config

from .atrous import FlattenAtrousConv
from .base import FunctionPass, function_pass
from .canonicalize_cast import CanonicalizeCast
from .change_batch import ChangeBatch
from .combine_parallel import (
    CombineParallelBatchMatmul,
    CombineParallelConv2D,
    CombineParallelDense,
)
from .compiler_functions import (
    InlineCompilerFunctionsBoundTo,
    MarkCompilerFunctionsAsExtern,
    OutlineCompilerFunctionsWithExistingGlobalSymbols,
)
from .composite import MergeComposite
from .continuations import ToCPS, to_cps, un_cps
from .defunctionalization import Defunctionalization
from .dynamic import DynamicToStatic
from .expand import EtaExpand, SplitArgs
from .fake_quantization import FakeQuantizationToInteger
from .fold_scale_axis import BackwardFoldScaleAxis, FoldScaleAxis, ForwardFoldScaleAxis
from .fuse import FuseOps
from .gradient import FirstOrderGradient, gradient
from .infer_type import AnnotateSpans, InferType
from .layouts import AlterOpLayout, ConvertLayout, LayoutConfig
from .lazy_gradient import LazyGradientInit
from .lifetimes import ManifestLifetimes
from .merge_regions import MergeCompilerRegions
from .mixed_precision import ToMixedPrecision
from .normal_forms import ToANormalForm, ToBasicBlockNormalForm, ToGraphNormalForm
from .of_expressions import (
    FoldConstantExpr,
    InferTypeLocal,
    ToANormalFormExpr,
    ToBasicBlockNormalFormExpr,
)
from .partial_eval import PartialEvaluate
from .plan_devices import PlanDevices
from .recast import recast
from .regions import AnnotateTarget, PartitionGraph
from .rewrite import DefuseOps, FoldExplicitPadding, Legalize
from .simplify import CanonicalizeOps, FastMath, FoldConstant, SimplifyInference
from .simplify_expr import SimplifyExpr
from .sparse_weights import (
    Conv2dToSparse,
    Conv2dToSparse2,
    DenseToSparse,
    SimplifyFCTranspose,
)
from .structure import *
