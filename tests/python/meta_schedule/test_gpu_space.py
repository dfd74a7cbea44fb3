"""Rules and postprocessors of graphics processors: what they make, and what that computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import meta_schedule as ms
from tvm import te, tir
from tvm.ir import IRModule
from tvm.meta_schedule.testing import te_workload
from tvm.meta_schedule.testing.space_generation import generate_design_space
from tvm.target import Target

AMPERE = Target("nvidia/geforce-rtx-3080")


def _tags(sch: tir.Schedule, block: str) -> list[str]:
    loops = [sch.get(loop) for loop in sch.get_loops(sch.get_block(block))]
    return [
        str(loop.thread_binding.thread_tag) for loop in loops if loop.thread_binding is not None
    ]


def _candidates(function: tir.PrimFunc, target: Target, count: int, seed: int) -> list[Any]:
    context = ms.TuneContext(
        function,
        target=target,
        space_generator="post-order-apply",
        search_strategy="replay-trace",
        rand_state=seed,
    )
    context.pre_tuning(max_trials=count, num_trials_per_iter=count)
    found = context.generate_measure_candidates()
    context.post_tuning()
    return found or []


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (te_workload.matmul_relu, (32, 48, 24)),
        (te_workload.conv2d_nhwc, (1, 8, 8, 4, 16, 3, 1, 1)),
        (te_workload.norm_bmn, (2, 16, 32)),
        (te_workload.softmax_mn, (8, 96)),
    ],
)
def test_candidates_compute_what_the_function_does(make: Any, shape: tuple[int, ...]) -> None:
    target = tvm.target.emulated("cuda")
    function = te.create_prim_func(make(*shape))
    rng = np.random.default_rng(0)
    inputs = [
        rng.random([int(n) for n in function.buffer_map[p].shape], dtype=np.float32)
        for p in function.params
    ]
    plain = tvm.build(function, target="llvm")
    expected = [tvm.nd.array(array) for array in inputs]
    plain(*expected)
    candidates = _candidates(function, target, 2, 1)
    assert candidates
    device = tvm.device(target.kind.name, 0)
    for candidate in candidates:
        arrays = [tvm.nd.array(array, device) for array in inputs]
        tvm.build(candidate.sch.mod, target=target)(*arrays)
        np.testing.assert_allclose(arrays[-1].numpy(), expected[-1].numpy(), rtol=1e-4, atol=1e-4)


def test_products_are_tiled_over_threads_and_shared_memory() -> None:
    mod = te.create_prim_func(te_workload.matmul(64, 64, 64))
    sketches = generate_design_space("cuda", mod, AMPERE, ms.schedule_rule.MultiLevelTiling)
    # One plain, and one for each depth of asynchronous copies that an Ampere has.
    assert len(sketches) == 3
    plain = sketches[0]
    assert _tags(plain, "C") == ["blockIdx.x", "vthread.x", "threadIdx.x"]
    scopes = {str(b.scope()) for b in plain.mod["main"].body.block.alloc_buffers}
    assert scopes == {"local", "shared"}
    older = Target("nvidia/geforce-rtx-2080")
    assert len(generate_design_space("cuda", mod, older, ms.schedule_rule.MultiLevelTiling)) == 1


def test_what_no_thread_runs_is_bound() -> None:
    A = te.placeholder((600000,), name="A")
    mod = te.create_prim_func([A, te.compute(A.shape, lambda i: A[i] * 2.0, name="B")])
    context = ms.TuneContext(
        mod,
        target=AMPERE,
        space_generator=ms.space_generator.PostOrderApply(
            sch_rules=[], postprocs=[ms.postproc.RewriteUnboundBlock(256)], mutator_probs={}
        ),
    )
    sch = tir.Schedule(mod)
    assert context.space_generator.postprocs[0].apply(sch)
    loops = [sch.get(loop) for loop in sch.get_loops(sch.get_block("B"))]
    assert [int(loop.extent.value) for loop in loops] == [256, 1024, 3]
    assert _tags(sch, "B") == ["blockIdx.x", "threadIdx.x"]


def test_a_target_without_threads_is_refused() -> None:
    mod = te.create_prim_func(te_workload.matmul(8, 8, 8))
    with pytest.raises(ValueError, match="has no max_threads_per_block; give a graphics processor"):
        generate_design_space("cuda", mod, Target("llvm"), ms.schedule_rule.AutoBind)


def test_copies_are_shared_out_among_threads() -> None:
    mod = te.create_prim_func(te_workload.matmul(64, 64, 64))
    for candidate in _candidates(mod, AMPERE, 4, 3):
        text = str(candidate.sch.mod)
        assert "cooperative_fetch" not in text
        assert text.count("threadIdx.x") >= 3


def test_programs_that_do_not_fit_are_refused() -> None:
    mod = te.create_prim_func(te_workload.matmul(64, 64, 64))
    context = ms.TuneContext(mod, target=AMPERE, space_generator="post-order-apply")
    verify = next(
        p for p in context.space_generator.postprocs if isinstance(p, ms.postproc.VerifyGPUCode)
    )
    sch = tir.Schedule(mod)
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.bind(i, "blockIdx.x")
    sch.bind(j, "threadIdx.x")
    assert verify.apply(sch)
    sch = tir.Schedule(mod)
    i, j, _ = sch.get_loops(sch.get_block("C"))
    sch.bind(sch.fuse(i, j), "threadIdx.x")
    assert not verify.apply(sch)


def test_thread_counts_are_mutated() -> None:
    mod = te.create_prim_func(te_workload.norm_bmn(64, 8, 8))
    [sch] = generate_design_space("cuda", mod, AMPERE, ms.schedule_rule.AutoBind)
    mutator = ms.mutator.MutateThreadBinding()
    trace = mutator.apply(sch.trace)
    if trace is None:  # loops of one block of threads sample nothing
        pytest.skip("nothing was sampled")
    changed = [i for i in trace.insts if trace.get_decision(i) != sch.trace.get_decision(i)]
    assert len(changed) == 1


@pytest.mark.parametrize("name", sorted(te_workload.CONFIGS))
def test_workloads_have_spaces(name: str) -> None:
    function = te_workload.create_te_workload(name, 1)
    context = ms.TuneContext(
        IRModule({"main": function}), target=AMPERE, space_generator="post-order-apply"
    )
    assert context.generate_design_space()


def test_an_unknown_workload_is_named() -> None:
    with pytest.raises(KeyError, match="no workload 'C4D'; there are \\['C1D'"):
        te_workload.create_te_workload("C4D", 0)
