"""The rules, postprocessors and mutators that a kind of target has by itself."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from tvm.target import Target
from tvm.target.codegen import target_has_features
from tvm.tir.tensor_intrin.arm_cpu import (
    ARM_DOT_4x4_i8_NEON_INTRIN,
    ARM_DOT_4x4_i8_SDOT_INTRIN,
    ARM_DOT_4x4_u8_HDOT_INTRIN,
    ARM_DOT_4x4_u8_UDOT_INTRIN,
)
from tvm.tir.tensor_intrin.cuda import get_wmma_intrin_group
from tvm.tir.tensor_intrin.x86 import VNNI_DOT_16x4_INTRIN

from .mutator import (
    MutateComputeLocation,
    MutateParallel,
    MutateThreadBinding,
    MutateTileSize,
    MutateUnroll,
    Mutator,
)
from .mutator.mutator import register_default_mutators
from .postproc import (
    DisallowDynamicLoop,
    Postproc,
    RewriteCooperativeFetch,
    RewriteParallelVectorizeUnroll,
    RewriteReductionBlock,
    RewriteTensorize,
    RewriteUnboundBlock,
    VerifyGPUCode,
)
from .postproc.postproc import register_default_postprocs
from .schedule_rule import (
    AddRFactor,
    ApplyCustomRule,
    AutoBind,
    AutoInline,
    CrossThreadReduction,
    InlineConstantScalars,
    MultiLevelTiling,
    MultiLevelTilingTensorCore,
    MultiLevelTilingWithIntrin,
    ParallelizeVectorizeUnroll,
    RandomComputeLocation,
    ReuseType,
    ScheduleRule,
)
from .schedule_rule.schedule_rule import register_default_rules

__all__ = ["kind_of"]


def kind_of(target: Target | None) -> str:
    """The kind under which the parts for a target are entered."""
    if target is None:
        return "llvm"
    if "gpu" in target.keys:
        return "cuda"
    if str(target.kind.name) == "llvm":
        # What a target says of its processor; that of this machine is not taken for granted.
        named = any(key in target.attrs for key in ("mcpu", "mattr"))
        for kind, features in _WITH_DOT_PRODUCTS.items() if named else ():
            if target_has_features(features, target):
                return kind
    return str(target.kind.name)


# Processors with instructions for sums of products of bytes: the features that they need, the
# most capable first.
_WITH_DOT_PRODUCTS = {"vnni": ["avx512vnni"], "dotprod": ["neon", "dotprod"], "asimd": ["neon"]}

_INTRINSICS = {
    "vnni": [VNNI_DOT_16x4_INTRIN],
    "asimd": [ARM_DOT_4x4_i8_NEON_INTRIN],
    "dotprod": [
        ARM_DOT_4x4_i8_SDOT_INTRIN,
        ARM_DOT_4x4_u8_UDOT_INTRIN,
        ARM_DOT_4x4_u8_HDOT_INTRIN,
    ],
}


def _inline_on_cpu() -> AutoInline:
    return AutoInline(
        into_producer=False,
        into_consumer=True,
        inline_const_tensor=True,
        disallow_if_then_else=True,
        require_injective=True,
        require_ordered=True,
        disallow_op=["tir.exp"],
    )


def _tiles_on_cpu() -> dict:
    return {
        "structure": "SSRSRS",
        "max_innermost_factor": 64,
        "reuse_write": ReuseType(req="may", levels=(1, 2), scope="global"),
    }


def _cpu_rules(intrinsics: Sequence[str] = ()) -> list[ScheduleRule]:
    return [
        ApplyCustomRule(),
        InlineConstantScalars(),
        _inline_on_cpu(),
        AddRFactor(max_jobs_per_core=16, max_innermost_factor=64),
        *(MultiLevelTilingWithIntrin(name, **_tiles_on_cpu()) for name in intrinsics),
        MultiLevelTiling(**_tiles_on_cpu()),
        ParallelizeVectorizeUnroll(
            max_jobs_per_core=16,
            max_vectorize_extent=64,
            unroll_max_steps=[0, 16, 64, 512],
            unroll_explicit=True,
        ),
        RandomComputeLocation(),
    ]


def _cpu_postprocs() -> list[Postproc]:
    return [DisallowDynamicLoop(), RewriteParallelVectorizeUnroll(), RewriteReductionBlock()]


def _postprocs_with_intrinsics() -> list[Postproc]:
    return [*_cpu_postprocs(), RewriteTensorize(vectorize_init_loop=True)]


def _cpu_mutators() -> dict[Mutator, float]:
    return {
        MutateTileSize(): 0.9,
        MutateComputeLocation(): 0.05,
        MutateUnroll(): 0.03,
        MutateParallel(max_jobs_per_core=16): 0.02,
    }


def _gpu_rules() -> list[ScheduleRule]:
    return [
        ApplyCustomRule(),
        MultiLevelTiling(
            structure="SSSRRSRS",
            tile_binds=["blockIdx.x", "vthread.x", "threadIdx.x"],
            max_innermost_factor=64,
            vector_load_lens=[1, 2, 3, 4, 8, 16],
            reuse_read=ReuseType(req="must", levels=(4,), scope="shared"),
            reuse_write=ReuseType(req="must", levels=(3,), scope="local"),
        ),
        InlineConstantScalars(),
        AutoInline(
            into_producer=True,
            into_consumer=True,
            inline_const_tensor=True,
            disallow_if_then_else=False,
            require_injective=False,
            require_ordered=False,
        ),
        CrossThreadReduction(thread_extents=[4, 8, 16, 32, 64, 128, 256, 512]),
        ParallelizeVectorizeUnroll(
            max_jobs_per_core=-1,
            max_vectorize_extent=-1,
            unroll_max_steps=[0, 16, 64, 512, 1024],
            unroll_explicit=True,
        ),
        AutoBind(max_threadblocks=256, thread_extents=[32, 64, 128, 256, 512, 1024]),
    ]


def _tensor_core_rules() -> list[ScheduleRule]:
    """Those of a GPU, and before them the tiles of products that fit its tensor cores."""
    groups = [
        get_wmma_intrin_group("shared", "shared", operand, result, transposed)
        for operand, result in (("float16", "float16"), ("float16", "float32"), ("int8", "int32"))
        for transposed in (False, True)
    ]
    tiles = MultiLevelTilingTensorCore(
        intrin_groups=groups,
        structure="SSSRRSRS",
        tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
        max_innermost_factor=4,
        vector_load_lens=[1, 2, 3, 4, 8, 16],
        reuse_read=ReuseType(req="must", levels=(4,), scope="shared"),
        reuse_write=ReuseType(req="must", levels=(2,), scope="shared"),
    )
    custom, *others = _gpu_rules()
    return [custom, tiles, *others]


def _tensor_core_postprocs() -> list[Postproc]:
    *others, verify = _gpu_postprocs()
    return [*others, RewriteTensorize(vectorize_init_loop=False), verify]


def _gpu_postprocs() -> list[Postproc]:
    return [
        DisallowDynamicLoop(),
        RewriteCooperativeFetch(),
        RewriteUnboundBlock(max_threadblocks=256),
        RewriteParallelVectorizeUnroll(),
        RewriteReductionBlock(),
        VerifyGPUCode(),
    ]


def _gpu_mutators() -> dict[Mutator, float]:
    return {MutateTileSize(): 0.9, MutateUnroll(): 0.08, MutateThreadBinding(): 0.02}


for _kind in ("llvm", "c"):
    register_default_rules(_kind, _cpu_rules)
    register_default_postprocs(_kind, _cpu_postprocs)
    register_default_mutators(_kind, _cpu_mutators)
for _kind, _names in _INTRINSICS.items():
    register_default_rules(_kind, functools.partial(_cpu_rules, _names))
    register_default_postprocs(_kind, _postprocs_with_intrinsics)
    register_default_mutators(_kind, _cpu_mutators)
register_default_rules("cuda", _gpu_rules)
register_default_postprocs("cuda", _gpu_postprocs)
register_default_mutators("cuda", _gpu_mutators)
# Asked for by name: no target has these by itself.
register_default_rules("cuda-tensorcore", _tensor_core_rules)
register_default_postprocs("cuda-tensorcore", _tensor_core_postprocs)
register_default_mutators("cuda-tensorcore", _gpu_mutators)
