"""Rules and postprocessors of tensor intrinsics."""

from __future__ import annotations

import numpy as np
import pytest

import tvm
from tvm import meta_schedule as ms
from tvm import te, tir
from tvm.meta_schedule.testing import te_workload
from tvm.meta_schedule.testing.space_generation import generate_design_space
from tvm.script import tir as T
from tvm.target import Target
from tvm.tir.schedule.analysis import get_auto_tensorize_mapping_info

NAME = "test.product_4x8x2"


@T.prim_func
def product(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 2), offset_factor=1)
    B = T.match_buffer(b, (2, 8), offset_factor=1)
    C = T.match_buffer(c, (4, 8), offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:8], A[0:4, 0:2], B[0:2, 0:8])
        T.writes(C[0:4, 0:8])
        for i, j, k in T.grid(4, 8, 2):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func
def product_marked(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 2), strides=[T.int32(), 1], offset_factor=1)
    B = T.match_buffer(b, (2, 8), strides=[T.int32(), 1], offset_factor=1)
    C = T.match_buffer(c, (4, 8), strides=[T.int32(), 1], offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:8], A[0:4, 0:2], B[0:2, 0:8])
        T.writes(C[0:4, 0:8])
        for i, k, j in T.grid(4, 2, 8):
            C[i, j] = C[i, j] + A[i, k] * B[k, j]


tir.TensorIntrin.register(NAME, product, product_marked, override=True)


def rule() -> ms.schedule_rule.MultiLevelTilingWithIntrin:
    return ms.schedule_rule.MultiLevelTilingWithIntrin(
        NAME, structure="SSRSRS", max_innermost_factor=64
    )


def finished(function: tir.PrimFunc, seed: int = 0) -> tir.Schedule:
    target = Target("llvm -num-cores=1")
    sch = generate_design_space("llvm", function, target, None, sch_rules=[rule()])[0]
    assert ms.postproc.RewriteReductionBlock().apply(sch)
    assert ms.postproc.RewriteTensorize(vectorize_init_loop=True).apply(sch)
    return sch


def intrinsics_of(sch: tir.Schedule) -> list[str]:
    return [
        str(inst.arguments["tensor_intrin"])
        for inst in sch.trace.insts
        if str(inst.kind.name) == "Tensorize"
    ]


@pytest.mark.parametrize("shape", [(8, 16, 8), (12, 24, 10), (4, 8, 2)])
def test_products_are_tiled_for_the_intrinsic_and_right(shape):
    n, m, k = shape
    function = te.create_prim_func(te_workload.matmul(n, m, k))
    sch = finished(function)
    assert intrinsics_of(sch) == [NAME]
    rng = np.random.default_rng(0)
    a, b = rng.random((n, k), dtype=np.float32), rng.random((k, m), dtype=np.float32)
    c = tvm.nd.array(np.zeros((n, m), np.float32))
    tvm.build(sch.mod, target="llvm")(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)


def test_trace_of_an_intrinsic_replays():
    function = te.create_prim_func(te_workload.matmul(16, 16, 16))
    sch = finished(function)
    again = tir.Schedule(function)
    tir.schedule.Trace.from_json(sch.trace.as_json()).apply_to_schedule(again, False)
    tvm.ir.assert_structural_equal(again.mod, sch.mod)


def test_other_programs_are_left_alone():
    function = te.create_prim_func(te_workload.matmul(16, 16, 16, in_dtype="int8"))
    target = Target("llvm -num-cores=1")
    (sch,) = generate_design_space("llvm", function, target, None, sch_rules=[rule()])
    tvm.ir.assert_structural_equal(sch.mod["main"].body, function.body)


def test_rewrite_tensorize_refuses_what_an_intrinsic_does_not_do():
    sch = tir.Schedule(te.create_prim_func(te_workload.matmul(8, 16, 8)))
    block = sch.blockize(sch.get_loops(sch.get_block("C"))[0])
    sch.annotate(block, "meta_schedule.auto_tensorize", NAME)
    assert not ms.postproc.RewriteTensorize().apply(sch)


def test_unknown_intrinsic_is_named():
    with pytest.raises(ValueError, match="no.such.intrinsic"):
        ms.schedule_rule.MultiLevelTilingWithIntrin("no.such.intrinsic", "SSRSRS")


def test_axes_of_a_convolution_map_to_those_of_a_product():
    function = te.create_prim_func(te_workload.conv2d_nhwc(1, 8, 8, 4, 16, 3, 1, 1))
    sch = tir.Schedule(function)
    block = sch.get_block("conv2d_nhwc")
    info = get_auto_tensorize_mapping_info(sch, block, product)
    (mapping,) = info.mappings
    # Rows are places of the image, columns channels, and the sum runs over the window.
    point = [0, 3, 5, 7, 1, 2, 3]
    got = [int(index) for index in mapping.map_indices(point)]
    assert got[-3:] == [3 * 8 + 5, 7, (1 * 3 + 2) * 4 + 3]
    assert len(info.rhs_iters) == 3


