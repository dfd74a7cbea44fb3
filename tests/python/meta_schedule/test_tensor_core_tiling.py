"""Products tiled for tensor cores compute what they did, and their spaces are refused by name."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
import tvm.tir.tensor_intrin  # registers the intrinsics
from tvm import meta_schedule as ms
from tvm import te, tir
from tvm.meta_schedule.testing import te_workload
from tvm.target import emulated
from tvm.tir.tensor_intrin.cuda import get_wmma_intrin_group

TARGET = tvm.target.Target("cuda -arch=sm_75")


def rule(load: str = "shared", store: str = "shared", **options: object) -> ms.ScheduleRule:
    return ms.schedule_rule.MultiLevelTilingTensorCore(
        intrin_groups=[get_wmma_intrin_group(load, store, "float16", "float32", False)],
        structure="SSSRRSRS",
        tile_binds=["blockIdx.y", "blockIdx.x", "threadIdx.y"],
        max_innermost_factor=4,
        vector_load_lens=[1, 4, 8],
        reuse_read=ms.schedule_rule.ReuseType("must", [4], load),
        reuse_write=ms.schedule_rule.ReuseType("no" if store == "global" else "must", [2], store),
        **options,
    )


def product(rows: int, columns: int, inner: int) -> tir.PrimFunc:
    return te.create_prim_func(
        te_workload.matmul(rows, columns, inner, in_dtype="float16", out_dtype="float32")
    )


def scheduled(function: tir.PrimFunc, tiling: ms.ScheduleRule) -> list[tir.Schedule]:
    """Schedules of the space that the postprocessors accept."""
    context = ms.TuneContext(
        function,
        target=TARGET,
        space_generator=ms.space_generator.PostOrderApply(
            sch_rules=[tiling, ms.schedule_rule.AutoBind(256, [32, 128])],
            postprocs=[
                ms.postproc.RewriteCooperativeFetch(),
                ms.postproc.RewriteUnboundBlock(256),
                ms.postproc.RewriteReductionBlock(),
                ms.postproc.RewriteTensorize(),
            ],
            mutator_probs={},
        ),
        rand_state=3,
    )
    spaces = context.generate_design_space()
    posts = context.space_generator.postprocs
    return [sch for sch in spaces if all(post.apply(sch) for post in posts)]


def drop_padding(sch: tir.Schedule) -> None:
    """Rows of shared memory without gaps, which are what lowering gives pointers to."""
    for name in ("A", "B"):
        sch.unannotate(sch.get_block(f"{name}_reindex_shared"), "buffer_dim_align")


def check(function: tir.PrimFunc, sch: tir.Schedule) -> None:
    drop_padding(sch)
    built = tvm.build(sch.mod, target=emulated(TARGET))
    device = tvm.device("stackvm")
    rng = np.random.default_rng(0)
    buffers = [function.buffer_map[p] for p in function.params]
    shapes = [tuple(int(n) for n in buffer.shape) for buffer in buffers]
    a, b = (rng.standard_normal(shape).astype("float16") for shape in shapes[:2])
    arguments = [tvm.nd.array(x, device) for x in (a, b, np.zeros(shapes[2], "float32"))]
    built(*arguments)
    wanted = a.astype("float32") @ b.astype("float32")
    np.testing.assert_allclose(arguments[2].numpy(), wanted, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("memory", ["shared", "global"])
def test_products_are_computed(memory):
    function = product(64, 32, 64)
    (sch,) = scheduled(function, rule(store=memory))
    assert "tvm_mma_sync" in str(sch.mod)
    check(function, sch)


def test_convolutions_are_products_of_fused_axes():
    function = te.create_prim_func(
        te_workload.conv2d_nhwc(1, 8, 8, 16, 16, 3, 1, 1, in_dtype="float16", out_dtype="float32")
    )
    (sch,) = scheduled(function, rule())
    assert "tvm_mma_sync" in str(sch.mod)


def test_other_types_are_left_to_other_rules():
    function = te.create_prim_func(te_workload.matmul(64, 64, 64))
    (sch,) = scheduled(function, rule())
    assert "tvm_mma_sync" not in str(sch.mod)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"structure": "SSSRSS"}, "it takes two"),
        ({"reuse_write": ms.schedule_rule.ReuseType("may", [2], "shared")}, "must or no"),
        ({"intrin_groups": [{"init": "wmma_fill_16x16x16_f32"}]}, "lacks load_a"),
    ],
)
def test_what_cannot_be_tiled_is_refused(change, message):
    options = {
        "intrin_groups": [get_wmma_intrin_group("shared", "shared", "int8", "int32", False)],
        "structure": "SSSRRSRS",
    }
    with pytest.raises(ValueError, match=message):
        ms.schedule_rule.MultiLevelTilingTensorCore(**{**options, **change})


def test_rules_for_tensor_cores_are_asked_for_by_name():
    kind = "cuda-tensorcore"
    context = ms.TuneContext(
        product(128, 128, 128),
        target=tvm.target.Target("nvidia/geforce-rtx-3090"),
        space_generator=ms.space_generator.PostOrderApply(
            sch_rules=kind, postprocs=kind, mutator_probs=kind
        ),
        rand_state=1,
    )
    spaces = context.generate_design_space()
    assert any("wmma_sync" in str(sch.mod) for sch in spaces)
    posts = context.space_generator.postprocs
    assert all(all(post.apply(sch) for post in posts) for sch in spaces)
    with pytest.raises(ValueError, match="no rules for 'tensor-cores'"):
        ms.space_generator.PostOrderApply(sch_rules="tensor-cores")
