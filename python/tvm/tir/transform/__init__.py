"""Passes over tensor programs."""

from __future__ import annotations

from tvm._older_names import hints_for

from . import pipelines, transform
from .assumed_padding import UseAssumeToReduceBranches
from .auto_copy import LowerAutoCopy
from .common_subexpr import CommonSubexprElimTIR
from .custom_datatypes import LowerCustomDatatypes
from .default_gpu_schedule import DefaultGPUSchedule
from .device_scopes import (
    CombineContextCall,
    DecorateDeviceScope,
    LowerDeviceStorageAccessInfo,
    VerifySSA,
    VerifyVTCMLimit,
)
from .extract_constants import ExtractPrimFuncConstants
from .force_narrow_index import ForceNarrowIndexToInt32
from .function_pass import PrimFuncPass, prim_func_pass
from .hoist_expression import (
    HoistedConditionals,
    HoistedLetBindings,
    HoistExpression,
    HoistIfThenElse,
)
from .infer_fragment import InferFragment
from .inject_copy_intrin import InjectCopyIntrin
from .inline_private_functions import InlinePrivateFunctions
from .layout_rewrite import ApplyLayoutTransforms, RemoveWeightLayoutRewriteBlock
from .lift_attr_scope import LiftAttrScope
from .lift_thread_binding import LiftThreadBinding
from .make_unpacked_api import MakeUnpackedAPI
from .mma_layout import TransformMmaBufferLayout
from .permuted_layout import InjectPermutedLayout
from .pipelines import *
from .pointer_value_type import PointerValueTypeRewrite
from .profile_intrinsics import InstrumentProfileIntrinsics
from .reduce_branching import ReduceBranchingThroughOvercompute
from .remove_store_undef import RemoveStoreUndef
from .renormalize_split_pattern import RenormalizeSplitPattern
from .rolling_buffer import InjectRollingBuffer
from .shared_memory_stage import InjectPTXLDG32, ManifestSharedMemoryLocalStage
from .transform import *

__all__ = [
    *transform.__all__,
    *pipelines.__all__,
    "ApplyLayoutTransforms",
    "CombineContextCall",
    "CommonSubexprElimTIR",
    "DecorateDeviceScope",
    "DefaultGPUSchedule",
    "ExtractPrimFuncConstants",
    "ForceNarrowIndexToInt32",
    "HoistExpression",
    "HoistIfThenElse",
    "HoistedConditionals",
    "HoistedLetBindings",
    "InferFragment",
    "InjectCopyIntrin",
    "InjectPTXLDG32",
    "InjectPermutedLayout",
    "InjectRollingBuffer",
    "InlinePrivateFunctions",
    "InstrumentProfileIntrinsics",
    "LiftAttrScope",
    "LiftThreadBinding",
    "LowerAutoCopy",
    "LowerCustomDatatypes",
    "LowerDeviceStorageAccessInfo",
    "MakeUnpackedAPI",
    "ManifestSharedMemoryLocalStage",
    "PointerValueTypeRewrite",
    "ReduceBranchingThroughOvercompute",
    "RemoveStoreUndef",
    "RemoveWeightLayoutRewriteBlock",
    "RenormalizeSplitPattern",
    "TransformMmaBufferLayout",
    "UseAssumeToReduceBranches",
    "VerifySSA",
    "VerifyVTCMLimit",
    "PrimFuncPass",
    "prim_func_pass",
]

__getattr__ = hints_for(__name__)