def test_sampled_numbers_in_an_index_map():
    function = te.create_prim_func(te_workload.matmul(16, 16, 16))
    sch = tir.Schedule(function)
    block = sch.get_block("C")
    tiles = sch.sample_perfect_tile(sch.get_loops(block)[0], 3, decision=[4, 2, 2])
    size = tiles[1] * tiles[2]
    sch.transform_layout(
        block,
        ("read", 0),
        lambda i, j: [i // size, j, i % size],
        assume_injective_transform=True,
    )
    assert [int(n) for n in sch.mod["main"].buffer_map[sch.mod["main"].params[0]].shape] == [
        4,
        16,
        4,
    ]
    trace = tir.schedule.Trace.from_json(sch.trace.as_json())
    again = tir.Schedule(function)
    trace.apply_to_schedule(again, False)
    tvm.ir.assert_structural_equal(again.mod, sch.mod)
    # Another decision makes another layout.
    inst = next(inst for inst in trace.insts if trace.get_decision(inst) is not None)
    other = tir.Schedule(function)
    trace.with_decision(inst, [2, 4, 2], False).apply_to_schedule(other, False)
    changed = other.mod["main"]
    assert [int(n) for n in changed.buffer_map[changed.params[0]].shape] == [2, 16, 8]


def test_rewrite_layout_reads_weights_in_the_order_of_loops():
    function = te.create_prim_func(te_workload.matmul(16, 16, 16))
    sch = tir.Schedule(function.with_attr("layout_free_buffers", [1]))
    block = sch.get_block("C")
    i, j, k = sch.get_loops(block)
    i0, i1 = sch.split(i, [4, 4])
    k0, k1 = sch.split(k, [4, 4])
    sch.reorder(i0, j, k0, i1, k1)
    assert ms.postproc.RewriteLayout().apply(sch)
    (copy,) = sch.get_producers(block)
    node = sch.get(copy)
    assert node.annotations["meta_schedule.layout_rewrite_preproc"]
    # Column by column, each in pieces as long as the inner sum.
    assert [int(extent) for extent in node.writes[0].buffer.shape] == [16, 4, 4]
    rng = np.random.default_rng(0)
    a, b = (rng.random((16, 16), dtype=np.float32) for _ in range(2))
    c = tvm.nd.array(np.zeros((16, 16), np.float32))
    tvm.build(sch.mod, target="llvm")(tvm.nd.array(a), tvm.nd.array(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)


def test_rewrite_layout_names_a_buffer_that_no_block_reads():
    function = te.create_prim_func(te_workload.matmul(16, 16, 16))
    sch = tir.Schedule(function.with_attr("layout_free_buffers", [2]))
    with pytest.raises(tvm.TVMError, match="reads the buffer C"):
        ms.postproc.RewriteLayout().apply(sch)


def _bytes_product(rows: int, lanes: int, left: str, right: str, result: str) -> tvm.IRModule:
    """A product whose weights lie in blocks of `lanes` columns and four rows."""
    x = te.placeholder((rows, 64), left, name="X")
    w = te.placeholder((64 // lanes, 64 // 4, lanes, 4), right, name="W")
    k = te.reduce_axis((0, 64), name="k")
    y = te.compute(
        (rows, 64),
        lambda i, j: te.sum(
            x[i, k].astype(result)
            * w[
                tvm.tir.indexdiv(j, lanes), tvm.tir.indexdiv(k, 4),
                tvm.tir.indexmod(j, lanes), tvm.tir.indexmod(k, 4),
            ].astype(result),
            axis=k,
        ),
        name="Y",
    )  # fmt: skip
    return tvm.IRModule({"main": te.create_prim_func([x, w, y])})


def _default_schedules(mod: tvm.IRModule, target: str) -> list[tvm.tir.Schedule]:
    context = ms.TuneContext(
        mod=mod,
        target=tvm.target.Target(target),
        space_generator="post-order-apply",
        task_name="product",
        rand_state=1,
    )
    made = context.space_generator.generate_design_space(mod)
    for sch in made:
        sch.enter_postproc()
        assert all(postproc.apply(sch) for postproc in context.space_generator.postprocs)
    return made


@pytest.mark.parametrize(
    ("features", "types", "instruction"),
    [
        ("+neon", ("int8", "int8", "int32"), "smull"),
        ("+neon,+v8.2a,+dotprod", ("int8", "int8", "int32"), "sdot"),
        ("+neon,+v8.2a,+dotprod", ("uint8", "uint8", "uint32"), "udot"),
    ],
)
def test_processors_with_dot_products_use_them_by_default(features, types, instruction) -> None:
    target = f"llvm -device=arm_cpu -mtriple=aarch64-linux-gnu -mattr={features} -num-cores=2"
    made = _default_schedules(_bytes_product(64, 4, *types), target)
    assert made and all("call_llvm_pure_intrin" in sch.mod.script() for sch in made)
    code = tvm.build(made[0].mod, target=target).get_source("asm")
    assert instruction in code


def test_operands_that_lie_otherwise_are_tiled_without_an_instruction() -> None:
    target = "llvm -mcpu=cascadelake -num-cores=2"
    types = ("uint8", "int8", "int32")
    fits = _default_schedules(_bytes_product(64, 16, *types), target)
    assert any("call_llvm_pure_intrin" in sch.mod.script() for sch in fits)
    other = _default_schedules(_bytes_product(64, 4, *types), target)
    assert other and not any("call_llvm_pure_intrin" in sch.mod.script() for sch in other)
